"""One question's posterior: from the cache, from somebody's computation of the same, or from a backend."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from service.backends import Backend, Scored
from service.errors import Code, VQAError
from service.gateway.cache import Cache, Cached, CacheKey
from service.gateway.pictures import Identified, Pictures
from service.gateway.question import Caller, Question
from service.gateway.router import Plan
from service.scheduling import Admission, SharedWork, Ticket, Urgency
from service.telemetry.metrics import Metrics

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Planned:
    """A question with its cleaned text and the way it goes."""

    question: Question
    plan: Plan


@dataclass(frozen=True, slots=True)
class Asked:
    """A picture with the backends that its request asks, and who asks."""

    picture: Identified
    backends: Sequence[Backend]
    caller: Caller


@dataclass(frozen=True, slots=True)
class Answered:
    """What came of a question; times in seconds, 0 where the cache answered."""

    content: Cached
    cached: bool = False
    decode_queue_s: float = 0.0
    decode_s: float = 0.0
    queue_s: float = 0.0
    inference_s: float = 0.0


class Answering:
    """Looks up, joins or computes.

    Args:
        pictures: decodes.
        admission: says who may compute.
        cache: holds posteriors, by tenant.
        metrics: where lookups are counted.
    """

    def __init__(self, pictures: Pictures, admission: Admission, cache: Cache, metrics: Metrics) -> None:
        self._pictures = pictures
        self._admission = admission
        self._cache = cache
        self._lookups = metrics.cache_lookups
        self._under_way: SharedWork[Answered] = SharedWork()

    async def answer(self, asked: Asked, planned: Planned, urgency: Urgency) -> Answered:
        """The posterior for one question, in the spelling of its plan's answer set.

        Raises:
            VQAError: `saturated`, what is wrong with the picture, or the backend's.
        """
        answer_set = planned.plan.answer_set
        key = _key(asked, planned)
        compute = partial(self._compute, asked, planned, key)
        if not asked.caller.freshness.looks_up:
            self._lookups.labels("bypassed").inc()
            return await self._under_way.run(object(), urgency, compute)
        if (found := await self._cache.get(key, answer_set)) is not None:
            self._lookups.labels("hit").inc()
            return Answered(found, cached=True)
        if key in self._under_way:
            self._lookups.labels("coalesced").inc()
        else:
            self._lookups.labels("miss").inc()
            # Most of a flood ends here; `_compute` asks again, for all who wait.
            self._admission.check(self._ticket(asked, planned, urgency))
        answered = await self._under_way.run(key, urgency, compute)
        # Whoever came first may spell the same answers otherwise.
        content = answered.content.respelled(answer_set)
        return answered if content is answered.content else replace(answered, content=content)

    async def _compute(self, asked: Asked, planned: Planned, key: CacheKey, urgency: Urgency) -> Answered:
        backend, ticket = planned.plan.backend, self._ticket(asked, planned, urgency)
        with self._admission.permit(ticket):
            prepared = await self._pictures.prepare(asked.picture, asked.caller.tenant, asked.backends, urgency)
            ticket.decode_s = 0.0
            picture = prepared.by_backend[backend.name]
            if isinstance(picture, VQAError):
                raise picture
            scored = await self._ask(backend, picture, planned, urgency)
        facts = prepared.facts
        content = Cached(
            scored.posterior, scored.warnings, scored.withheld, facts.width, facts.height, facts.statistics
        )
        if asked.caller.freshness.stores:
            await self._cache.put(key, content)
        return Answered(
            content,
            decode_queue_s=prepared.queue_s,
            decode_s=prepared.decode_s,
            queue_s=scored.queue_s,
            inference_s=scored.inference_s,
        )

    def _ticket(self, asked: Asked, planned: Planned, urgency: Urgency) -> Ticket:
        decode_s = self._pictures.expected_s(asked.picture, asked.caller.tenant, asked.backends)
        backend = planned.plan.backend
        return Ticket(urgency, backend.name, decode_s, backend.pace.cost_s, backend.pace.latency_s)

    @staticmethod
    async def _ask(backend: Backend, picture: object, planned: Planned, urgency: Urgency) -> Scored:
        try:
            return await backend.ask(picture, planned.question.text, planned.plan.answer_set, urgency)
        except VQAError:
            raise
        except Exception as error:
            # A backend may throw anything; it is logged once, however many wait for it.
            log.exception("the %s failed", backend.name)
            raise VQAError(Code.BACKEND_FAILED, f"The {backend.name} failed on this question.") from error


def _key(asked: Asked, planned: Planned) -> CacheKey:
    plan, backend = planned.plan, planned.plan.backend
    return CacheKey(
        tenant=asked.caller.tenant,
        picture=asked.picture.sha256,
        question=backend.canonical(planned.question.text),
        answer_set=plan.answer_set.identity,
        model=backend.info.name,
        revision=backend.info.revision,
        preprocessing=backend.preprocessing,
        policy=plan.route.policy,
    )
