"""Who is let in: nobody whose deadline could not be kept, and nobody whose coming would break a promise made before.

Work is counted in seconds of the machine: decoding of all, inference of those that share a backend. Questions are
served by the nearest deadline (interactive before batch), and for one server this order keeps all deadlines if any
order does (Liu and Layland, 1973; work that has begun is not interrupted, so at worst the longest other piece has just
begun: Jeffay et al., 1991). So a new question is let in when, at its place in that order, it and all behind it
still finish in time. Decoding and inference are added up as if they took turns: exact where they share the cores, on
the safe side where they do not.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from service.errors import Code, VQAError
from service.scheduling.service_time import ServiceTime
from service.scheduling.urgency import BATCH_RANK, Urgency

# Predictions are means; promises are kept with room to spare.
_MARGIN = 1.5
# From this many seconds on a prediction says more about the load than about chance.
_WORTH_LEARNING_S = 0.02


@dataclass(slots=True, eq=False)
class Ticket:
    """One question that was let in.

    Attributes:
        urgency: its own, or of all who wait for it.
        backend: whose queue it will stand in.
        decode_s, inference_s: seconds of the machine that it still needs; set to 0 as they are done.
        latency_s: seconds that its own inference takes from beginning to end.
        task, shed, came, wait_s: the admission's own: what to cancel, why it was sent away, when it came, and the
            seconds of work that were in front of it, what has overtaken it since included.
    """

    urgency: Urgency
    backend: str
    decode_s: float
    inference_s: float
    latency_s: float
    task: asyncio.Task[object] | None = None
    shed: VQAError | None = None
    came: float = 0.0
    wait_s: float = 0.0


class Admission:
    """Bounds the questions under way in number and in time.

    Args:
        limit: most questions at once.
        clock: seconds, the clock of the urgencies.
        observe: told the number under way after each change.
        observe_wait: told the predicted seconds of each question that asks to be let in.
        observe_shed: told of each batch question that made way.
    """

    def __init__(
        self,
        limit: int,
        *,
        clock: Callable[[], float] = time.perf_counter,
        observe: Callable[[int], None] = lambda _: None,
        observe_wait: Callable[[float], None] = lambda _: None,
        observe_shed: Callable[[], None] = lambda: None,
    ) -> None:
        self._limit = limit
        self._now = clock
        self._observe = observe
        self._observe_wait = observe_wait
        self._observe_shed = observe_shed
        self._tickets: dict[Ticket, None] = {}
        self._slowness = ServiceTime(1.0)

    @property
    def slowness(self) -> float:
        """How much longer questions take than their work adds up to, at least 1.

        Learnt from what became of predictions: other processes want the CPUs too, and so does reading requests.
        """
        return max(1.0, self._slowness.seconds)

    @property
    def in_flight(self) -> int:
        """Questions under way."""
        return len(self._tickets)

    def check(self, ticket: Ticket) -> None:
        """Refuse what could not be done in time, before any work is begun for it; `permit` has the last word.

        Raises:
            VQAError: `saturated`.
        """
        wait, late = self._predict(ticket)
        try:
            self._make_way(ticket, wait * self.slowness, late)
        except VQAError:
            self._observe_wait(wait * self.slowness)
            raise

    @contextmanager
    def permit(self, ticket: Ticket) -> Iterator[None]:
        """Let one question in for the time of the block, which runs in a task of its own.

        Raises:
            VQAError: `saturated`, at once or, for a batch question that has to make way, later.
        """
        self._admit(ticket)
        ticket.task = asyncio.current_task()
        self._tickets[ticket] = None
        self._observe(len(self._tickets))
        try:
            yield
            if ticket.wait_s > _WORTH_LEARNING_S:
                self._slowness.observe((self._now() - ticket.came) / ticket.wait_s)
        except asyncio.CancelledError:
            if ticket.shed is None:
                raise
            if ticket.task is not None:
                ticket.task.uncancel()
            raise ticket.shed from None
        finally:
            self._tickets.pop(ticket, None)
            # A cancelled task keeps its exception, which leads to this block: the circle would keep the picture.
            ticket.task = None
            self._observe(len(self._tickets))

    def _admit(self, new: Ticket) -> None:
        wait, late = self._predict(new)
        new.came, new.wait_s = self._now(), wait
        wait *= self.slowness
        self._observe_wait(wait)
        batch, full = self._make_way(new, wait, late)
        if full:
            self._shed(max(batch, key=lambda t: t.urgency.due), wait)
        self._shed_the_late(new, batch, wait)
        for ticket in self._tickets:
            if new.urgency.order < ticket.urgency.order:
                # Overtaken: that is no slowness.
                ticket.wait_s += _work(new, ticket.backend)

    def _make_way(self, new: Ticket, wait: float, late: float) -> tuple[list[Ticket], bool]:
        """The batch questions that make way for `new` where they must, and whether one of them must in any case.

        Raises:
            VQAError: `saturated`.
        """
        if late > 0:
            raise _saturated("The wait would be longer than the deadline allows.", late)
        batch: list[Ticket] = []
        if new.urgency.rank < BATCH_RANK:
            batch = [t for t in self._tickets if t.urgency.rank == BATCH_RANK and _stays(t)]
        full = len(self._tickets) >= self._limit and sum(map(_stays, self._tickets)) >= self._limit
        if full and not batch:
            raise _saturated(f"{len(self._tickets)} questions are under way, as many as may be.", wait / 2)
        return batch, full

    def _predict(self, new: Ticket) -> tuple[float, float]:
        """Seconds of work until `new` would be done, and how late it, or somebody behind it, would be (0: nobody)."""
        now, slowness = self._now(), self.slowness
        ahead, blocking, behind = 0.0, 0.0, []
        rank, due, backend = new.urgency.rank, new.urgency.due, new.backend
        # For every question that comes, over all that are under way: written for speed.
        for ticket in self._tickets:
            urgency = ticket.urgency
            if ticket.shed is not None or urgency.abandoned:
                continue
            work = ticket.decode_s
            if ticket.backend == backend:
                work += ticket.inference_s
            if urgency.rank < rank or (urgency.rank == rank and urgency.due <= due):
                ahead += work
                continue
            if work > blocking:
                blocking = work
            if urgency.rank == rank:
                behind.append(ticket)
        own = _work(new, new.backend)
        wait = ahead + blocking + own + new.latency_s
        if ahead == 0.0 and not behind:
            # With nothing in its way a question is tried whatever is believed, or a wrong belief would never end.
            return wait, 0.0
        # Of those who share it the most patient decides: the others' haste is no reason to refuse all.
        late = now + _MARGIN * slowness * wait - new.urgency.expires
        done = ahead + own
        for ticket in sorted(behind, key=lambda t: t.urgency.order):
            done += _work(ticket, new.backend)
            if ticket.backend == new.backend and late <= 0:
                late = now + slowness * (done + ticket.latency_s) - ticket.urgency.due
        return wait, max(late, 0.0)

    def _shed_the_late(self, new: Ticket, batch: list[Ticket], wait: float) -> None:
        """Send away the batch questions behind `new` that cannot keep their deadlines any more."""
        now, done, slowness = self._now(), wait, self.slowness
        for ticket in sorted(batch, key=lambda t: t.urgency.order):
            if ticket.backend != new.backend or ticket.shed is not None:
                continue
            end = done + slowness * _work(ticket, ticket.backend)
            if now + end + ticket.latency_s > ticket.urgency.expires:
                self._shed(ticket, wait)
            else:
                done = end

    def _shed(self, ticket: Ticket, wait: float) -> None:
        ticket.shed = _saturated("Batch questions make way for interactive ones.", wait)
        self._observe_shed()
        if ticket.task is not None:
            ticket.task.cancel()


def _stays(ticket: Ticket) -> bool:
    return ticket.shed is None and not ticket.urgency.abandoned


def _work(ticket: Ticket, backend: str) -> float:
    return ticket.decode_s + (ticket.inference_s if ticket.backend == backend else 0.0)


def _saturated(why: str, seconds: float) -> VQAError:
    return VQAError(
        Code.SATURATED, f"The service is saturated. {why} Try again later.", retry_after_s=max(1, math.ceil(seconds))
    )
