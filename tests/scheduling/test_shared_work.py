"""Single flight: one computation for all who want the same, and whoever leaves harms nobody."""

from __future__ import annotations

import asyncio

import pytest

from service.errors import Code, VQAError
from service.scheduling import SharedWork, Urgency
from tests.scheduling.clock import settle


class Work:
    """A computation that waits for the test."""

    def __init__(self, error: Exception | None = None) -> None:
        self.gate = asyncio.Event()
        self.started = self.cancelled = 0
        self.urgencies: list[Urgency] = []
        self._error = error

    async def __call__(self, urgency: Urgency) -> str:
        self.started += 1
        self.urgencies.append(urgency)
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self._error is not None:
            raise self._error
        return "done"


def join(shared: SharedWork[str], work: Work, count: int, key: object = 1) -> list[asyncio.Task[str]]:
    return [asyncio.ensure_future(shared.run(key, Urgency(i), work)) for i in range(count, 0, -1)]


async def test_many_wait_for_one() -> None:
    shared: SharedWork[str] = SharedWork()
    work = Work()
    tasks = join(shared, work, 1000)
    await settle()
    assert (work.started, len(shared)) == (1, 1)
    work.gate.set()
    assert set(await asyncio.gather(*tasks)) == {"done"}
    assert len(shared) == 0


async def test_the_leader_leaves_and_the_followers_stay() -> None:
    shared: SharedWork[str] = SharedWork()
    work = Work()
    leader, *followers = join(shared, work, 3)
    await settle()
    leader.cancel()
    await settle()
    assert leader.cancelled()
    assert work.cancelled == 0
    work.gate.set()
    assert await asyncio.gather(*followers) == ["done", "done"]


async def test_the_last_to_leave_ends_it_and_the_next_begins_anew() -> None:
    shared: SharedWork[str] = SharedWork()
    work, again = Work(), Work()
    tasks = join(shared, work, 3)
    await settle()
    for task in tasks:
        task.cancel()
    # Asked for in the very step in which the others leave: what is being cancelled must not be joined.
    [late] = join(shared, again, 1)
    await settle()
    assert work.cancelled == 1
    again.gate.set()
    assert await late == "done"
    await settle()
    assert len(shared) == 0


async def test_what_somebody_else_cancels_is_not_joined() -> None:
    shared: SharedWork[str] = SharedWork()
    tasks: list[asyncio.Task[str] | None] = []

    async def compute(_: Urgency) -> str:
        tasks.append(asyncio.current_task())
        await asyncio.sleep(0 if len(tasks) > 1 else 60)
        return "done"

    bulk = asyncio.ensure_future(shared.run(1, Urgency(9, "batch"), compute))
    await settle()
    tasks[0].cancel()
    assert 1 not in shared
    assert await shared.run(1, Urgency(5), compute) == "done"
    with pytest.raises(VQAError):
        await bulk


async def test_what_was_given_up_is_not_joined_though_its_callers_are_still_there() -> None:
    shared: SharedWork[str] = SharedWork()
    given_up, anew, leaver = Work(), Work(), Urgency(9)
    first = asyncio.ensure_future(shared.run(1, leaver, given_up))
    await settle()
    leaver.abandon()
    assert 1 not in shared
    anew.gate.set()
    assert await shared.run(1, Urgency(5), anew) == "done"
    assert given_up.cancelled == 0, "its caller has not been told yet"
    first.cancel()
    await settle()
    assert given_up.cancelled == 1


async def test_those_who_leave_together_wait_until_each_is_told() -> None:
    shared: SharedWork[str] = SharedWork()
    work, leavers = Work(), [Urgency(9), Urgency(9), Urgency(9)]
    tasks = [asyncio.ensure_future(shared.run(1, leaver, work)) for leaver in leavers]
    await settle()
    for leaver in leavers:
        leaver.abandon()
    tasks[0].cancel()
    await settle()
    assert [task.done() for task in tasks] == [True, False, False]
    assert work.cancelled == 0
    for task in tasks:
        task.cancel()
    await settle()
    assert work.cancelled == 1


async def test_who_has_left_begins_nothing() -> None:
    shared: SharedWork[str] = SharedWork()
    work, gone = Work(), Urgency(9)
    gone.abandon()
    with pytest.raises(VQAError) as left:
        await shared.run(1, gone, work)
    assert left.value.code is Code.CLIENT_CLOSED_REQUEST
    assert (work.started, len(shared)) == (0, 0)


def test_who_was_abandoned_before_joining_is_not_counted() -> None:
    work, gone, stays = Urgency.shared(), Urgency(9), Urgency(9)
    gone.abandon()
    work.join(stays)
    work.join(gone)
    assert not work.abandoned
    work.leave(gone)
    stays.abandon()
    assert work.abandoned
    nobodys = Urgency.shared()
    nobodys.join(gone)
    assert nobodys.abandoned


async def test_urgency_reaches_what_the_work_itself_waits_for() -> None:
    answers: SharedWork[str] = SharedWork()
    pictures: SharedWork[str] = SharedWork()
    decode = Work()

    async def compute(urgency: Urgency) -> str:
        return await pictures.run(1, urgency, decode)

    tasks = [asyncio.ensure_future(answers.run(1, Urgency(60, "batch"), compute))]
    await settle()
    tasks.append(asyncio.ensure_future(answers.run(1, Urgency(5), compute)))
    await settle()
    [urgency] = decode.urgencies
    assert (urgency.order, urgency.expires) == ((0, 5), 60)
    decode.gate.set()
    await asyncio.gather(*tasks)


async def test_an_error_is_everybodys() -> None:
    shared: SharedWork[str] = SharedWork()
    work = Work(ValueError("ours"))
    tasks = join(shared, work, 3)
    await settle()
    work.gate.set()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [ValueError] * 3


async def test_work_that_is_cancelled_from_outside_is_an_error_and_no_cancellation() -> None:
    shared: SharedWork[str] = SharedWork()

    async def compute(_: Urgency) -> str:
        raise asyncio.CancelledError

    with pytest.raises(VQAError) as failed:
        await shared.run(1, Urgency(), compute)
    assert failed.value.code is Code.BACKEND_FAILED


async def test_it_is_as_urgent_as_the_most_urgent() -> None:
    shared: SharedWork[str] = SharedWork()
    work = Work()
    bulk = asyncio.ensure_future(shared.run(1, Urgency(100, "batch"), work))
    await settle()
    person = asyncio.ensure_future(shared.run(1, Urgency(5), work))
    await settle()
    [urgency] = work.urgencies
    assert (urgency.rank, urgency.due, urgency.expires) == (0, 5, 100)
    work.gate.set()
    await asyncio.gather(bulk, person)


async def test_different_keys_share_nothing() -> None:
    shared: SharedWork[str] = SharedWork()
    one, two = Work(), Work()
    tasks = join(shared, one, 2, key="a") + join(shared, two, 2, key="b")
    await settle()
    assert (one.started, two.started) == (1, 1)
    one.gate.set()
    two.gate.set()
    await asyncio.gather(*tasks)
