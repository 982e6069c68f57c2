"""The batcher as a pure unit: a run that the test steps by hand, and a clock that it sets."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Sequence

import pytest

from service.errors import Code, VQAError
from service.scheduling import Batched, Batcher, Urgency
from tests.scheduling.clock import Clock, settle


class Steps:
    """A `run` that records each batch and waits until the test lets it finish."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.gates: list[asyncio.Event] = []
        self.bad: set[str] = set()

    async def __call__(self, items: Sequence[str]) -> Sequence[str | Exception]:
        gate = asyncio.Event()
        self.batches.append(list(items))
        self.gates.append(gate)
        await gate.wait()
        if self.bad & set(items):
            raise ValueError("a bad item")
        return [item.upper() for item in items]


def submit(batcher: Batcher[str, str], key: object, *items: str) -> list[asyncio.Task[Batched[str]]]:
    return [asyncio.ensure_future(batcher.submit(key, item)) for item in items]


async def test_an_idle_runner_starts_at_once() -> None:
    run, clock = Steps(), Clock()
    batcher = Batcher(run, max_batch=8, clock=clock)
    [task] = submit(batcher, 1, "a")
    await settle()
    assert run.batches == [["a"]], "one item must not wait for company"
    run.gates[0].set()
    assert (await task).queue_s == 0.0


async def test_a_busy_runner_collects() -> None:
    run, clock, sizes = Steps(), Clock(), []
    batcher = Batcher(run, max_batch=3, clock=clock, observe_batch=sizes.append)
    tasks = submit(batcher, 1, "a")
    await settle()
    tasks += submit(batcher, 1, "b", "c", "d", "e")
    await settle()
    assert run.batches == [["a"]]
    assert batcher.waiting == 4
    clock.now = 107.0
    run.gates[0].set()
    await settle()
    assert run.batches[1] == ["b", "c", "d"]
    run.gates[1].set()
    await settle()
    run.gates[2].set()
    results = await asyncio.gather(*tasks)
    assert [r.result for r in results] == ["A", "B", "C", "D", "E"]
    assert [r.queue_s for r in results] == [0.0, 7.0, 7.0, 7.0, 7.0]
    assert results[0].run_s == 7.0
    assert sizes == [1, 3, 1]


async def test_a_batch_holds_one_key_and_the_longest_waiting_goes_first() -> None:
    run = Steps()
    batcher = Batcher(run, max_batch=8)
    tasks = submit(batcher, "x", "a")
    await settle()
    tasks += submit(batcher, "y", "b") + submit(batcher, "x", "c") + submit(batcher, "y", "d")
    for i in range(3):
        await settle()
        run.gates[i].set()
    await asyncio.gather(*tasks)
    assert run.batches == [["a"], ["b", "d"], ["c"]]


async def test_those_who_leave_cost_nothing() -> None:
    run = Steps()
    batcher = Batcher(run, max_batch=8)
    [first] = submit(batcher, 1, "a")
    await settle()
    gone, stays = submit(batcher, 1, "b", "c")
    await settle()
    gone.cancel()
    await settle()
    assert batcher.waiting == 1
    run.gates[0].set()
    await settle()
    assert run.batches[1] == ["c"]
    run.gates[1].set()
    assert (await stays).result == "C"
    assert (await first).result == "A"


async def test_leaving_while_the_batch_runs_harms_nobody() -> None:
    run = Steps()
    batcher = Batcher(run, max_batch=8)
    gone, stays = submit(batcher, 1, "a", "b")
    await settle()
    gone.cancel()
    await settle()
    run.gates[0].set()
    assert (await stays).result == "B"
    [after] = submit(batcher, 1, "c")
    await settle()
    run.gates[1].set()
    assert (await after).result == "C"


async def test_a_bad_item_fails_alone() -> None:
    run = Steps()
    run.bad = {"b"}
    batcher = Batcher(run, max_batch=8)
    tasks = submit(batcher, 1, "a", "b", "c")
    for i in range(4):
        await settle()
        run.gates[i].set()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert run.batches == [["a", "b", "c"], ["a"], ["b"], ["c"]]
    assert [getattr(o, "result", None) for o in outcomes] == ["A", None, "C"]
    assert isinstance(outcomes[1], ValueError)


async def test_results_that_are_errors_belong_to_their_items() -> None:
    async def run(items: Sequence[str]) -> Sequence[str | Exception]:
        return [ValueError(item) if item == "b" else item for item in items]

    batcher = Batcher(run, max_batch=8)
    outcomes = await asyncio.gather(*submit(batcher, 1, "a", "b", "c"), return_exceptions=True)
    assert isinstance(outcomes[1], ValueError)
    assert [outcomes[0].result, outcomes[2].result] == ["a", "c"]


async def test_several_runners_work_at_once() -> None:
    run = Steps()
    batcher = Batcher(run, max_batch=1, runners=2)
    tasks = submit(batcher, 1, "a", "b", "c")
    await settle()
    assert sorted(map(tuple, run.batches)) == [("a",), ("b",)]
    run.gates[1].set()
    await settle()
    assert run.batches[2] == ["c"]
    for gate in run.gates:
        gate.set()
    await asyncio.gather(*tasks)


