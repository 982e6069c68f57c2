"""A bounded pool of threads with an urgent-first queue, awaited from the event loop.

Decoders let go of the interpreter lock while they work, so threads are enough, and pixels are handed over without a
copy. A thread that has done its job takes the next one by itself: a busy event loop, which under load comes round only
after several milliseconds, would leave it idle in between. But no thread runs far ahead of an event loop that does not
keep up, which would only take more of the interpreter from it.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from bisect import insort
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

from service.errors import Code, VQAError
from service.scheduling.entry import Batched, Entry, by_order
from service.scheduling.urgency import Urgency

T = TypeVar("T")

# Half the weight, for three steps or so: enough to give way, too little to starve.
_NICE, _NICEST = 5, 19


def yield_to_event_loop() -> None:
    """Let the calling thread, and those that it starts, give way to the event loop where all want the same CPU.

    Called first in a thread of a pool. The kernel weighs threads within one container, so that this takes nothing
    from the service as a whole.
    """
    # Only Linux gives each thread a priority; elsewhere the number could be another process's.
    if sys.platform == "linux":
        with suppress(OSError):
            thread = threading.get_native_id()
            # From what the whole process was started with.
            niceness = min(os.getpriority(os.PRIO_PROCESS, thread) + _NICE, _NICEST)
            os.setpriority(os.PRIO_PROCESS, thread, niceness)


# So many results more than there are threads may wait for the event loop; then the threads wait for it.
_AHEAD = 1

_Job = Entry[Callable[[], Any], Any]


class WorkerThreads:
    """Runs functions in at most `threads` threads, the most urgent first; whose waiter has gone is never started.

    Used from one event loop.

    Args:
        threads: how many, at least 1.
        name: of the threads.
        clock: seconds that never go back, and the clock of the urgencies.
    """

    def __init__(self, threads: int, *, name: str = "decode", clock: Callable[[], float] = time.perf_counter) -> None:
        if threads < 1:
            raise ValueError(f"a pool needs at least one thread, not {threads}")
        self.threads = threads
        self._now = clock
        self._executor = ThreadPoolExecutor(
            max_workers=threads, thread_name_prefix=name, initializer=yield_to_event_loop
        )
        # Guards all below, which threads and event loop change; held for moments only.
        self._lock = threading.Lock()
        self._waiting: list[_Job] = []
        self._raises = Urgency.raises
        self._count = 0
        self._busy = 0
        self._running = 0
        self._uncollected = 0
        self._closed = False

    @property
    def queued(self) -> int:
        """Jobs that wait for a thread."""
        return len(self._waiting)

    @property
    def running(self) -> int:
        """Jobs that a thread is working on, those whose waiter has gone meanwhile included."""
        return self._running

    async def run(self, function: Callable[[], T], urgency: Urgency | None = None) -> T:
        """Await `function()` in a thread of the pool; what it raises is raised here.

        When the awaiting task is cancelled, a job that has not started is dropped; one that runs goes on to its end
        (a decoder cannot be stopped) and its result is thrown away.

        Raises:
            VQAError: `not_ready` once the pool is closed, `deadline_exceeded` where the job's turn came too late.
        """
        return (await self.run_timed(function, urgency)).result

    async def run_timed(self, function: Callable[[], T], urgency: Urgency | None = None) -> Batched[T]:
        """As `run`, with the seconds that the job waited and ran."""
        future: asyncio.Future[Batched[T]] = asyncio.get_running_loop().create_future()
        with self._lock:
            if self._closed:
                raise _not_ready("The service is not running.")
            self._count += 1
            job = _Job(function, urgency or Urgency(), self._count, self._now(), future)
            insort(self._waiting, job, key=by_order)
        self._begin()
        try:
            return await future
        finally:
            with self._lock:
                if not job.taken:
                    self._waiting.remove(job)

    async def close(self) -> None:
        """Take no more jobs, refuse those that wait, and return when the running ones have ended."""
        with self._lock:
            self._closed = True
            dropped, self._waiting = self._waiting, []
            for job in dropped:
                job.taken = True
        for job in dropped:
            job.settle(_not_ready("The service is shutting down."))
        await asyncio.to_thread(self._executor.shutdown)

    def _begin(self) -> None:
        """One thread more, if there is work for it."""
        with self._lock:
            begin = bool(self._waiting) and self._busy < self.threads and self._may_go_on()
            self._busy += begin
        if begin:
            self._executor.submit(self._work, asyncio.get_running_loop())

    def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        """In a thread: jobs, one after the other, until none waits."""
        while (job := self._take(loop)) is not None:
            began = self._now()
            outcome: Batched[Any] | BaseException
            try:
                outcome = Batched(job.item(), began - job.since, self._now() - began)
            except BaseException as error:  # noqa: BLE001 - whatever it is belongs to the caller that waits
                outcome = error
            with self._lock:
                self._uncollected += 1
            loop.call_soon_threadsafe(self._end, job, outcome)
            # Neither the job nor what came of it is held while this thread waits for another.
            del job, outcome

    def _take(self, loop: asyncio.AbstractEventLoop) -> _Job | None:
        """In a thread: the most urgent job that somebody still waits for; None lets the thread go."""
        with self._lock:
            if self._raises != Urgency.raises:
                self._raises = Urgency.raises
                self._waiting.sort(key=by_order)
            now = self._now()
            while self._waiting and self._may_go_on():
                job = self._waiting.pop(0)
                job.taken = True
                if job.urgency.abandoned:
                    continue  # whoever waited is being ended one by one
                if job.urgency.expires <= now:
                    late = VQAError(Code.DEADLINE_EXCEEDED, "The deadline passed before the question's turn.")
                    loop.call_soon_threadsafe(job.settle, late)
                    continue
                self._running += 1
                return job
            self._busy -= 1
            return None

    def _may_go_on(self) -> bool:
        return self._uncollected < self.threads + _AHEAD

    def _end(self, job: _Job, outcome: Batched[Any] | BaseException) -> None:
        with self._lock:
            self._running -= 1
            self._uncollected -= 1
        job.settle(outcome)
        self._begin()


def _not_ready(why: str) -> VQAError:
    return VQAError(Code.NOT_READY, why, retry_after_s=1)
