"""What every contestant gives back, and the model behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Answer:
    """The best answer's text and its probability, in [0, 1]."""

    text: str
    score: float

    def json(self) -> dict[str, object]:
        """As the peers' servers send it."""
        return {"answer": self.text, "score": self.score}


class Model(Protocol):
    """The work of comparison (a) or (b)."""

    def prepare(self, picture: bytes, question: str) -> Any:
        """Bytes and text, ready for the model."""

    def answer(self, items: Sequence[Any]) -> list[Answer]:
        """The best answer of each prepared question, in order."""

    def ask(self, picture: bytes, question: str) -> Answer:
        """One question, from bytes to answer."""
