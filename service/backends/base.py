"""What a backend is, whoever runs it and wherever."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from service.answers import AnswerSet, Calibration, Posterior, ScoreKind
from service.images import DecodedImage
from service.scheduling import Urgency


class State(StrEnum):
    """Where a backend stands."""

    STARTING = "starting"
    READY = "ready"
    FAILED = "failed"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Health:
    """A backend's state, and in words why it is not ready."""

    state: State
    detail: str = ""


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """Which model answers.

    `revision` is the digest of its manifest; `calibration` the id of its fitted data, None where nothing is fitted.
    """

    name: str
    revision: str
    calibration: str | None
    demo: bool


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that the caller should know about an answer: a stable code and a sentence."""

    code: str
    message: str


QUESTION_NOT_UNDERSTOOD: Final = "question_not_understood"
"""The code of the notice that the model knows no word of a question, whose answer is then withheld."""


@dataclass(frozen=True, slots=True)
class Scored:
    """A backend's reply to one question; times in seconds.

    `withheld` says that the backend knows its answer to be worthless, whatever its probability; a warning says why.
    """

    posterior: Posterior
    queue_s: float
    inference_s: float
    warnings: tuple[Notice, ...] = ()
    withheld: bool = False


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast a backend is, as learnt from what it has done.

    Attributes:
        cost_s: seconds of the whole machine that one more question takes while the backend is busy.
        latency_s: seconds that a question's own inference takes from beginning to end.
    """

    cost_s: float
    latency_s: float


class Backend(Protocol):
    """A model that answers questions about pictures.

    `start` loads and warms up, and returns once the backend is ready or raises; `health` may be asked at any time and
    costs nothing. The attributes below hold only after `start`.
    """

    name: str
    """`classifier` or `generator`."""

    @property
    def info(self) -> ModelInfo:
        """Which model answers."""

    @property
    def calibration(self) -> Calibration | None:
        """The model's fitted confidence, None where nothing is fitted."""

    @property
    def score_kind(self) -> ScoreKind:
        """What the model's scores are."""

    @property
    def default_set(self) -> AnswerSet:
        """The answers that a question may have when the caller names none."""

    @property
    def pace(self) -> Pace:
        """How fast it answers."""

    @property
    def preprocessing(self) -> str:
        """Version of what `prepare` does: equal bytes of a picture and equal versions give equal pictures."""

    async def start(self) -> None:
        """Load the model and run real inferences.

        Raises:
            Exception: it cannot be loaded; `health` says why from then on.
        """

    async def stop(self) -> None:
        """Refuse new work, finish or cancel what runs, and free the model."""

    def health(self) -> Health:
        """The state now, without any inference."""

    def missing(self, answer_set: AnswerSet) -> list[int]:
        """Indexes of the members of `answer_set` that this backend can never give; empty where it can give all."""

    def needed(self, height: int, width: int) -> tuple[int, int]:
        """The (height, width) in pixels to which `prepare` resizes an upright picture of this size."""

    def prepare(self, image: DecodedImage) -> object:
        """What the backend needs of a picture. CPU-bound: called in a decoding thread, never on the event loop."""

    def canonical(self, question: str) -> str:
        """What the answer depends on of a question's text: equal canonical texts get equal answers."""

    async def ask(self, picture: object, question: str, answer_set: AnswerSet, urgency: Urgency) -> Scored:
        """Answer one question.

        Args:
            picture: what `prepare` gave.
            question: cleaned text, not empty.
            answer_set: the answers allowed; the members that `missing` names get no probability.
            urgency: which question goes first; it may be raised while this one waits.

        Raises:
            VQAError: `backend_invalid_scores`, `backend_failed`, `saturated`, `deadline_exceeded` or `not_ready`.
        """
