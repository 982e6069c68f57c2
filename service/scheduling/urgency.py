"""Which question goes first: interactive ones before batch ones, then the one whose deadline is nearest."""

from __future__ import annotations

import math

from service.settings import Priority

_RANKS: dict[Priority, int] = {"interactive": 0, "batch": 1}
BATCH_RANK = _RANKS["batch"]


class Urgency:
    """How soon a piece of work is needed. Shared by all queues it passes, and raised when others join the work.

    Args:
        due: the moment by which it must be done, in seconds on the scheduler's clock (`time.perf_counter`).
        priority: `interactive` goes before `batch`, whatever the deadlines.

    Attributes:
        rank: 0 for interactive, 1 for batch.
        due: the nearest deadline of those who wait.
        expires: the farthest; after it nobody wants the work any more.
    """

    __slots__ = ("due", "expires", "rank")

    def __init__(self, due: float = math.inf, priority: Priority = "interactive") -> None:
        self.rank = _RANKS[priority]
        self.due = due
        self.expires = due

    @property
    def order(self) -> tuple[int, float]:
        """What queues sort by; the least goes first."""
        return self.rank, self.due

    def join(self, other: Urgency) -> None:
        """Somebody else waits for the same work: it is as urgent as the more urgent of the two."""
        self.rank = min(self.rank, other.rank)
        self.due = min(self.due, other.due)
        self.expires = max(self.expires, other.expires)

    def copy(self) -> Urgency:
        """The same urgency, to be raised on its own."""
        twin = Urgency()
        twin.rank, twin.due, twin.expires = self.rank, self.due, self.expires
        return twin
