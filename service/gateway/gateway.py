"""The gateway: takes a picture and its questions all the way to replies."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from functools import partial

from service.answers import finish
from service.backends import Backend, Health, State
from service.errors import Code, ImageError, VQAError
from service.gateway.answering import Answered, Answering, Asked, Planned
from service.gateway.cache import Cache
from service.gateway.deadline import Deadline
from service.gateway.pictures import Pictures
from service.gateway.planning import Planner
from service.gateway.question import Caller, Picture, Question
from service.gateway.reply import ImageFacts, Reply, StageTimes
from service.gateway.router import Router
from service.gateway.tally import Tally
from service.images import ImageLimits
from service.scheduling import Admission, Urgency, WorkerThreads
from service.settings import Settings
from service.telemetry.metrics import Metrics

log = logging.getLogger(__name__)

Outcome = Reply | VQAError

# What is told once for a whole request, where it is the fate of all its questions.
_SHARED_FATES = (Code.DEADLINE_EXCEEDED, Code.SATURATED)


class Gateway:
    """Answers questions about pictures with the backends that it was given.

    Args:
        settings: limits, deadlines and the default policy.
        backends: by name; started and stopped by the gateway.
        decoder: the threads in which pictures are decoded and prepared; closed by the gateway.
        cache: of posteriors; closed by the gateway.
        metrics: where the questions are counted.
    """

    def __init__(
        self,
        settings: Settings,
        backends: Mapping[str, Backend],
        decoder: WorkerThreads,
        cache: Cache,
        metrics: Metrics,
    ) -> None:
        self._backends = backends
        self._decoder = decoder
        self._cache = cache
        self._metrics = metrics
        self._tally = Tally(metrics)
        self._router = Router(backends, settings.policy)
        self._planner = Planner(settings, self._router)
        limits = ImageLimits(max_bytes=settings.max_image_bytes, max_pixels=settings.max_image_pixels)
        self._pictures = Pictures(decoder, limits, metrics)
        admission = Admission(
            settings.max_in_flight,
            observe=metrics.in_flight.set,
            observe_wait=metrics.predicted_wait.observe,
            observe_shed=metrics.shed.inc,
        )
        self._answering = Answering(self._pictures, admission, cache, metrics)
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

    async def check_options(self, question: Question, questions: int) -> None:
        """Refuse options that none of so many questions could be asked with; the text is not looked at.

        Raises:
            VQAError: as `Router.plan`.
        """
        try:
            await self._planner.check_options(question)
        except VQAError as error:
            self._tally.error(error.code, questions)
            raise

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
            self._metrics.on_refresh(partial(_show_health, self._metrics, backend))
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
        await self._cache.close()

    async def answer(
        self,
        picture: Picture,
        question: Question | VQAError,
        timeout_ms: int | None = None,
        caller: Caller | None = None,
    ) -> Reply:
        """Answer one question; the arguments are those of `answer_all`.

        Raises:
            VQAError: whatever a caller must be told.
        """
        [outcome] = await self.answer_all(picture, [question], timeout_ms, caller)
        if isinstance(outcome, VQAError):
            raise outcome
        return outcome

    async def answer_all(
        self,
        picture: Picture,
        questions: Sequence[Question | VQAError],
        timeout_ms: int | None = None,
        caller: Caller | None = None,
    ) -> list[Outcome]:
        """Answer many questions about one picture, decoded once.

        Args:
            picture: where its bytes come from.
            questions: one that the door has refused already keeps its place as its error.
            timeout_ms: deadline of all together, from now; None takes the default.
            caller: who asks; by default nobody in particular, for whom a cached answer will do.

        Returns:
            A reply or an error for each question, in order: a bad question, or a late one, does not spoil its
            neighbours.

        Raises:
            VQAError: what concerns all of them: the picture, the service's state, the deadline, saturation.
        """
        try:
            deadline = Deadline.after(self._planner.timeout_ms(timeout_ms))
            outcomes, backends = await self._outcomes(picture, questions, deadline, caller or Caller())
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
        # Counted here, where nothing can be cancelled any more: each question once, whatever happened to the others.
        for outcome, backend in zip(outcomes, backends, strict=True):
            self._tally.outcome(outcome, backend)
        fates = {outcome.code if isinstance(outcome, VQAError) else None for outcome in outcomes}
        if len(fates) == 1 and isinstance(first := outcomes[0], VQAError) and first.code in _SHARED_FATES:
            raise first
        return outcomes

    async def _outcomes(
        self,
        picture: Picture,
        questions: Sequence[Question | VQAError],
        deadline: Deadline,
        caller: Caller,
    ) -> tuple[list[Outcome], list[str]]:
        """What became of each question, and the name of the backend that was asked ("none" where none was).

        Raises:
            VQAError: what concerns all of them.
        """
        started = time.perf_counter()
        async with deadline.applied():
            plans = await self._planner.plan_all(questions)
            planned = [plan for plan in plans if isinstance(plan, Planned)]
            if not planned:
                return [plan for plan in plans if isinstance(plan, VQAError)], ["none"] * len(plans)
            try:
                identified = await self._pictures.identify(picture)
            except VQAError as error:
                raise error.at(picture.field) from None
        backends = list({each.plan.backend.name: each.plan.backend for each in planned}.values())
        asked = Asked(identified, backends, caller)
        if len(planned) == 1:
            # The usual case, without a task of its own.
            answered = [await self._outcome(asked, planned[0], started, deadline)]
        else:
            answered = await asyncio.gather(*(self._outcome(asked, each, started, deadline) for each in planned))
        for outcome in answered:
            if isinstance(outcome, ImageError):
                # The picture is all of theirs, and it was refused.
                raise outcome.at(picture.field)
        remaining = iter(answered)
        outcomes = [plan if isinstance(plan, VQAError) else next(remaining) for plan in plans]
        return outcomes, ["none" if isinstance(plan, VQAError) else plan.plan.backend.name for plan in plans]

    async def _outcome(self, asked: Asked, planned: Planned, started: float, deadline: Deadline) -> Outcome:
        """One question's reply or error."""
        urgency = Urgency(deadline.at, planned.question.priority)
        asked.caller.waits(urgency)
        try:
            async with deadline.applied():
                answered = await self._answering.answer(asked, planned, urgency)
            return self._finish(asked, planned, answered, started)
        except VQAError as error:
            return error
        except Exception:
            # A fault of ours in what concerns one question stays this question's.
            log.exception("a question failed")
            return VQAError(Code.INTERNAL_ERROR, "The service has a fault; it was logged under this request id.")

    def _finish(self, asked: Asked, planned: Planned, answered: Answered, started: float) -> Reply:
        """From a posterior to what is said, with all that is the caller's own: calibration, risk, candidates."""
        question, plan, content = planned.question, planned.plan, answered.content
        finishing = time.perf_counter()
        calibration = plan.backend.calibration
        verdict = finish(
            content.posterior,
            calibration,
            statistics=content.statistics,
            top_k=question.top_k,
            max_risk=question.max_risk,
        )
        if content.withheld:
            verdict = verdict.withheld()
        now = time.perf_counter()
        stages = self._metrics.stages
        if not answered.cached:
            stages["queue"].observe(answered.queue_s)
            stages["inference"].observe(answered.inference_s)
        stages["finish"].observe(now - finishing)
        facts = ImageFacts(asked.picture.sha256, content.width, content.height)
        times = StageTimes(
            answered.decode_queue_s, answered.decode_s, answered.queue_s, answered.inference_s, now - started
        )
        warnings = plan.warnings + content.warnings
        return Reply(verdict, plan.route, plan.backend.info, facts, answered.cached, warnings, times)


def _show_health(metrics: Metrics, backend: Backend) -> None:
    metrics.backend_up.labels(backend.name).set(backend.health().state is State.READY)
