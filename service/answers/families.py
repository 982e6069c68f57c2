"""Which answers say "this cannot be answered from the picture".

A label belongs to the family as a whole or not at all; parts of it never count, because "answerable" stands
in "unanswerable" and "unknown brand" is an answer. The members (`data/unanswerable.txt`) are VizWiz' two
labels, the sentences of that kind among the 3,129 answers of VQA v2 (GQA's 1,842 hold none), and their
everyday variants.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Final

UNANSWERABLE: Final = "unanswerable"
"""How the service itself says it."""

_APOSTROPHES: Final = re.compile("['\u2019\u2018\u02bc`\u00b4]")
_NOT_A_WORD: Final = re.compile(r"[\W_]+")
_ARTICLES: Final = frozenset({"a", "an", "the"})


def is_unanswerable(label: str) -> bool:
    """Whether a label, in any case and punctuation, says that the question cannot be answered."""
    return _family_key(label) in _MEMBERS


def mostly_unanswerable(answers: Sequence[str]) -> bool:
    """Whether at least half of the people said that the question cannot be answered."""
    return 2 * sum(map(is_unanswerable, answers)) >= len(answers)


def _family_key(label: str) -> str:
    text = _APOSTROPHES.sub("", unicodedata.normalize("NFKC", label).casefold())
    return " ".join(word for word in _NOT_A_WORD.sub(" ", text).split() if word not in _ARTICLES)


def _read_members() -> frozenset[str]:
    text = (Path(__file__).parent / "data" / "unanswerable.txt").read_text(encoding="utf-8")
    return frozenset(_family_key(line) for line in text.splitlines() if line and not line.startswith("#"))


_MEMBERS: Final = _read_members()
