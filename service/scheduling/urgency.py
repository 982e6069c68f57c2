"""Which question goes first: interactive ones before batch ones, then the one whose deadline is nearest."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar

from service.settings import Priority

_RANKS: dict[Priority, int] = {"interactive": 0, "batch": 1}
BATCH_RANK = _RANKS["batch"]


class Urgency:
    """How soon a piece of work is needed, and whether it still is. Shared by all queues that the work passes.

    Args:
        due: the moment by which it must be done, in seconds on the scheduler's clock (`time.perf_counter`).
        priority: `interactive` goes before `batch`, whatever the deadlines.

    Attributes:
        rank: 0 for interactive, 1 for batch.
        due: the nearest deadline of those who wait.
        expires: the farthest; after it nobody wants the work any more.
        abandoned: whether all who waited have gone. Queues drop such work before it costs anything, long before the
            tasks that wait for it have been cancelled one by one.
    """

    __slots__ = ("_shared", "_told", "_waiters", "abandoned", "due", "expires", "rank")

    raises: ClassVar[int] = 0
    """How often work that somebody waited for already became more urgent; queues then sort anew."""

    def __init__(self, due: float = math.inf, priority: Priority = "interactive") -> None:
        self.rank = _RANKS[priority]
        self.due = due
        self.expires = due
        self.abandoned = False
        self._waiters = 0
        self._shared: Urgency | None = None
        self._told: list[Callable[[], None]] = []

    @property
    def order(self) -> tuple[int, float]:
        """What queues sort by; the least goes first."""
        return self.rank, self.due

    @classmethod
    def shared(cls) -> Urgency:
        """The urgency of work that nobody waits for yet."""
        nobody = cls(due=math.inf, priority="batch")
        nobody.expires = -math.inf
        return nobody

    def join(self, other: Urgency) -> None:
        """`other` waits for this work: it is as urgent as the most urgent of all who do.

        One that was abandoned before is not counted; if nobody else waits, this work is abandoned too.
        """
        other._shared = self
        if not other.abandoned:
            self._waiters += 1
        elif self._waiters == 0:
            self.abandon()
        self._take_on(other)

    def _take_on(self, other: Urgency) -> None:
        if self.expires != -math.inf and other.order < self.order:
            Urgency.raises += 1
        self.rank = min(self.rank, other.rank)
        self.due = min(self.due, other.due)
        self.expires = max(self.expires, other.expires)
        if self._shared is not None:
            # What this work waits for itself is needed as soon, and as long.
            self._shared._take_on(self)

    def abandon(self) -> None:
        """Whoever waited has gone; what was shared with others stays wanted while one of them is there."""
        if self.abandoned:
            return
        self.abandoned = True
        for callback in self._told:
            callback()
        if self._shared is not None:
            self._shared._waiters -= 1
            if self._shared._waiters == 0:
                self._shared.abandon()

    def leave(self, other: Urgency) -> None:
        """`other` waits for this work no more, though its own goes on."""
        if other._shared is self:
            other._shared = None
            if not other.abandoned:
                self._waiters -= 1
                if self._waiters == 0:
                    self.abandon()


@contextmanager
def once_abandoned(urgencies: Sequence[Urgency], callback: Callable[[], None]) -> Iterator[None]:
    """Call `callback` as soon as all of `urgencies` are abandoned, at once where they are; not after the block."""

    def look() -> None:
        if all(urgency.abandoned for urgency in urgencies):
            callback()

    look()
    for urgency in urgencies:
        urgency._told.append(look)
    try:
        yield
    finally:
        for urgency in urgencies:
            urgency._told.remove(look)
