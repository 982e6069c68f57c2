"""The gateway: takes a picture and its questions all the way to replies."""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import logging
import time
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from service.answers import finish
from service.backends import Backend, Health, State
from service.errors import Code, VQAError
from service.gateway.admission import Admission
from service.gateway.question import Ask, Picture, clean_question
from service.gateway.reply import ImageFacts, Reply, StageTimes
from service.gateway.router import Plan, Router
from service.images import DecodePool, ImageLimits, decode_image
from service.settings import Settings
from service.telemetry.metrics import Metrics

log = logging.getLogger(__name__)

Outcome = Reply | VQAError


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A decoded picture as each backend wants it, and what the decoding cost, in seconds."""

    facts: ImageFacts
    by_backend: Mapping[str, object]
    decode_queue_s: float
    decode_s: float


class Gateway:
    """Answers questions about pictures with the backends that it was given.

    Args:
        settings: limits, deadlines and the default policy.
        backends: by name; started and stopped by the gateway.
        decoder: the pool in which pictures are decoded and prepared; closed by the gateway.
        metrics: where the questions are counted.
    """

    def __init__(
        self, settings: Settings, backends: Mapping[str, Backend], decoder: DecodePool, metrics: Metrics
    ) -> None:
        self._settings = settings
        self._backends = backends
        self._decoder = decoder
        self._metrics = metrics
        self._router = Router(backends, settings.policy)
        self._admission = Admission(settings.max_in_flight, metrics.in_flight.set)
        self._limits = ImageLimits(max_bytes=settings.max_image_bytes, max_pixels=settings.max_image_pixels)
        self.draining = False

    @property
    def backends(self) -> Mapping[str, Backend]:
        """The backends by name."""
        return self._backends

    def ready(self) -> bool:
        """Whether a question that names no policy would be answered now."""
        return not self.draining and self._router.can_answer()

    def check_accepting(self) -> None:
        """Called when a request begins; those that began before the service drains are finished.

        Raises:
            VQAError: `draining`.
        """
        if self.draining:
            raise VQAError(Code.DRAINING, "The service is shutting down. Ask another replica.", retry_after_s=1)

    def health(self) -> dict[str, Health]:
        """The state of each backend."""
        return {name: backend.health() for name, backend in self._backends.items()}

    async def start(self) -> None:
        """Start every backend; one that fails is logged and stays failed, the others go on.

        Raises:
            ExceptionGroup: no backend came up.
        """
        results = await asyncio.gather(*(b.start() for b in self._backends.values()), return_exceptions=True)
        failures = [error for error in results if isinstance(error, Exception)]
        for backend, error in zip(self._backends.values(), results, strict=True):
            if isinstance(error, BaseException):
                log.error("the %s did not start: %s", backend.name, error)
            self._metrics.backend_up.labels(backend.name).set_function(partial(_is_ready, backend))
            info = backend.info
            labels = (backend.name, info.name, info.revision, info.calibration or "none")
            self._metrics.model_info.labels(*labels).set(1)
        if len(failures) == len(self._backends):
            raise ExceptionGroup("no backend started", failures)

    async def stop(self) -> None:
        """Stop the backends and the decoders."""
        self.draining = True
        await asyncio.gather(*(backend.stop() for backend in self._backends.values()))
        self._decoder.shutdown()

    async def answer(self, picture: Picture, ask: Ask, timeout_ms: int | None = None) -> Reply:
        """Answer one question.

        Raises:
            VQAError: whatever a caller must be told.
        """
        [outcome] = await self.answer_all(picture, [ask], timeout_ms)
        if isinstance(outcome, VQAError):
            raise outcome
        return outcome

    async def answer_all(
        self, picture: Picture, asks: Sequence[Ask | VQAError], timeout_ms: int | None = None
    ) -> list[Outcome]:
        """Answer many questions about one picture, decoded once.

        Args:
            picture: where its bytes come from.
            asks: the questions; one that the door has refused already keeps its place as its error.
            timeout_ms: deadline of all together; None takes the default.

        Returns:
            A reply or an error for each question, in order: a bad question does not spoil its neighbours.

        Raises:
            VQAError: what concerns all of them: the picture, the deadline, the service's state.
        """
        started = time.perf_counter()
        seconds = self._timeout_s(timeout_ms)
        try:
            with self._admission.permits(len(asks)):
                outcomes = await _within(seconds, self._answer_all(picture, asks, started))
        except VQAError as error:
            self._count(error, len(asks))
            raise
        except asyncio.CancelledError:
            self._metrics.questions.labels("none", Code.CLIENT_CLOSED_REQUEST.value).inc(len(asks))
            raise
        for outcome in outcomes:
            self._count(outcome, 1)
        return outcomes

    async def _answer_all(self, picture: Picture, asks: Sequence[Ask | VQAError], started: float) -> list[Outcome]:
        plans = [ask if isinstance(ask, VQAError) else self._plan(ask) for ask in asks]
        wanted = {plan.backend.name: plan.backend for _, plan in _good(plans)}
        if not wanted:
            return [plan for plan in plans if isinstance(plan, VQAError)]
        prepared = await self._prepare(picture, list(wanted.values()))
        return await asyncio.gather(*(self._ask(prepared, plan, started) for plan in plans))

    def _plan(self, ask: Ask) -> tuple[Ask, Plan] | VQAError:
        try:
            question = clean_question(ask.question, self._settings.max_question_chars)
            return dataclasses.replace(ask, question=question), self._router.plan(ask)
        except VQAError as error:
            return error

    async def _prepare(self, picture: Picture, backends: Sequence[Backend]) -> _Prepared:
        asked = time.perf_counter()

        def work() -> _Prepared:
            begun = time.perf_counter()
            data = picture.load()
            image = decode_image(data, limits=self._limits)
            by_backend = {backend.name: backend.prepare(image) for backend in backends}
            facts = ImageFacts(hashlib.sha256(data).hexdigest(), image.width, image.height)
            return _Prepared(facts, by_backend, begun - asked, time.perf_counter() - begun)

        try:
            prepared = await self._decoder.run(work)
        except VQAError as error:
            raise error.at(picture.field) from None
        self._metrics.stage_seconds.labels("decode_queue").observe(prepared.decode_queue_s)
        self._metrics.stage_seconds.labels("decode").observe(prepared.decode_s)
        return prepared

    async def _ask(self, prepared: _Prepared, plan: tuple[Ask, Plan] | VQAError, started: float) -> Outcome:
        if isinstance(plan, VQAError):
            return plan
        ask, way = plan
        try:
            scored = await way.backend.ask(prepared.by_backend[way.backend.name], ask.question, way.answer_set)
            finishing = time.perf_counter()
            verdict = finish(scored.posterior, way.backend.calibration, top_k=ask.top_k, max_risk=ask.max_risk)
        except VQAError as error:
            return error
        except Exception:
            log.exception("the %s failed", way.backend.name)
            return VQAError(Code.BACKEND_FAILED, f"The {way.backend.name} failed on this question.")
        now = time.perf_counter()
        stages = self._metrics.stage_seconds
        stages.labels("queue").observe(scored.queue_s)
        stages.labels("inference").observe(scored.inference_s)
        stages.labels("finish").observe(now - finishing)
        times = StageTimes(
            prepared.decode_queue_s, prepared.decode_s, scored.queue_s, scored.inference_s, now - started
        )
        return Reply(verdict, way.route, way.backend.info, prepared.facts, way.warnings + scored.warnings, times)

    def _timeout_s(self, timeout_ms: int | None) -> float:
        if timeout_ms is None:
            return self._settings.default_timeout_ms / 1000
        if timeout_ms > self._settings.max_timeout_ms:
            raise VQAError(
                Code.INVALID_FIELD,
                f"The longest deadline is {self._settings.max_timeout_ms} ms.",
                field="timeout_ms",
                extra={"limit": self._settings.max_timeout_ms},
            )
        return timeout_ms / 1000

    def _count(self, outcome: Outcome, questions: int) -> None:
        if isinstance(outcome, VQAError):
            self._metrics.questions.labels("none", outcome.code.value).inc(questions)
            return
        verdict, backend = outcome.verdict, outcome.route.backend
        said = "abstained" if verdict.abstained else "unanswerable" if verdict.answerable is False else "answered"
        self._metrics.questions.labels(backend, said).inc()
        flag = {True: "true", False: "false", None: "unknown"}[verdict.answerable]
        self._metrics.answerable.labels(backend, flag).inc()
        if verdict.confidence is not None:
            self._metrics.confidence.labels(backend).observe(verdict.confidence)


def _is_ready(backend: Backend) -> float:
    return float(backend.health().state is State.READY)


def _good(plans: Sequence[tuple[Ask, Plan] | VQAError]) -> list[tuple[Ask, Plan]]:
    return [plan for plan in plans if not isinstance(plan, VQAError)]


async def _within(seconds: float, work: Coroutine[None, None, list[Outcome]]) -> list[Outcome]:
    """Await `work`, no longer than `seconds`.

    Raises:
        VQAError: `deadline_exceeded`.
    """
    try:
        async with asyncio.timeout(seconds) as limit:
            return await work
    except TimeoutError:
        if not limit.expired():
            raise
        raise VQAError(
            Code.DEADLINE_EXCEEDED,
            f"The question was not answered within {seconds * 1000:.0f} ms.",
            extra={"timeout_ms": round(seconds * 1000)},
        ) from None
