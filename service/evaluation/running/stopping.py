"""Being told to stop: the first SIGINT or SIGTERM ends a run in order, a second one at once."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Self

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopping:
    """Listens for signals for the time of a block in an event loop.

    Args:
        at_once: called before a second signal ends the process, to leave a terminal as it was.

    Attributes:
        event: set by the first signal.
        signal: which one it was; None while there was none.
    """

    def __init__(self, at_once: Callable[[], None] = lambda: None) -> None:
        self._at_once = at_once
        self.event = asyncio.Event()
        self.signal: int | None = None
        self._loop = asyncio.get_running_loop()

    def __enter__(self) -> Self:
        for number in _SIGNALS:
            self._loop.add_signal_handler(number, self._stop, number)
        return self

    def __exit__(self, *_: object) -> None:
        for number in _SIGNALS:
            self._loop.remove_signal_handler(number)

    def _stop(self, number: int) -> None:
        if self.signal is not None:
            # As the shell counts; little is cleaned up, and the journal needs nothing of the kind.
            try:
                self._at_once()
            finally:
                os._exit(128 + number)
        self.signal = number
        self.event.set()


class SignalError(BaseException):
    """SIGINT or SIGTERM came while files were read or written.

    Attributes:
        signal: which one.
    """

    def __init__(self, number: int) -> None:
        super().__init__(f"signal {number}")
        self.signal = number


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """For work outside an event loop: a signal ends the block as an error does, so that what is half done is removed.

    Raises:
        SignalError: SIGINT or SIGTERM came.
    """

    def end(number: int, _: object) -> None:
        raise SignalError(number)

    before = {number: signal.signal(number, end) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
