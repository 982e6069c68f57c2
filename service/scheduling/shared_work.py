"""Single flight: those who want the same thing at the same time wait for one computation of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from service.errors import Code, VQAError
from service.scheduling.urgency import Urgency

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class _Flight(Generic[T]):
    """`awaited` has a future for each caller in `run`; some of them may have gone already and not have been told."""

    task: asyncio.Task[T]
    urgency: Urgency
    awaited: set[asyncio.Future[None]] = field(default_factory=set)


class SharedWork(Generic[T]):
    """Computations under way, by key.

    A computation belongs to all who wait for it: whoever leaves cancels nobody, and when the last one leaves it is
    cancelled. It is as urgent as the most urgent of them.
    """

    def __init__(self) -> None:
        self._flights: dict[Hashable, _Flight[T]] = {}

    def __len__(self) -> int:
        """Keys for which a computation is under way."""
        return len(self._flights)

    def __contains__(self, key: Hashable) -> bool:
        """Whether one for `key` is under way that can be joined."""
        return self._joinable(key) is not None

    async def run(self, key: Hashable, urgency: Urgency, compute: Callable[[Urgency], Coroutine[Any, Any, T]]) -> T:
        """The result for `key`: of the computation under way, else of a new one.

        Args:
            key: equal for equal results.
            urgency: of this caller.
            compute: starts the computation, given the urgency of all who wait.

        Raises:
            VQAError: `client_closed_request`, nobody waits for this caller's own any more.
            Exception: what the computation raised.
        """
        if urgency.abandoned:
            # On its way to being ended, which something in between may have swallowed.
            raise VQAError(Code.CLIENT_CLOSED_REQUEST, "The client closed the connection before the reply.")
        flight = self._joinable(key)
        if flight is None:
            shared = Urgency.shared()
            flight = self._flights[key] = _Flight(asyncio.create_task(compute(shared)), shared)
            flight.task.add_done_callback(lambda _, key=key, flight=flight: self._land(key, flight))  # type: ignore[misc]
        flight.urgency.join(urgency)
        # Waiting on the task itself would carry this caller's cancellation over to it.
        landed = asyncio.get_running_loop().create_future()
        flight.awaited.add(landed)
        try:
            await landed
        finally:
            flight.urgency.leave(urgency)
            flight.awaited.discard(landed)
            if not flight.awaited and not flight.task.done():
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

    def _joinable(self, key: Hashable) -> _Flight[T] | None:
        """One that has not been given up, nor is being cancelled by somebody else."""
        flight = self._flights.get(key)
        if flight is None or flight.urgency.abandoned or flight.task.cancelling() or flight.task.done():
            return None
        return flight

    def _land(self, key: Hashable, flight: _Flight[T]) -> None:
        self._forget(key, flight)
        for landed in flight.awaited:
            if not landed.done():
                landed.set_result(None)
        if not flight.task.cancelled():
            # Looked at here, since all who waited may have left.
            flight.task.exception()

    def _forget(self, key: Hashable, flight: _Flight[T]) -> None:
        if self._flights.get(key) is flight:
            del self._flights[key]
