"""A bounded pool of threads for decoding, awaited from the event loop.

Decoders let go of the interpreter lock while they work, so threads are enough, and pixels are handed over without a
copy. What waits in the pool is visible, so that admission can count it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class DecodePool:
    """Runs functions in at most `threads` threads; whose waiter has gone before the start is never run."""

    def __init__(self, threads: int, *, name: str = "decode") -> None:
        if threads < 1:
            raise ValueError(f"a pool needs at least one thread, not {threads}")
        self.threads = threads
        self._executor = ThreadPoolExecutor(max_workers=threads, thread_name_prefix=name)
        self._lock = threading.Lock()
        self._queued = 0
        self._running = 0

    @property
    def queued(self) -> int:
        """Jobs that wait for a thread."""
        return self._queued

    @property
    def running(self) -> int:
        """Jobs that a thread is working on, those whose waiter has gone meanwhile included."""
        return self._running

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Await `function(*args, **kwargs)` in a thread of the pool; what it raises is raised here.

        When the awaiting task is cancelled, a job that has not started is dropped; one that runs goes on to its end
        (a decoder cannot be stopped) and its result is thrown away.

        Raises:
            RuntimeError: the pool is shut down.
        """
        with self._lock:
            self._queued += 1
        started = False

        def work() -> T:
            nonlocal started
            with self._lock:
                started = True
                self._queued -= 1
                self._running += 1
            try:
                return function(*args, **kwargs)
            finally:
                with self._lock:
                    self._running -= 1

        def settle(_: Future[T]) -> None:
            with self._lock:
                if not started:
                    self._queued -= 1

        try:
            future = self._executor.submit(work)
        except RuntimeError:
            with self._lock:
                self._queued -= 1
            raise
        # Called once, also for a job that was cancelled while it waited.
        future.add_done_callback(settle)
        # wrap_future carries a cancellation of the awaiting task over to the job.
        return await asyncio.wrap_future(future)

    def shutdown(self, *, wait: bool = True) -> None:
        """Take no more jobs and drop those that wait; with `wait`, return when the running ones have ended."""
        self._executor.shutdown(wait=wait, cancel_futures=True)
