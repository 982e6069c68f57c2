"""What a caller questions: the question's text, its options, and where the picture's bytes come from."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from service.errors import Code, VQAError
from service.scheduling import Urgency
from service.settings import Policy, Priority

DEFAULT_TOP_K = 5
MAX_TOP_K = 100

# Letters by category that draw nothing: the Hangul fillers and the blank Braille pattern.
_BLANK_LETTERS = frozenset("\u115f\u1160\u3164\uffa0\u2800")
_SPACES = frozenset("\t\n\r\x0b\x0c\x1c\x1d\x1e\x1f\x85")


class Freshness(Enum):
    """How a caller wants the cache used, as HTTP's `Cache-Control` says it."""

    CACHED = "cached"
    """As usual."""
    FRESH = "no-cache"
    """Ask the model itself: neither look the answer up nor join a question under way, but keep what comes."""
    PRIVATE = "no-store"
    """As `FRESH`, and keep nothing."""

    @property
    def looks_up(self) -> bool:
        """Whether an earlier answer, or one that others wait for, will do."""
        return self is Freshness.CACHED

    @property
    def stores(self) -> bool:
        """Whether the answer may be kept."""
        return self is not Freshness.PRIVATE


@dataclass(frozen=True, slots=True)
class Picture:
    """Where a picture's bytes come from.

    Attributes:
        load: gives the encoded bytes; called once, in a thread where that may take long.
        field: the request field that holds it, for error messages.
        size: bytes (or characters of base64) that `load` goes through; None where that is not known.
    """

    load: Callable[[], bytes]
    field: str = "image"
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """One question with its options, as the contract of `POST /answer` has them; None leaves it to the server."""

    text: str
    choices: tuple[str, ...] | None = None
    answer_set: str | None = None
    policy: Policy | None = None
    model: str | None = None
    max_risk: float | None = None
    top_k: int = DEFAULT_TOP_K
    priority: Priority = "interactive"


def clean_text(text: str, max_chars: int) -> str:
    """A question's text with runs of white space made one blank.

    Raises:
        VQAError: `question_invalid` (control characters, unpaired surrogates), `question_empty` (nothing visible) or
            `question_too_long`.
    """
    if len(text) > 4 * max_chars:
        # Not worth looking at letter by letter.
        raise _too_long(len(text), max_chars)
    cleaned = " ".join(text.split())
    if text.isascii() and text.isprintable():
        visible = bool(cleaned)  # as most are: nothing to be looked at letter by letter
    else:
        _check_letters(text)
        visible = any(unicodedata.category(char)[0] not in "CZM" and char not in _BLANK_LETTERS for char in cleaned)
    if not visible:
        raise VQAError(Code.QUESTION_EMPTY, "The question has no visible character. Ask something.", field="question")
    if len(cleaned) > max_chars:
        raise _too_long(len(cleaned), max_chars)
    return cleaned


def _check_letters(text: str) -> None:
    for position, char in enumerate(text):
        category = unicodedata.category(char)
        if category == "Cs" or (category == "Cc" and char not in _SPACES):
            what = "an unpaired surrogate" if category == "Cs" else f"the control character U+{ord(char):04X}"
            raise VQAError(
                Code.QUESTION_INVALID,
                f"The question holds {what} at position {position}. Send plain text.",
                field="question",
            )


def _too_long(length: int, limit: int) -> VQAError:
    return VQAError(
        Code.QUESTION_TOO_LONG,
        f"The question has {length:,} characters; the limit is {limit:,}.",
        field="question",
        extra={"limit": limit},
    )


class Caller:
    """Who asks, and whether they are still there.

    Args:
        tenant: whose questions they are; tenants share no cache and no computation.
        freshness: whether an answer that was computed before, or for somebody else, will do.
    """

    def __init__(self, tenant: str = "", freshness: Freshness = Freshness.CACHED) -> None:
        self.tenant = tenant
        self.freshness = freshness
        self._gone = False
        self._waiting: list[Urgency] = []

    def waits(self, urgency: Urgency) -> None:
        """One more question of this caller is under way."""
        self._waiting.append(urgency)
        if self._gone:
            urgency.abandon()

    def leave(self) -> None:
        """The caller has gone: at once nothing of theirs that still waits will be begun."""
        self._gone = True
        for urgency in self._waiting:
            urgency.abandon()
