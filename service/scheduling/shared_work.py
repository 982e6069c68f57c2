"""Single flight: those who want the same thing at the same time wait for one computation of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from service.errors import Code, VQAError
from service.scheduling.urgency import Urgency

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class _Flight(Generic[T]):
    task: asyncio.Task[T]
    urgency: Urgency


class SharedWork(Generic[T]):
    """Computations under way, by key.

    A computation belongs to all who wait for it: whoever leaves cancels nobody, and when the last one leaves it is
    cancelled. It is as urgent as the most urgent of them.
    """

    def __init__(self) -> None:
        self._flights: dict[Hashable, _Flight[T]] = {}

    def __len__(self) -> int:
        """Computations under way, those that are being given up among them."""
        return len(self._flights)

    def __contains__(self, key: Hashable) -> bool:
        """Whether one for `key` is under way."""
        flight = self._flights.get(key)
        return flight is not None and not flight.urgency.abandoned

    async def run(self, key: Hashable, urgency: Urgency, compute: Callable[[Urgency], Coroutine[Any, Any, T]]) -> T:
        """The result for `key`: of the computation under way, else of a new one.

        Args:
            key: equal for equal results.
            urgency: of this caller.
            compute: starts the computation, given the urgency of all who wait.

        Raises:
            Exception: what the computation raised.
        """
        flight = self._flights.get(key)
        if flight is None or flight.urgency.abandoned:
            shared = Urgency.shared()
            flight = self._flights[key] = _Flight(asyncio.create_task(compute(shared)), shared)
            flight.task.add_done_callback(lambda _, key=key, flight=flight: self._land(key, flight))  # type: ignore[misc]
        flight.urgency.join(urgency)
        try:
            # Waiting on the task itself would carry this caller's cancellation over to it.
            await asyncio.wait((flight.task,))
        finally:
            flight.urgency.leave(urgency)
            if flight.urgency.abandoned and not flight.task.done():
                self._forget(key, flight)
                flight.task.cancel()
        try:
            if flight.task.cancelled():
                # Not this caller's own cancellation, and it must not look like one.
                raise VQAError(Code.BACKEND_FAILED, "The work was stopped half way.")
            if (error := flight.task.exception()) is not None:
                # One exception, raised to many: each begins its traceback anew.
                raise error.with_traceback(None)
            return flight.task.result()
        finally:
            # An exception leads to this frame; from here it would lead back to itself, and keep the picture with it.
            error = None
            del flight

    def _land(self, key: Hashable, flight: _Flight[T]) -> None:
        self._forget(key, flight)
        if not flight.task.cancelled():
            # Looked at here, since all who waited may have left.
            flight.task.exception()

    def _forget(self, key: Hashable, flight: _Flight[T]) -> None:
        if self._flights.get(key) is flight:
            del self._flights[key]
