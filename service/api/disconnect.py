"""Work that stops when nobody waits for it any more."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from starlette.types import Scope

from service.errors import Code, VQAError
from service.gateway import Caller

T = TypeVar("T")

# Where the protocol puts the connection's `Line`, among the scope's extensions.
LINE = "vqa.line"


class Line:
    """A connection, as long as it holds; its requests share it."""

    def __init__(self) -> None:
        self._callbacks: list[Callable[[], None]] = []
        self._lost = False

    def lose(self) -> None:
        """It is lost: told to all who want to know."""
        self._lost = True
        for callback in list(self._callbacks):
            callback()

    def watch(self, callback: Callable[[], None]) -> None:
        """Call `callback` when it is lost, at once where it is already."""
        self._callbacks.append(callback)
        if self._lost:
            callback()

    def unwatch(self, callback: Callable[[], None]) -> None:
        """Call it no more."""
        self._callbacks.remove(callback)


# Requests of clients that have gone are ended every so many seconds, one at a time; more where thousands wait for it,
# so that they do not pile up.
_PAUSE_S = 0.002
_PILE = 256


class Departures:
    """Ends the requests of clients that have gone, a few at a time with a pause between.

    Ending a request takes a tenth of a millisecond of the event loop; when hundreds leave at once, those who stay
    would wait for all of them. What the leavers asked for is given up at once, by `Caller.leave`.
    """

    def __init__(self) -> None:
        self._leaving: deque[Callable[[], object]] = deque()

    def add(self, end: Callable[[], object]) -> None:
        """Call `end` soon."""
        self._leaving.append(end)
        if len(self._leaving) == 1:
            asyncio.get_running_loop().call_soon(self._end_some)

    def _end_some(self) -> None:
        try:
            for _ in range(1 + len(self._leaving) // _PILE):
                try:
                    self._leaving[0]()
                finally:
                    # Afterwards, so that who leaves meanwhile does not begin a second round.
                    self._leaving.popleft()
        finally:
            if self._leaving:
                asyncio.get_running_loop().call_later(_PAUSE_S, self._end_some)


async def until_disconnect(scope: Scope, work: Coroutine[Any, Any, T], caller: Caller, departures: Departures) -> T:
    """The result of `work`, which is cancelled if the client hangs up first.

    Told by the protocol itself: a task that waits for the disconnect would cost each request more than the answer to
    "has it gone?" is worth, and when many leave at once it would cost those who stay.

    Args:
        scope: the request's.
        work: what the client waits for; runs in the caller's own task.
        caller: told at once that its client has gone.
        departures: ends the work.

    Raises:
        VQAError: `client_closed_request`.
    """
    task = asyncio.current_task()
    left = False
    done = False

    def leave() -> None:
        nonlocal left
        left = True
        caller.leave()
        departures.add(end)

    def end() -> None:
        if not done and task is not None:
            task.cancel()

    line: Line = scope.get("extensions", {}).get(LINE, {}).get(LINE) or Line()
    line.watch(leave)
    try:
        return await work
    except asyncio.CancelledError:
        if not left or task is None or task.uncancel():
            # The server stops, or something else ends this task.
            raise
        raise VQAError(Code.CLIENT_CLOSED_REQUEST, "The client closed the connection before the reply.") from None
    finally:
        done = True
        line.unwatch(leave)
