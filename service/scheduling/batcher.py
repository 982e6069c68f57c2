"""A work-conserving batcher: an idle runner starts at once with what is there, a busy one collects. No timed window.

Items of one batch share a key (the shape of their tensors), so a batch is never padded to its largest member and an
answer does not depend on who shares the batch. The batch taken next is that of the most urgent item: interactive
before batch, then the nearest deadline, then the longest wait. Queues are kept in that order, and sorted anew after an
urgency was raised while its item waited, which is rare.
"""

from __future__ import annotations

import asyncio
import time
from bisect import insort
from collections.abc import Awaitable, Callable, Hashable, Sequence
from contextvars import Context
from typing import Generic

from service.errors import Code, VQAError
from service.scheduling.entry import Batched, Entry, Item, Result, by_order
from service.scheduling.urgency import Urgency


class Batcher(Generic[Item, Result]):
    """Collects items and runs them in batches.

    Args:
        run: one batch of items of one key to one result each, in order. A result that is an exception fails its
            item alone; a raised one fails the batch, whose items are then run one by one, so that a bad item never
            takes its neighbours with it.
        max_batch: most items of a batch; may be changed at any time.
        runners: batches that may run at once; may be changed at any time.
        clock: seconds that never go back. (uvloop's own clock counts whole milliseconds only.)
        observe_batch: told the size of each batch.
    """

    def __init__(
        self,
        run: Callable[[Sequence[Item]], Awaitable[Sequence[Result | Exception]]],
        *,
        max_batch: int,
        runners: int = 1,
        clock: Callable[[], float] = time.perf_counter,
        observe_batch: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._run = run
        self.max_batch = max_batch
        self._runners = runners
        self._now = clock
        self._observe_batch = observe_batch
        self._queues: dict[Hashable, list[Entry[Item, Result]]] = {}
        self._count = 0
        self._raises = Urgency.raises
        self._busy = 0
        self._running = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False
        self.waiting = 0
        """Items that wait for a runner, those among them that will be dropped when their turn comes."""

    @property
    def running(self) -> int:
        """Batches that run now."""
        return self._running

    @property
    def runners(self) -> int:
        """Batches that may run at once. More of them start on what waits at once; fewer are fewer from now on."""
        return self._runners

    @runners.setter
    def runners(self, runners: int) -> None:
        self._runners = runners
        for _ in range(min(self.waiting, runners - self._busy) if not self._closed else 0):
            self._start_runner()

    async def submit(self, key: Hashable, item: Item, urgency: Urgency | None = None) -> Batched[Result]:
        """Wait for one item's result. A caller that is cancelled while its item waits takes the item along.

        Args:
            key: items of one batch share it.
            item: what `run` is given.
            urgency: read when a batch is put together; without one the item goes after those that have a deadline.
                An item whose urgency was abandoned gets no outcome: whoever abandons it ends the caller.

        Raises:
            VQAError: `not_ready` once the batcher is closed, `deadline_exceeded` where the item's turn came too late.
            Exception: what `run` gave or raised for this item.
        """
        if self._closed:
            raise VQAError(Code.NOT_READY, "The service is not running.", retry_after_s=1)
        future: asyncio.Future[Batched[Result]] = asyncio.get_running_loop().create_future()
        entry = Entry(item, urgency or Urgency(), self._count, self._now(), future)
        self._count += 1
        insort(self._queues.setdefault(key, []), entry, key=by_order)
        self.waiting += 1
        self._start_runner()
        try:
            return await future
        finally:
            if not entry.taken:
                self._forget(key, entry)

    async def close(self) -> None:
        """Refuse new items, fail those that wait, and let running batches finish."""
        self._closed = True
        for queue in list(self._queues.values()):
            for entry in queue:
                entry.settle(VQAError(Code.NOT_READY, "The service is shutting down.", retry_after_s=1))
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _start_runner(self) -> None:
        if self._busy < self.runners:
            self._busy += 1
            # A batch belongs to several callers, so it runs in no caller's context (request id, trace).
            task = asyncio.get_running_loop().create_task(self._work(), context=Context())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _work(self) -> None:
        """Run batches until nothing waits; `_busy` falls in the step that saw nothing, so no item is left."""
        batch: list[Entry[Item, Result]] = []
        try:
            while batch := self._take():
                started = self._now()
                self._observe_batch(len(batch))
                self._running += 1
                try:
                    await self._run_batch(batch, started)
                finally:
                    self._running -= 1
        finally:
            self._busy -= 1
            # Something is left only where the runner itself was cancelled or broke.
            for entry in batch:
                entry.settle(VQAError(Code.BACKEND_FAILED, "The work was stopped half way."))
            if self.waiting and not self._closed:
                self._start_runner()

    def _take(self) -> list[Entry[Item, Result]]:
        """The most urgent item with others of its key: what a batch may hold, and no more than this runner's share.

        What nobody waits for any more is dropped; what has run out of time is told so. Neither costs anything more.
        """
        if self._raises != Urgency.raises:
            self._raises = Urgency.raises
            for queue in self._queues.values():
                queue.sort(key=by_order)
        now = self._now()
        while self._queues and not self._closed:
            key = min(self._queues, key=lambda name: self._queues[name][0].order)
            queue = self._queues[key]
            # Runners that have no batch yet, this one among them, get as much as it does.
            free = max(self.runners - self._running, 1)
            most = min(self.max_batch, -(-len(queue) // free))
            batch: list[Entry[Item, Result]] = []
            seen = 0
            while seen < len(queue) and len(batch) < most:
                entry = queue[seen]
                seen += 1
                entry.taken = True
                if entry.urgency.abandoned:
                    continue  # whoever waited is being ended one by one; all at once would keep those who stay
                if entry.urgency.expires <= now:
                    entry.settle(VQAError(Code.DEADLINE_EXCEEDED, "The deadline passed before the question's turn."))
                elif not entry.future.done():
                    batch.append(entry)
            del queue[:seen]
            if not queue:
                del self._queues[key]
            self.waiting -= seen
            if batch:
                return batch
        return []

    def _forget(self, key: Hashable, entry: Entry[Item, Result]) -> None:
        """Let go of an item whose caller has left, its tensors included."""
        self._queues[key].remove(entry)
        if not self._queues[key]:
            del self._queues[key]
        self.waiting -= 1

    async def _run_batch(self, batch: list[Entry[Item, Result]], started: float) -> None:
        try:
            results = await self._run([entry.item for entry in batch])
            if len(results) != len(batch):
                raise RuntimeError(f"{len(results)} results for {len(batch)} items")
        except Exception as error:  # noqa: BLE001 - whatever a model throws belongs to the callers that wait
            if len(batch) == 1:
                batch[0].settle(error)
                return
            for entry in batch:
                if not (entry.future.done() or entry.urgency.abandoned):
                    await self._run_batch([entry], started)
            return
        run_s = self._now() - started
        for entry, result in zip(batch, results, strict=True):
            if isinstance(result, Exception):
                entry.settle(result)
            else:
                entry.settle(Batched(result, started - entry.since, run_s))
