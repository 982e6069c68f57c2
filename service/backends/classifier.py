"""The classifier: a ViLT for visual question answering in ONNX Runtime, over its fixed vocabulary."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context
from dataclasses import dataclass
from importlib.metadata import version

import numpy as np
from numpy.typing import NDArray

from service.answers import AnswerSet, Calibration, Posterior, ScoreKind
from service.backends.base import QUESTION_NOT_UNDERSTOOD, Health, ModelInfo, Notice, Pace, Scored, State
from service.backends.layout import Layout, Way
from service.backends.loading import LayoutSetting, Loader
from service.backends.manifest import ModelManifest
from service.backends.session import Brake, Device
from service.backends.tokenizer import EncodedQuestion
from service.backends.vilt import Item, ViltModel
from service.errors import Code, VQAError
from service.images import DecodedImage
from service.scheduling import Batcher, ServiceTime, Urgency, once_abandoned, yield_to_event_loop

log = logging.getLogger(__name__)

# Seconds between tries once the model has failed on an inference that must work.
PROBE_EVERY_S = 5.0

# The revision of the manifest covers the processor's file; this covers the code that carries it out.
PREPROCESSING = f"2, pillow {version('pillow')}, simplejpeg {version('simplejpeg')}"

DEMO_WARNING = Notice(
    "demo_model",
    "This is a demonstration model: it knows drawn shapes, not photographs. Its answer may not be relied on.",
)


@dataclass(frozen=True, slots=True)
class _Work:
    item: Item
    urgency: Urgency


class ViltClassifier:
    """A `Backend` over one model folder, in this process.

    Args:
        manifest: the model.
        device, device_id, threads, max_batch, layout, measured: as the `Loader`'s.
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
        layout: LayoutSetting = "auto",
        measured: bool = True,
        observe_batch: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._manifest = manifest
        self.threads = threads
        self._health = Health(State.STARTING)
        self._model: ViltModel | None = None
        self._loader = Loader(manifest, device, device_id, threads, max_batch, layout, measured)
        # One more than ever infer at once: for loading, and for a probe beside them. ONNX Runtime's own threads are
        # started by these, and give way as they do.
        self._pool = ThreadPoolExecutor(threads + 1, thread_name_prefix="inference", initializer=yield_to_event_loop)
        self._layout = Layout.fixed(Way.WIDE, batch=max_batch, latency_s=0.0)
        self._alone = False
        self._cost, self._latency = ServiceTime(0.0), ServiceTime(0.0)
        self._probe: asyncio.Task[None] | None = None
        self._batcher: Batcher[_Work, NDArray[np.float32]] = Batcher(
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
    def waiting(self) -> int:
        """Questions that wait for the model."""
        return self._batcher.waiting

    @property
    def pace(self) -> Pace:
        """As measured at start, then as learnt from each batch."""
        return Pace(self._cost.seconds, self._latency.seconds)

    @property
    def preprocessing(self) -> str:
        """Version of the code that prepares pictures."""
        return PREPROCESSING

    @property
    def layout(self) -> Layout:
        """How the threads are used."""
        return self._layout

    @property
    def _loaded(self) -> ViltModel:
        if self._model is None:
            raise VQAError(Code.NOT_READY, "The model is not loaded yet. Try again shortly.", retry_after_s=2)
        return self._model

    def health(self) -> Health:
        """The state now."""
        return self._health

    async def start(self) -> None:
        """Check the folder's digests, load, measure, and run inferences of the extremes of size.

        Raises:
            ManifestError: the folder is not what its manifest says.
            SettingsError: the device is not to be had.
        """
        loop = asyncio.get_running_loop()
        try:
            self._model, self._layout = await loop.run_in_executor(self._pool, self._loader.load, self._pool)
        except BaseException:
            # A cancelled start too must not look as if it went on.
            self._health = Health(State.FAILED, "it could not be loaded; the log says why")
            raise
        self._cost, self._latency = ServiceTime(self._layout.cost_s), ServiceTime(self._layout.latency_s)
        self._steer(waiting=0, running=0)
        self._health = Health(State.READY)

    async def stop(self) -> None:
        """Let running batches finish and free the session."""
        self._health = Health(State.STOPPED)
        if self._probe is not None:
            self._probe.cancel()
        await self._batcher.close()
        # In a thread, since a model that is still being loaded is waited for.
        await asyncio.to_thread(self._pool.shutdown)
        self._model = None

    def missing(self, answer_set: AnswerSet) -> list[int]:
        """Members that no label of the vocabulary stands for."""
        return self._loaded.vocabulary.covers(answer_set)

    def needed(self, height: int, width: int) -> tuple[int, int]:
        """The processor's target size."""
        return self._loaded.processor.target_size(height, width)

    def prepare(self, image: DecodedImage) -> object:
        """Resize and normalise: float32 (3, H, W)."""
        return self._loaded.prepare(image)

    def canonical(self, question: str) -> str:
        """The question as the tokenizer normalises it."""
        return self._loaded.tokenizer.canonical(question)

    async def ask(self, picture: object, question: str, answer_set: AnswerSet, urgency: Urgency) -> Scored:
        """Answer one question about a prepared picture."""
        model = self._loaded
        if not isinstance(picture, np.ndarray):
            raise TypeError("the picture must be what prepare() gave")
        encoded = model.tokenizer.encode(question)
        item = model.item(picture, encoded.ids)
        self._steer(self._batcher.waiting + 1, self._batcher.running)
        batched = await self._batcher.submit(item.key, _Work(item, urgency), urgency)
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
            found.append(Notice(QUESTION_NOT_UNDERSTOOD, "The model knows no word of the question."))
        elif encoded.unknown > encoded.words:
            found.append(Notice("question_partly_understood", "The model does not know most words of the question."))
        return tuple(found)

    async def _run(self, work: Sequence[_Work]) -> Sequence[NDArray[np.float32] | Exception]:
        items, brake = [each.item for each in work], Brake()
        model, layout, batcher = self._loaded, self._layout, self._batcher
        alone = batcher.running == 1 and len(items) + batcher.waiting <= layout.patience
        way = layout.idle if alone else layout.busy
        self._alone = way is not layout.busy
        self._steer(batcher.waiting, batcher.running)
        started = time.perf_counter()
        try:
            with once_abandoned([each.urgency for each in work], brake.apply):
                logits = await asyncio.get_running_loop().run_in_executor(self._pool, model.logits, items, way, brake)
        except Exception:
            if brake.applied:
                return [_nobody_waits()] * len(work)
            self._suspect()
            raise
        finally:
            busy = batcher.running >= batcher.runners and (batcher.waiting or len(items) >= batcher.max_batch)
            if self._alone:
                self._alone = False
                self._steer(batcher.waiting, batcher.running - 1)
        seconds = time.perf_counter() - started
        self._latency.observe(seconds)
        if busy and way is layout.busy:
            # Only then do all threads work: a runner on its own is quicker than one that shares the machine.
            self._cost.observe(seconds / (layout.runners[way] * len(items)))
        return list(logits)

    def _steer(self, waiting: int, running: int) -> None:
        """Let as many inferences run at once as the layout has them for this load.

        What comes while an inference has all threads waits for its end, though a narrow one could begin beside it:
        they would take the threads from each other. ViLT-B/32 on two threads, a second question half way through the
        first: waiting 74 and 112 ms for the two, narrow beside it 97 and 158, wide beside it 100 and 111.
        """
        layout, batcher = self._layout, self._batcher
        if self._alone:
            batcher.runners = 1
            return
        few = running == 0 and waiting <= layout.patience
        way = layout.idle if few else layout.busy
        batcher.max_batch = layout.batch[way]
        batcher.runners = layout.runners[way]

    def _suspect(self) -> None:
        """After a failure: find out whether it was the question or the model."""
        if self._health.state is not State.STOPPED and (self._probe is None or self._probe.done()):
            self._probe = asyncio.get_running_loop().create_task(self._probe_until_well(), context=Context())

    async def _probe_until_well(self) -> None:
        """Run an inference that must work; while it does not, the backend is not ready."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                await loop.run_in_executor(self._pool, self._loaded.check)
            except Exception:
                # Whatever it throws is the finding.
                log.exception("the model fails on a picture and a question that it must answer")
                self._health = Health(State.FAILED, "an inference that must work fails; the log says why")
            else:
                self._health = Health(State.READY)
                return
            await asyncio.sleep(PROBE_EVERY_S)


def _nobody_waits() -> VQAError:
    return VQAError(Code.CLIENT_CLOSED_REQUEST, "The inference was stopped, since nobody waited for it any more.")