async def test_more_runners_begin_at_once_with_what_waits_and_fewer_are_fewer() -> None:
    run = Steps()
    batcher = Batcher(run, max_batch=1, runners=1)
    tasks = submit(batcher, 1, *"abcd")
    await settle()
    assert run.batches == [["a"]]
    batcher.runners = 3
    await settle()
    assert run.batches == [["a"], ["b"], ["c"]]
    batcher.runners = 1
    for gate in run.gates:
        gate.set()
    await settle()
    run.gates[-1].set()
    await asyncio.gather(*tasks)
    run.gates.clear()
    more = submit(batcher, 1, *"xy")
    await settle()
    assert batcher.running == 1
    while not all(task.done() for task in more):
        run.gates[-1].set()
        await settle()
    await batcher.close()
    batcher.runners = 2


async def test_an_item_that_comes_just_as_the_runner_ends_is_not_left() -> None:
    async def run(items: Sequence[int]) -> Sequence[int]:
        return list(items)

    batcher = Batcher(run, max_batch=2)
    for i in range(200):
        assert (await asyncio.wait_for(batcher.submit(i % 3, i), 5)).result == i


async def test_closing_fails_what_waits_and_lets_what_runs_finish() -> None:
    run = Steps()
    batcher = Batcher(run, max_batch=1)
    running, waiting = submit(batcher, 1, "a", "b")
    await settle()
    closing = asyncio.ensure_future(batcher.close())
    await settle()
    with pytest.raises(VQAError) as refused:
        await waiting
    assert refused.value.code is Code.NOT_READY
    assert not closing.done()
    run.gates[0].set()
    assert (await running).result == "A"
    await closing
    with pytest.raises(VQAError):
        await batcher.submit(1, "c")


async def test_a_run_with_too_few_results_fails_its_items_and_nothing_hangs() -> None:
    async def run(items: Sequence[str]) -> Sequence[str]:
        return []

    batcher = Batcher(run, max_batch=8)
    outcomes = await asyncio.wait_for(asyncio.gather(*submit(batcher, 1, "a", "b"), return_exceptions=True), 5)
    assert all(isinstance(outcome, RuntimeError) for outcome in outcomes)


async def test_a_cancelled_run_fails_its_items_and_the_next_are_served() -> None:
    calls = 0

    async def run(items: Sequence[str]) -> Sequence[str]:
        nonlocal calls
        calls += 1
        await asyncio.sleep(0)
        if calls == 1:
            raise asyncio.CancelledError
        return list(items)

    batcher = Batcher(run, max_batch=1)
    tasks = submit(batcher, 1, "a", "b", "c")
    outcomes = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 5)
    assert isinstance(outcomes[0], VQAError)
    assert outcomes[0].code is Code.BACKEND_FAILED
    assert [outcome.result for outcome in outcomes[1:]] == ["b", "c"]


async def test_what_left_is_let_go_of_at_once() -> None:
    """An item holds a picture's tensors; a storm of cancels must not keep them until a runner is free."""
    run = Steps()
    batcher = Batcher(run, max_batch=8)
    [first] = submit(batcher, 1, "a")
    await settle()
    tasks = submit(batcher, 2, *"bcdef")
    await settle()
    for task in tasks:
        task.cancel()
    await settle()
    assert batcher.waiting == 0
    assert not batcher._queues
    run.gates[0].set()
    await first


async def test_a_batch_runs_in_no_callers_context() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("caller", default="nobody")
    seen: list[str] = []

    async def run(items: Sequence[str]) -> Sequence[str]:
        seen.append(variable.get())
        return list(items)

    batcher = Batcher(run, max_batch=8)
    variable.set("somebody")
    await batcher.submit(1, "a")
    assert seen == ["nobody"]


async def test_what_was_abandoned_is_not_run_and_its_callers_are_ended_by_whoever_abandoned_it() -> None:
    run = Steps()
    batcher = Batcher(run, max_batch=8, clock=Clock())
    [first] = submit(batcher, 1, "first")
    await settle()
    gone = [Urgency(), Urgency()]
    left = [asyncio.ensure_future(batcher.submit(1, f"gone {n}", urgency)) for n, urgency in enumerate(gone)]
    [stays] = submit(batcher, 1, "stays")
    await settle()
    for urgency in gone:
        urgency.abandon()
    run.gates[0].set()
    await first
    await settle()
    assert run.batches == [["first"], ["stays"]]
    assert not any(task.done() for task in left), "hundreds at once would keep those who stay"
    assert batcher.waiting == 0
    run.gates[1].set()
    await stays
    for task in left:
        task.cancel()
    await settle()
    assert all(task.cancelled() for task in left)


async def test_a_failed_batch_is_not_tried_again_for_those_who_have_gone() -> None:
    run = Steps()
    run.bad = {"bad"}
    batcher = Batcher(run, max_batch=8, clock=Clock())
    [first] = submit(batcher, 1, "first")
    await settle()
    leaver = Urgency()
    left = asyncio.ensure_future(batcher.submit(1, "gone", leaver))
    [bad] = submit(batcher, 1, "bad")
    await settle()
    run.gates[0].set()
    await first
    await settle()
    leaver.abandon()
    run.gates[1].set()
    await settle()
    run.gates[2].set()
    with pytest.raises(ValueError, match="a bad item"):
        await bad
    assert run.batches == [["first"], ["gone", "bad"], ["bad"]]
    left.cancel()
