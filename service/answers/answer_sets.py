"""What may answer a question: a closed, ordered set of answers.

A set made of a caller's choices keeps the caller's own spelling and order, and carries the implicit member
"unanswerable" at its end. Members that the caller named are the caller's own, whatever they say: "unknown"
among the choices is a choice like any other. Only a choice that is the word "unanswerable" itself is the same
thing as the implicit member, which then keeps the caller's spelling and place.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Final

from service.answers.families import UNANSWERABLE
from service.answers.keys import match_key
from service.errors import Code, VQAError

MAX_CHOICES: Final = 4096
MAX_CHOICE_LENGTH: Final = 200
CHOICES: Final = "choices"
"""The name of every set that is made of a caller's choices."""

_DATA: Final = Path(__file__).parent / "data"
_NAMED_FILES: Final = {"yes-no": "yes_no.txt", "numbers": "numbers.txt", "colors": "colors.txt"}
NAMED_SETS: Final = tuple(_NAMED_FILES)
"""The answer sets that a caller can name."""


@dataclass(frozen=True)
class AnswerSet:
    """A closed set of answers.

    Attributes:
        name: "choices", a named set's name, or "vocabulary" for all a model knows.
        spellings: each member as it is given back, in the set's order.
        keys: each member's match key (see `match_key`); all different.
        unanswerable: the index of the member "unanswerable", or None where there is none.
        identity: a digest of keys and `unanswerable`; sets that differ only in spelling or name share it.
    """

    name: str
    spellings: tuple[str, ...]
    keys: tuple[str, ...]
    unanswerable: int | None
    identity: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if len(self.spellings) != len(self.keys) or len(set(self.keys)) != len(self.keys):
            raise ValueError("an answer set needs one key for each spelling, and no key twice")
        if self.unanswerable is not None and not 0 <= self.unanswerable < len(self.keys):
            raise ValueError(f"unanswerable is {self.unanswerable}; the set has {len(self.keys)} members")
        text = "\0".join((str(self.unanswerable), *self.keys))
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        object.__setattr__(self, "identity", digest)

    def __hash__(self) -> int:
        return hash(self.identity)

    def __len__(self) -> int:
        return len(self.keys)

    @classmethod
    def from_choices(cls, choices: Sequence[str]) -> AnswerSet:
        """The set of a caller's choices, with "unanswerable" added.

        Args:
            choices: 1 to 4,096 texts of at most 200 characters, in the caller's spelling. One choice alone is
                allowed: the question is then whether it or nothing answers.

        Raises:
            VQAError: `choices_invalid`, with `field` `choices` or `choices[i]`. Refused are: too few or too
                many, an entry that is no text, is blank, is too long or holds control characters or lone
                surrogates, and two entries that normalise alike ("two" and "2"), since no score could tell
                them apart.
        """
        if isinstance(choices, str) or not isinstance(choices, Sequence):
            raise _refuse("The choices must be a list of texts.")
        if not 1 <= len(choices) <= MAX_CHOICES:
            raise _refuse(f"There are {len(choices):,} choices; give 1 to {MAX_CHOICES:,}.")
        first_with: dict[str, int] = {}
        for i, choice in enumerate(choices):
            _check(choice, i)
            key = match_key(choice)
            if (j := first_with.setdefault(key, i)) != i:
                raise _refuse(
                    f"choices[{j}] and choices[{i}] are the same answer once normalised. Leave one out.",
                    i,
                )
        if list(first_with) == [UNANSWERABLE]:
            raise _refuse('The only choice is "unanswerable", which is always possible. Name an answer.', 0)
        return cls._with_unanswerable(CHOICES, tuple(choices), tuple(first_with))

    @classmethod
    def named(cls, name: str) -> AnswerSet:
        """One of the sets in `NAMED_SETS`, with "unanswerable" added.

        Raises:
            VQAError: `unknown_answer_set`, with `field` `answer_set`. ("open" is the absence of a set, and no
                set.)
        """
        if name not in _NAMED_FILES:
            raise VQAError(
                Code.UNKNOWN_ANSWER_SET,
                f"There is no such answer set. There are: {', '.join(NAMED_SETS)}.",
                field="answer_set",
            )
        return _named(name)

    @classmethod
    def _with_unanswerable(cls, name: str, spellings: tuple[str, ...], keys: tuple[str, ...]) -> AnswerSet:
        if UNANSWERABLE in keys:
            return cls(name, spellings, keys, keys.index(UNANSWERABLE))
        return cls(name, (*spellings, UNANSWERABLE), (*keys, UNANSWERABLE), len(keys))


@lru_cache(maxsize=len(NAMED_SETS))
def _named(name: str) -> AnswerSet:
    lines = (_DATA / _NAMED_FILES[name]).read_text(encoding="utf-8").splitlines()
    spellings = tuple(line for line in lines if line and not line.startswith("#"))
    return AnswerSet._with_unanswerable(name, spellings, tuple(map(match_key, spellings)))


def _check(choice: object, i: int) -> None:
    if not isinstance(choice, str):
        raise _refuse(f"choices[{i}] is not a text.", i)
    if len(choice) > MAX_CHOICE_LENGTH:
        raise _refuse(f"choices[{i}] has {len(choice):,} characters; at most {MAX_CHOICE_LENGTH} are allowed.", i)
    # Cc: control characters, NUL, newline; Cs: lone surrogates; Cf: invisible, allowed beside something
    # visible.
    categories = {unicodedata.category(letter) for letter in choice}
    if categories & {"Cc", "Cs"}:
        raise _refuse(f"choices[{i}] holds control characters or surrogates that are not text.", i)
    if all(letter.isspace() or unicodedata.category(letter) == "Cf" for letter in choice):
        raise _refuse(f"choices[{i}] is blank.", i)


def _refuse(detail: str, i: int | None = None) -> VQAError:
    return VQAError(Code.CHOICES_INVALID, detail, field="choices" if i is None else f"choices[{i}]")
