"""The gateway: takes a picture and its questions all the way to replies."""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from service.answers import finish
from service.backends import Backend, Health, State
from service.errors import Code, VQAError
from service.gateway.admission import Admission
from service.gateway.deadline import Deadline
from service.gateway.question import Picture, Question, clean_text
from service.gateway.reply import ImageFacts, Reply, StageTimes
from service.gateway.router import AnswerSets, Plan, Router
from service.gateway.tally import Tally
from service.images import ImageLimits, decode_image
from service.scheduling import Urgency, WorkerThreads
from service.settings import Settings
from service.telemetry.metrics import Metrics

log = logging.getLogger(__name__)

T = TypeVar("T")
Outcome = Reply | VQAError

# Building a set takes some 10 µs a choice; more than this many would be felt by everybody else on the event loop.
_MANY_CHOICES = 256


@dataclass(frozen=True, slots=True)
class _Planned:
    """A question with its cleaned text and the way it goes."""

    question: Question
    plan: Plan


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A decoded picture as each backend wants it (or why it could not be had), and what that cost, in seconds."""

    facts: ImageFacts
    by_backend: Mapping[str, object | VQAError]
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
        self, settings: Settings, backends: Mapping[str, Backend], decoder: WorkerThreads, metrics: Metrics
    ) -> None:
        self._settings = settings
        self._backends = backends
        self._decoder = decoder
        self._metrics = metrics
        self._tally = Tally(metrics)
        self._router = Router(backends, settings.policy)
        self._admission = Admission(settings.max_in_flight, metrics.in_flight.set)
        self._limits = ImageLimits(max_bytes=settings.max_image_bytes, max_pixels=settings.max_image_pixels)
        self._draining = False

    @property
    def backends(self) -> Mapping[str, Backend]:
        """The backends by name."""
        return self._backends

    @property
    def draining(self) -> bool:
        """Whether the service is shutting down."""
        return self._draining

    def ready(self) -> bool:
        """Whether a question that names no policy and no choices would be answered now."""
        return not self._draining and self._router.can_answer()

    def drain(self) -> None:
        """Take no further requests; those that have begun are finished."""
        self._draining = True

    def check_accepting(self) -> None:
        """Called when a request begins.

        Raises:
            VQAError: `draining`.
        """
        if self._draining:
            raise VQAError(Code.DRAINING, "The service is shutting down. Ask another replica.", retry_after_s=1)

    async def check_options(self, question: Question) -> None:
        """Refuse options that no question could be asked with; the text is not looked at.

        Raises:
            VQAError: as `Router.plan`.
        """
        await self._off_loop(len(question.choices or ()), lambda: self._router.plan(question, AnswerSets()))

    def health(self) -> dict[str, Health]:
        """The state of each backend."""
        return {name: backend.health() for name, backend in self._backends.items()}

    async def start(self) -> None:
        """Start every backend; one that fails is logged and stays failed, the others go on.

        Raises:
            ExceptionGroup: no backend came up.
        """
        results = await asyncio.gather(*(b.start() for b in self._backends.values()), return_exceptions=True)
        failures: list[Exception] = []
        for backend, error in zip(self._backends.values(), results, strict=True):
            self._metrics.backend_up.labels(backend.name).set_function(partial(_is_ready, backend))
            if isinstance(error, Exception):
                log.error("the %s did not start: %s: %s", backend.name, type(error).__name__, error)
                failures.append(error)
                continue
            info = backend.info
            self._metrics.model_info.labels(backend.name, info.name, info.revision, info.calibration or "none").set(1)
        if len(failures) == len(self._backends):
            raise ExceptionGroup("no backend started", failures)

    async def stop(self) -> None:
        """Stop the backends and the decoders."""
        self.drain()
        await asyncio.gather(*(backend.stop() for backend in self._backends.values()))
        await self._decoder.close()

    async def answer(self, picture: Picture, question: Question | VQAError, timeout_ms: int | None = None) -> Reply:
        """Answer one question.

        Raises:
            VQAError: whatever a caller must be told.
        """
        [outcome] = await self.answer_all(picture, [question], timeout_ms)
        if isinstance(outcome, VQAError):
            raise outcome
        return outcome

    async def answer_all(
        self, picture: Picture, questions: Sequence[Question | VQAError], timeout_ms: int | None = None
    ) -> list[Outcome]:
        """Answer many questions about one picture, decoded once.

        Args:
            picture: where its bytes come from.
            questions: one that the door has refused already keeps its place as its error.
            timeout_ms: deadline of all together, from now; None takes the default.

        Returns:
            A reply or an error for each question, in order: a bad question, or a late one, does not spoil its
            neighbours.

        Raises:
            VQAError: what concerns all of them: the picture, the service's state, the deadline while decoding.
        """
        try:
            timeout_ms = self._timeout_ms(timeout_ms)
            with self._admission.permits(len(questions)):
                outcomes = await self._answer_all(picture, questions, timeout_ms)
        except VQAError as error:
            self._tally.error(error.code, len(questions))
            raise
        except asyncio.CancelledError:
            code = Code.DRAINING if self._draining else Code.CLIENT_CLOSED_REQUEST
            self._tally.error(code, len(questions))
            raise
        except Exception:
            # A fault of ours, counted on its way to the door's last net.
            self._tally.error(Code.INTERNAL_ERROR, len(questions))
            raise
        late = [o for o in outcomes if isinstance(o, VQAError) and o.code is Code.DEADLINE_EXCEEDED]
        if late and len(late) == len(outcomes):
            raise late[0]
        return outcomes

    async def _answer_all(
        self, picture: Picture, questions: Sequence[Question | VQAError], timeout_ms: int
    ) -> list[Outcome]:
        started = time.perf_counter()
        deadline = Deadline.after(timeout_ms)
        async with deadline.applied():
            plans = await self._plan_all(questions)
            asked = [plan for plan in plans if isinstance(plan, _Planned)]
            wanted = {planned.plan.backend.name: planned.plan.backend for planned in asked}
            prepared = await self._prepare(picture, list(wanted.values())) if asked else None
        answered: list[Outcome] = []
        if prepared is not None:
            answered = await asyncio.gather(*(self._outcome(prepared, each, started, deadline) for each in asked))
        # Counted here, where nothing can be cancelled any more: each question once, whatever happened to the others.
        for planned, outcome in zip(asked, answered, strict=True):
            self._tally.outcome(outcome, planned.plan.backend.name)
        for plan in plans:
            if isinstance(plan, VQAError):
                self._tally.error(plan.code)
        remaining = iter(answered)
        return [plan if isinstance(plan, VQAError) else next(remaining) for plan in plans]

    async def _plan_all(self, questions: Sequence[Question | VQAError]) -> list[_Planned | VQAError]:
        def work() -> list[_Planned | VQAError]:
            sets = AnswerSets()
            return [q if isinstance(q, VQAError) else self._plan(q, sets) for q in questions]

        choices = sum(len(q.choices) for q in questions if isinstance(q, Question) and q.choices)
        return await self._off_loop(choices, work)

    async def _off_loop(self, choices: int, work: Callable[[], T]) -> T:
        """Do `work` in a decoding thread if it concerns many choices, else here and now."""
        return await self._decoder.run(work) if choices > _MANY_CHOICES else work()

    def _plan(self, question: Question, sets: AnswerSets) -> _Planned | VQAError:
        try:
            text = clean_text(question.text, self._settings.max_question_chars)
            return _Planned(dataclasses.replace(question, text=text), self._router.plan(question, sets))
        except VQAError as error:
            return error

    async def _prepare(self, picture: Picture, backends: Sequence[Backend]) -> _Prepared:
        asked = time.perf_counter()

        def work() -> _Prepared:
            begun = time.perf_counter()
            data = picture.load()
            image = decode_image(data, limits=self._limits)
            by_backend: dict[str, object | VQAError] = {}
            for backend in backends:
                try:
                    by_backend[backend.name] = backend.prepare(image)
                except Exception:
                    # One backend's fault leaves the questions of the others alone.
                    log.exception("the %s could not prepare a picture", backend.name)
                    by_backend[backend.name] = _backend_failed(backend)
            facts = ImageFacts(hashlib.sha256(data).hexdigest(), image.width, image.height)
            return _Prepared(facts, by_backend, begun - asked, time.perf_counter() - begun)

        try:
            prepared = await self._decoder.run(work)
        except VQAError as error:
            raise error.at(picture.field) from None
        self._metrics.stage_seconds.labels("decode_queue").observe(prepared.decode_queue_s)
        self._metrics.stage_seconds.labels("decode").observe(prepared.decode_s)
        return prepared

    async def _outcome(self, prepared: _Prepared, planned: _Planned, started: float, deadline: Deadline) -> Outcome:
        """One question's reply or error."""
        backend = planned.plan.backend
        try:
            async with deadline.applied():
                return await self._ask(prepared, planned, started)
        except VQAError as error:
            return error
        except Exception:
            # A backend may throw anything; it stays this question's.
            log.exception("the %s failed", backend.name)
            return _backend_failed(backend)

    async def _ask(self, prepared: _Prepared, planned: _Planned, started: float) -> Reply:
        question, plan = planned.question, planned.plan
        picture = prepared.by_backend[plan.backend.name]
        if isinstance(picture, VQAError):
            raise picture
        scored = await plan.backend.ask(picture, question.text, plan.answer_set, Urgency())
        finishing = time.perf_counter()
        verdict = finish(scored.posterior, plan.backend.calibration, top_k=question.top_k, max_risk=question.max_risk)
        if scored.withheld:
            verdict = verdict.withheld()
        now = time.perf_counter()
        stages = self._metrics.stage_seconds
        stages.labels("queue").observe(scored.queue_s)
        stages.labels("inference").observe(scored.inference_s)
        stages.labels("finish").observe(now - finishing)
        times = StageTimes(
            prepared.decode_queue_s, prepared.decode_s, scored.queue_s, scored.inference_s, now - started
        )
        warnings = plan.warnings + scored.warnings
        return Reply(verdict, plan.route, plan.backend.info, prepared.facts, warnings, times)

    def _timeout_ms(self, wanted: int | None) -> int:
        if wanted is None:
            return self._settings.default_timeout_ms
        limit = self._settings.max_timeout_ms
        if wanted > limit:
            detail = f"The longest deadline is {limit} ms."
            raise VQAError(Code.INVALID_FIELD, detail, field="timeout_ms", extra={"limit": limit})
        return wanted


def _backend_failed(backend: Backend) -> VQAError:
    return VQAError(Code.BACKEND_FAILED, f"The {backend.name} failed on this question.")


def _is_ready(backend: Backend) -> float:
    return float(backend.health().state is State.READY)
