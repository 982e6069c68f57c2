"""The simulated clock and what is to happen: a heap of moments, each with what to call."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

Action = Callable[..., None]


class Timeline:
    """Events in the order of their time; those of one moment in the order in which they were made.

    Attributes:
        now: seconds; the moment of the event that happens.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self._events: list[tuple[float, int, Action, tuple[Any, ...]]] = []
        self._count = 0

    def clock(self) -> float:
        """`now`, for those who take a clock."""
        return self.now

    @property
    def next_at(self) -> float:
        """When the next event is; infinity if there is none."""
        return self._events[0][0] if self._events else float("inf")

    def at(self, moment: float, action: Action, *arguments: Any) -> None:
        """Have `action(*arguments)` called at a moment that is not past."""
        self._count += 1
        heapq.heappush(self._events, (moment, self._count, action, arguments))

    def step(self) -> None:
        """The next event."""
        self.now, _, action, arguments = heapq.heappop(self._events)
        action(*arguments)
