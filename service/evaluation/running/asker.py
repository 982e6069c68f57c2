"""Who is asked: a gateway in this process or a server; and what an error means for a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from service.errors import Code
from service.evaluation.records import Prediction
from service.scoring.scores import QuestionId

MOST_A_REQUEST: Final = 64
"""Questions about one picture that are asked together, as many as `POST /answers` takes."""

TOP_K: Final = 10
"""Candidates kept of each answer."""

UNREACHABLE: Final = "unreachable"
"""The code of a server that could not be talked to; not one of the service's own."""

# Tried again: the moment is bad, the question is not.
_LATER = frozenset((Code.NOT_READY, Code.SATURATED, Code.DRAINING, Code.DEADLINE_EXCEEDED, Code.BODY_TIMEOUT))
# What these say is true of every question of the run.
_FOR_ALL = frozenset(
    (
        Code.UNAUTHORIZED,
        Code.NOT_FOUND,
        Code.METHOD_NOT_ALLOWED,
        Code.UNKNOWN_FIELD,
        Code.MISSING_FIELD,
        Code.INVALID_FIELD,
        Code.UNKNOWN_MODEL,
        Code.GENERATOR_UNAVAILABLE,
        Code.CLASSIFIER_UNAVAILABLE,
    )
)


class RunError(Exception):
    """The run cannot go on; the message says why in a sentence."""


class InterruptedRunError(RunError):
    """As `RunError`, after questions were asked: what was answered is kept, and the same run goes on from there."""


@dataclass(frozen=True, slots=True)
class Later:
    """A question that was not answered for now: `code` and `detail` say why, `after_s` when to ask again."""

    question_id: QuestionId
    code: str
    detail: str
    after_s: float = 0.0


Outcome = Prediction | Later


class Asker(Protocol):
    """Answers questions about pictures."""

    @property
    def place(self) -> str:
        """Where the answers come from, for people: `this process` or a URL."""

    async def start(self) -> None:
        """Make ready.

        Raises:
            RunError: nobody can be asked.
        """

    async def models(self) -> list[dict[str, Any]]:
        """The models that answer: `id`, `backend`, `revision` and `calibration` of each, once started.

        Raises:
            RunError: they cannot be had.
        """

    async def ask(self, picture: bytes, questions: Sequence[tuple[QuestionId, str]]) -> list[Outcome]:
        """Ask at most `MOST_A_REQUEST` questions about one picture (its encoded bytes).

        Returns:
            One outcome a question, in order. A question's own problem is a prediction with `error`.

        Raises:
            RunError: no question can be asked this way.
        """

    async def close(self) -> None:
        """Let go of everything."""


def problem(question_id: QuestionId, code: str, detail: str, after_s: float | None = None) -> Outcome:
    """What an error of the service means for one question.

    Raises:
        RunError: it would be the same for all.
    """
    if code in _FOR_ALL:
        raise RunError(f"{code}: {detail}")
    if code in _LATER:
        return Later(question_id, code, detail, after_s or 0.0)
    return Prediction(question_id, error=code, detail=detail)
