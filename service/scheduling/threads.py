"""A bounded pool of threads with an urgent-first queue, awaited from the event loop.

Decoders let go of the interpreter lock while they work, so threads are enough, and pixels are handed over without a
copy. What waits is visible, so that admission can count it.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

from service.scheduling.batcher import Batched, Batcher
from service.scheduling.urgency import Urgency

T = TypeVar("T")

# Half the weight of a thread of the usual priority, for three steps or so: enough to give way, too little to starve.
_NICE = 5


def yield_to_event_loop() -> None:
    """Let the calling thread, and those that it starts, give way to the event loop where all want the same CPU.

    Called first in a thread of a pool. The kernel weighs threads within one container, so that this takes nothing
    from the service as a whole.
    """
    # Only Linux gives each thread a priority; elsewhere the number could be another process's.
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)


class WorkerThreads:
    """Runs functions in at most `threads` threads, the most urgent first; whose waiter has gone is never started.

    Args:
        threads: how many, at least 1.
        name: of the threads.
        clock: as the batcher's.
    """

    def __init__(self, threads: int, *, name: str = "decode", clock: Callable[[], float] = time.perf_counter) -> None:
        if threads < 1:
            raise ValueError(f"a pool needs at least one thread, not {threads}")
        self.threads = threads
        self._executor = ThreadPoolExecutor(
            max_workers=threads, thread_name_prefix=name, initializer=yield_to_event_loop
        )
        self._jobs: Batcher[Callable[[], Any], Any] = Batcher(self._run_one, max_batch=1, runners=threads, clock=clock)

    @property
    def queued(self) -> int:
        """Jobs that wait for a thread."""
        return self._jobs.waiting

    @property
    def running(self) -> int:
        """Jobs that a thread is working on, those whose waiter has gone meanwhile included."""
        return self._jobs.running

    async def run(self, function: Callable[[], T], urgency: Urgency | None = None) -> T:
        """Await `function()` in a thread of the pool; what it raises is raised here.

        When the awaiting task is cancelled, a job that has not started is dropped; one that runs goes on to its end
        (a decoder cannot be stopped) and its result is thrown away.

        Raises:
            VQAError: as `Batcher.submit`.
        """
        return (await self.run_timed(function, urgency)).result

    async def run_timed(self, function: Callable[[], T], urgency: Urgency | None = None) -> Batched[T]:
        """As `run`, with the seconds that the job waited and ran."""
        return await self._jobs.submit(None, function, urgency)

    async def close(self) -> None:
        """Take no more jobs, refuse those that wait, and return when the running ones have ended."""
        await self._jobs.close()
        await asyncio.to_thread(self._executor.shutdown)

    async def _run_one(self, jobs: Sequence[Callable[[], Any]]) -> Sequence[Any]:
        [function] = jobs
        return [await asyncio.get_running_loop().run_in_executor(self._executor, function)]
