"""A backend whose every move a test decides: slow, broken, or with chosen scores."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import numpy as np

from service.answers import AnswerSet, Posterior, ScoreKind, Vocabulary
from service.backends import Health, ModelInfo, Pace, Scored, State
from service.images import DecodedImage
from service.scheduling import Urgency


class ScriptedBackend:
    """Gives the same logits to every question.

    Args:
        labels, logits: the vocabulary and its scores.
        score_kind: what the scores are.
        sleep_s: how long an answer takes.
        error: raised in place of an answer.
        start_gate: `start` waits for it.
        pace: what it says of its own speed.
        preprocessing: what it says of how it prepares pictures.
    """

    def __init__(
        self,
        labels: Sequence[str] = ("yes", "no", "unanswerable"),
        logits: Sequence[float] = (4.0, -1.0, -2.0),
        *,
        name: str = "classifier",
        model: str = "scripted",
        score_kind: str = "softmax",
        sleep_s: float = 0.0,
        error: Exception | None = None,
        prepare_error: Exception | None = None,
        start_gate: threading.Event | None = None,
        start_error: Exception | None = None,
        pace: Pace = Pace(cost_s=0.001, latency_s=0.001),  # noqa: B008 - frozen
        preprocessing: str = "scripted",
    ) -> None:
        self.name = name
        self._model = model
        self._vocabulary = Vocabulary(list(labels))
        self._logits = np.asarray(logits, dtype=np.float32)
        self.score_kind = ScoreKind(score_kind)
        self._sleep_s = sleep_s
        self._error = error
        self._prepare_error = prepare_error
        self._start_gate = start_gate
        self._start_error = start_error
        self._health = Health(State.STARTING)
        self.asked: list[str] = []
        self.quick: set[str] = set()
        self.cancelled = 0
        self.prepared: list[DecodedImage] = []
        self.calibration = None
        self.pace = pace
        self.preprocessing = preprocessing
        self.urgencies: list[Urgency] = []

    @property
    def info(self) -> ModelInfo:
        return ModelInfo(self._model, "0" * 16, None, demo=False)

    @property
    def default_set(self) -> AnswerSet:
        return self._vocabulary.default_set

    async def start(self) -> None:
        if self._start_gate is not None:
            await asyncio.to_thread(self._start_gate.wait)
        if self._start_error is not None:
            self._health = Health(State.FAILED, str(self._start_error))
            raise self._start_error
        self._health = Health(State.READY)

    async def stop(self) -> None:
        self._health = Health(State.STOPPED)

    def health(self) -> Health:
        return self._health

    def fail(self) -> None:
        """From now on the backend is not healthy."""
        self._health = Health(State.FAILED, "scripted")

    def missing(self, answer_set: AnswerSet) -> list[int]:
        return self._vocabulary.covers(answer_set)

    def needed(self, height: int, width: int) -> tuple[int, int]:
        return height, width

    def prepare(self, image: DecodedImage) -> object:
        if self._prepare_error is not None:
            raise self._prepare_error
        self.prepared.append(image)
        return image

    def canonical(self, question: str) -> str:
        return question

    async def ask(self, _picture: object, question: str, answer_set: AnswerSet, urgency: Urgency) -> Scored:
        self.asked.append(question)
        self.urgencies.append(urgency)
        try:
            await asyncio.sleep(self._sleep_s if question not in self.quick else 0)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self._error is not None:
            raise self._error
        projection = self._vocabulary.project(answer_set)
        posterior = Posterior.from_logits(self._logits, projection, answer_set, self.score_kind)
        return Scored(posterior, queue_s=0.0, inference_s=self._sleep_s)
