"""Who goes first in a batcher's queue, and who is not run at all."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from service.errors import Code, VQAError
from service.scheduling import Batcher, Urgency
from tests.scheduling.clock import Clock, settle


class Gate:
    """A `run` whose first batch waits for the test."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.open = asyncio.Event()

    async def __call__(self, items: Sequence[str]) -> Sequence[str]:
        self.batches.append(list(items))
        if len(self.batches) == 1:
            await self.open.wait()
        return list(items)


async def served(max_batch: int, *waiting: tuple[str, str, float]) -> list[list[str]]:
    """The batches in which items of (name, priority, due) were run that waited for a busy runner."""
    run = Gate()
    batcher: Batcher[str, str] = Batcher(run, max_batch=max_batch, clock=Clock(0.0))
    tasks = [asyncio.ensure_future(batcher.submit(1, "first", Urgency(1.0)))]
    await settle()
    for name, priority, due in waiting:
        tasks.append(asyncio.ensure_future(batcher.submit(1, name, Urgency(due, priority))))
        await settle()
    run.open.set()
    await asyncio.gather(*tasks)
    return run.batches[1:]


async def test_the_nearest_deadline_goes_first() -> None:
    order = await served(1, ("late", "interactive", 9), ("soon", "interactive", 2), ("middle", "interactive", 5))
    assert order == [["soon"], ["middle"], ["late"]]


async def test_batch_goes_last_however_near_its_deadline() -> None:
    order = await served(1, ("bulk", "batch", 1), ("person", "interactive", 60))
    assert order == [["person"], ["bulk"]]


async def test_equal_deadlines_go_in_the_order_of_arrival() -> None:
    order = await served(2, *((name, "interactive", 7) for name in "abcde"))
    assert order == [["a", "b"], ["c", "d"], ["e"]]


async def test_the_most_urgent_key_goes_first_whatever_came_before() -> None:
    run = Gate()
    batcher: Batcher[str, str] = Batcher(run, max_batch=8, clock=Clock(0.0))
    tasks = [asyncio.ensure_future(batcher.submit("x", "first", Urgency(1)))]
    await settle()
    for key, item, due in (("x", "x9", 9), ("x", "x8", 8), ("y", "y3", 3), ("y", "y20", 20)):
        tasks.append(asyncio.ensure_future(batcher.submit(key, item, Urgency(due))))
    await settle()
    run.open.set()
    await asyncio.gather(*tasks)
    assert run.batches[1:] == [["y3", "y20"], ["x8", "x9"]]


async def test_an_urgency_that_is_raised_while_its_item_waits_counts() -> None:
    run, bulk = Gate(), Urgency(500, "batch")
    batcher: Batcher[str, str] = Batcher(run, max_batch=1, clock=Clock(0.0))
    tasks = [asyncio.ensure_future(batcher.submit(1, "first", Urgency(1)))]
    await settle()
    tasks.append(asyncio.ensure_future(batcher.submit(1, "person", Urgency(50))))
    tasks.append(asyncio.ensure_future(batcher.submit(1, "shared", bulk)))
    await settle()
    bulk.join(Urgency(10, "interactive"))
    run.open.set()
    await asyncio.gather(*tasks)
    assert run.batches[1:] == [["shared"], ["person"]]
    assert (bulk.rank, bulk.due, bulk.expires) == (0, 10, 500)


async def test_what_is_late_is_never_run() -> None:
    run, clock = Gate(), Clock(0.0)
    batcher: Batcher[str, str] = Batcher(run, max_batch=4, clock=clock)
    first = asyncio.ensure_future(batcher.submit(1, "first", Urgency(99)))
    await settle()
    late = asyncio.ensure_future(batcher.submit(1, "late", Urgency(5)))
    kept = asyncio.ensure_future(batcher.submit(1, "kept", Urgency(50)))
    await settle()
    clock.now = 5.0
    run.open.set()
    with pytest.raises(VQAError) as refused:
        await late
    assert refused.value.code is Code.DEADLINE_EXCEEDED
    assert (await first).result == "first"
    assert (await kept).result == "kept"
    assert run.batches == [["first"], ["kept"]]


async def test_a_burst_is_shared_among_idle_runners() -> None:
    batches: list[int] = []

    async def run(items: Sequence[int]) -> Sequence[int]:
        batches.append(len(items))
        await asyncio.sleep(0.01)
        return list(items)

    batcher: Batcher[int, int] = Batcher(run, max_batch=8, runners=4)
    await asyncio.gather(*(batcher.submit(1, i) for i in range(8)))
    assert batches == [2, 2, 2, 2]


async def test_one_item_alone_starts_in_the_same_instant() -> None:
    """The wait that batching adds at one client: none, by a clock that only the test moves."""
    clock = Clock()

    async def run(items: Sequence[str]) -> Sequence[str]:
        return list(items)

    batcher: Batcher[str, str] = Batcher(run, max_batch=64, clock=clock)
    for i in range(100):
        clock.now += 0.001
        done = await batcher.submit(i % 3, "a", Urgency(clock.now + 1))
        assert done.queue_s == 0.0
