"""The classifier: a ViLT for visual question answering in ONNX Runtime, over its fixed vocabulary."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context

import numpy as np
from numpy.typing import NDArray

from service.answers import AnswerSet, Calibration, Posterior, ScoreKind
from service.backends.base import Health, ModelInfo, Notice, Pace, Scored, State
from service.backends.manifest import ModelManifest
from service.backends.session import Device
from service.backends.tokenizer import EncodedQuestion
from service.backends.vilt import Item, ViltModel
from service.errors import Code, VQAError
from service.images import DecodedImage
from service.scheduling import Batcher, Urgency

log = logging.getLogger(__name__)

# Seconds between tries once the model has failed on an inference that must work.
PROBE_EVERY_S = 5.0

DEMO_WARNING = Notice(
    "demo_model",
    "This is a demonstration model: it knows drawn shapes, not photographs. Its answer may not be relied on.",
)


class ViltClassifier:
    """A `Backend` over one model folder, in this process.

    Args:
        manifest: the model.
        device, device_id: where it runs.
        threads: threads of one inference.
        max_batch: most questions of one inference.
        observe_batch: told the size of each batch.
    """

    name = "classifier"

    def __init__(
        self,
        manifest: ModelManifest,
        *,
        device: Device = "cpu",
        device_id: int = 0,
        threads: int = 1,
        max_batch: int = 8,
        observe_batch: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._manifest = manifest
        self._device = device
        self._device_id = device_id
        self.threads = threads
        self._max_batch = max_batch
        self._health = Health(State.STARTING)
        self._model: ViltModel | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="inference")
        self._probe: asyncio.Task[None] | None = None
        self._batcher: Batcher[Item, NDArray[np.float32]] = Batcher(
            self._run, max_batch=max_batch, observe_batch=observe_batch
        )

    @property
    def info(self) -> ModelInfo:
        """The model that answers."""
        manifest, calibration = self._manifest, self._model.calibration if self._model else None
        return ModelInfo(
            manifest.model.name,
            manifest.revision,
            calibration.id if calibration else None,
            manifest.model.demo,
        )

    @property
    def calibration(self) -> Calibration | None:
        """The model's fitted confidence."""
        return self._loaded.calibration

    @property
    def score_kind(self) -> ScoreKind:
        """Softmax or sigmoid, as the manifest says."""
        return ScoreKind(self._manifest.scores.kind)

    @property
    def default_set(self) -> AnswerSet:
        """The whole vocabulary."""
        return self._loaded.vocabulary.default_set

    @property
    def pace(self) -> Pace:
        """p"""
        return Pace(0.001, 0.002)

    @property
    def preprocessing(self) -> str:
        """p"""
        return "1"

    def canonical(self, question: str) -> str:
        """c"""
        return question

    @property
    def waiting(self) -> int:
        """Questions that wait for the model."""
        return self._batcher.waiting

    @property
    def _loaded(self) -> ViltModel:
        if self._model is None:
            raise VQAError(Code.NOT_READY, "The model is not loaded yet. Try again shortly.", retry_after_s=2)
        return self._model

    def health(self) -> Health:
        """The state now."""
        return self._health

    async def start(self) -> None:
        """Check the folder's digests, load, and run inferences of the smallest, the usual and the largest shape.

        Raises:
            ManifestError: the folder is not what its manifest says.
            SettingsError: the device is not to be had.
        """
        loop = asyncio.get_running_loop()
        try:
            self._model = await loop.run_in_executor(self._thread, self._load)
        except BaseException:
            # A cancelled start too must not look as if it went on.
            self._health = Health(State.FAILED, "it could not be loaded; the log says why")
            raise
        self._health = Health(State.READY)

    async def stop(self) -> None:
        """Let running batches finish and free the session."""
        self._health = Health(State.STOPPED)
        if self._probe is not None:
            self._probe.cancel()
        await self._batcher.close()
        # In a thread, since a model that is still being loaded is waited for.
        await asyncio.to_thread(self._thread.shutdown)
        self._model = None

    def missing(self, answer_set: AnswerSet) -> list[int]:
        """Members that no label of the vocabulary stands for."""
        return self._loaded.vocabulary.covers(answer_set)

    def prepare(self, image: DecodedImage) -> object:
        """Resize and normalise: float32 (3, H, W)."""
        return self._loaded.processor(image.pixels)

    async def ask(self, picture: object, question: str, answer_set: AnswerSet, urgency: Urgency) -> Scored:
        """Answer one question about a prepared picture."""
        model = self._loaded
        if not isinstance(picture, np.ndarray):
            raise TypeError("the picture must be what prepare() gave")
        encoded = model.tokenizer.encode(question)
        item = model.item(picture, encoded.ids)
        batched = await self._batcher.submit(item.key, item, urgency)
        projection = model.vocabulary.project(answer_set)
        try:
            posterior = Posterior.from_logits(batched.result, projection, answer_set, self.score_kind)
        except VQAError:
            self._suspect()
            raise
        warnings = self._warnings(encoded)
        return Scored(posterior, batched.queue_s, batched.run_s, warnings, withheld=encoded.words == 0)

    def _warnings(self, encoded: EncodedQuestion) -> tuple[Notice, ...]:
        found = [DEMO_WARNING] if self._manifest.model.demo else []
        if encoded.cut:
            limit = self._manifest.tokenizer.max_tokens
            found.append(
                Notice(
                    "question_truncated",
                    f"The model reads {limit} tokens (its two marks included); the last {encoded.cut} of "
                    f"{limit + encoded.cut} were cut off.",
                )
            )
        if encoded.words == 0:
            found.append(Notice("question_not_understood", "The model knows no word of the question."))
        elif encoded.unknown > encoded.words:
            found.append(Notice("question_partly_understood", "The model does not know most words of the question."))
        return tuple(found)

    async def _run(self, items: Sequence[Item]) -> Sequence[NDArray[np.float32] | Exception]:
        model = self._loaded
        try:
            logits = await asyncio.get_running_loop().run_in_executor(self._thread, model.logits, items)
        except Exception:
            self._suspect()
            raise
        return list(logits)

    def _suspect(self) -> None:
        """After a failure: find out whether it was the question or the model."""
        if self._health.state is not State.STOPPED and (self._probe is None or self._probe.done()):
            self._probe = asyncio.get_running_loop().create_task(self._probe_until_well(), context=Context())

    async def _probe_until_well(self) -> None:
        """Run an inference that must work; while it does not, the backend is not ready."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                await loop.run_in_executor(self._thread, self._loaded.probe)
            except Exception:
                # Whatever it throws is the finding.
                log.exception("the model fails on a picture and a question that it must answer")
                self._health = Health(State.FAILED, "an inference that must work fails; the log says why")
            else:
                self._health = Health(State.READY)
                return
            await asyncio.sleep(PROBE_EVERY_S)

    def _load(self) -> ViltModel:
        model = ViltModel.open(self._manifest, self._device, self._device_id, self.threads)
        model.warm_up(self._max_batch)
        return model
