"""One piece of work in a queue, and what comes of it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from operator import attrgetter
from typing import Generic, TypeVar

from service.scheduling.urgency import Urgency

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Batched(Generic[Result]):
    """One item's result; `queue_s` until its run started, `run_s` of the whole run (its batch's), in seconds."""

    result: Result
    queue_s: float
    run_s: float


@dataclass(slots=True, eq=False)
class Entry(Generic[Item, Result]):
    """What waits in a queue.

    Attributes:
        item: the work.
        urgency: of those who wait for it; queues are kept in its order.
        number: of its arrival, which decides among equals.
        since: when it came.
        future: what its caller awaits.
        taken: whether the queue holds it no more.
    """

    item: Item
    urgency: Urgency
    number: int
    since: float
    future: asyncio.Future[Batched[Result]]
    taken: bool = False

    @property
    def order(self) -> tuple[int, float, int]:
        """The least goes first."""
        return *self.urgency.order, self.number

    def settle(self, outcome: Batched[Result] | BaseException) -> None:
        """Hand an outcome over, unless the caller has gone: a cancelled future is never set."""
        if self.future.done():
            return
        if isinstance(outcome, StopIteration):
            # A future refuses this one, and whoever waits would wait for ever.
            outcome = RuntimeError(f"the work raised {outcome!r}")
        if isinstance(outcome, BaseException):
            self.future.set_exception(outcome)
        else:
            self.future.set_result(outcome)


# The key that queues are sorted by.
by_order = attrgetter("order")
