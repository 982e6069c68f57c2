"""Admission by predicted time: a promise that was made is kept, and no capacity is thrown away."""

from __future__ import annotations

import asyncio
import heapq
import random
from contextlib import AbstractContextManager

import pytest

from service.errors import Code, VQAError
from service.scheduling import Admission, Ticket, Urgency
from tests.scheduling.clock import Clock, settle


def ticket(
    due: float,
    inference_s: float = 0.1,
    *,
    priority: str = "interactive",
    backend: str = "classifier",
    decode_s: float = 0,
) -> Ticket:
    return Ticket(Urgency(due, priority), backend, decode_s, inference_s, 0.0)


class House:
    """Questions that were let in and stay until the test sends them out."""

    def __init__(self, admission: Admission) -> None:
        self._admission = admission
        self.outcomes: dict[Ticket, object] = {}
        self.tasks: dict[Ticket, asyncio.Task[None]] = {}
        self._gates: dict[Ticket, asyncio.Event] = {}

    async def come(self, new: Ticket) -> bool:
        self._gates[new] = asyncio.Event()
        self.tasks[new] = asyncio.ensure_future(self._stay(new))
        await settle()
        return new not in self.outcomes

    async def go(self, ticket: Ticket) -> None:
        self._gates[ticket].set()
        await settle()

    async def _stay(self, new: Ticket) -> None:
        try:
            with self._admission.permit(new):
                await self._gates[new].wait()
            self.outcomes[new] = "done"
        except VQAError as error:
            self.outcomes[new] = error


async def test_the_limit_counts_questions() -> None:
    seen: list[int] = []
    house = House(Admission(3, clock=Clock(), observe=seen.append))
    first = ticket(1e9)
    assert [await house.come(t) for t in (first, ticket(1e9), ticket(1e9), ticket(1e9))] == [True, True, True, False]
    await house.go(first)
    assert await house.come(ticket(1e9))
    assert seen == [1, 2, 3, 2, 3]


async def test_a_refusal_says_when_to_come_back() -> None:
    house = House(Admission(100, clock=Clock(0)))
    for _ in range(50):
        assert await house.come(ticket(due=1000, inference_s=1.0))
    hurried = ticket(due=10, inference_s=1.0)
    # It could go first; what it cannot do is push anybody over the edge, and nobody is near it.
    assert await house.come(hurried)
    patient = ticket(due=20, inference_s=30.0)
    assert not await house.come(patient)
    refused = house.outcomes[patient]
    assert refused.code is Code.SATURATED
    assert refused.retry_after_s >= 1
    assert refused.retry_after_s == int(refused.retry_after_s)


async def test_nobody_is_let_in_who_would_make_another_late() -> None:
    house = House(Admission(100, clock=Clock(0)))
    assert await house.come(ticket(due=1.0, inference_s=0.9))
    assert not await house.come(ticket(due=0.5, inference_s=0.3)), "it would push the first beyond its deadline"
    assert await house.come(ticket(due=5.0, inference_s=0.3))


def asked_beforehand(admission: Admission, new: Ticket) -> bool:
    try:
        admission.check(new)
    except VQAError:
        return False
    return True


@pytest.mark.parametrize("limit", [5, 100])
async def test_asking_beforehand_tells_what_would_happen_and_changes_nothing(limit: int) -> None:
    rng = random.Random(limit)
    admission = Admission(limit, clock=Clock(0))
    house, answers = House(admission), []
    for _ in range(200):
        new = ticket(rng.uniform(0.2, 3.0), 0.1, priority=rng.choice(["interactive", "interactive", "batch"]))
        before = admission.in_flight, [t.shed for t in house.tasks]
        expected = asked_beforehand(admission, new)
        assert (admission.in_flight, [t.shed for t in house.tasks]) == before
        assert await house.come(new) == expected
        answers.append(expected)
        if rng.random() < 0.2 and (inside := [t for t in house.tasks if t not in house.outcomes]):
            await house.go(rng.choice(inside))
    assert set(answers) == {True, False}


async def test_an_idle_house_tries_everything() -> None:
    """A wrong belief about times would never be mended if it kept everybody out."""
    house = House(Admission(100, clock=Clock(0)))
    assert await house.come(ticket(due=0.1, inference_s=50.0))


async def test_decoding_is_counted_and_what_is_done_is_not() -> None:
    house = House(Admission(100, clock=Clock(0)))
    big = ticket(due=100, inference_s=0.1, decode_s=9.0)
    assert await house.come(big)
    assert not await house.come(ticket(due=5, inference_s=1.0, priority="batch"))
    big.decode_s = 0.0
    assert await house.come(ticket(due=5, inference_s=1.0, priority="batch"))


async def test_one_backends_queue_is_not_anothers() -> None:
    house = House(Admission(100, clock=Clock(0)))
    assert await house.come(ticket(due=1000, inference_s=500, backend="generator"))
    assert await house.come(ticket(due=1, inference_s=0.1))


async def test_batch_makes_way_when_the_house_is_full() -> None:
    shed: list[int] = []
    house = House(Admission(2, clock=Clock(0), observe_shed=lambda: shed.append(1)))
    soon, later = ticket(50, priority="batch"), ticket(90, priority="batch")
    assert await house.come(soon)
    assert await house.come(later)
    assert not await house.come(ticket(40, priority="batch")), "batch does not push out batch"
    person = ticket(60)
    assert await house.come(person)
    assert house.outcomes[later].code is Code.SATURATED
    assert house.outcomes[later].retry_after_s >= 1
    assert soon not in house.outcomes
    assert shed == [1]
    assert [task.cancelling() for task in house.tasks.values()] == [0] * len(house.tasks), "no cancellation is left"


async def test_batch_that_cannot_keep_its_deadline_any_more_is_told_at_once() -> None:
    house = House(Admission(100, clock=Clock(0)))
    bulk = ticket(due=10, inference_s=4, priority="batch")
    assert await house.come(bulk)
    assert await house.come(ticket(due=20, inference_s=7))
    assert house.outcomes[bulk].code is Code.SATURATED


async def test_interactive_does_not_wait_for_batch() -> None:
    house = House(Admission(100, clock=Clock(0)))
    for _ in range(10):
        assert await house.come(ticket(due=1000, inference_s=10, priority="batch"))
    assert await house.come(ticket(due=1, inference_s=0.5))


async def test_a_caller_that_leaves_gives_its_place_back_and_is_no_shed() -> None:
    house = House(Admission(1, clock=Clock(0)))
    first = ticket(10)
    assert await house.come(first)
    house.tasks[first].cancel()
    await settle()
    assert house.tasks[first].cancelled()
    assert await house.come(ticket(10))


@pytest.mark.parametrize("seed", range(20))
async def test_promises_are_kept_by_a_server_that_takes_the_nearest_deadline(seed: int) -> None:
    """A simulation with exact times: who is let in finishes in time, and the server is kept busy."""
    rng, clock = random.Random(seed), Clock(0.0)
    admission = Admission(10_000, clock=clock)
    waiting: list[tuple[float, int, Ticket]] = []
    permits: dict[Ticket, AbstractContextManager[None]] = {}
    running: Ticket | None = None
    free_at, served_s, late, refused = 0.0, 0.0, 0, 0

    def serve_until(moment: float) -> None:
        """A server that takes the nearest deadline and finishes what it has begun."""
        nonlocal running, free_at, served_s, late
        while free_at <= moment:
            if running is not None:
                late += free_at > running.urgency.due
                permits.pop(running).__exit__(None, None, None)
                running = None
            if not waiting:
                break
            _, _, running = heapq.heappop(waiting)
            free_at += running.inference_s
            served_s += running.inference_s

    for number, moment in enumerate(sorted(rng.uniform(0, 60) for _ in range(1800))):
        serve_until(moment)
        clock.now = moment
        job = ticket(due=moment + rng.uniform(0.2, 4.0), inference_s=rng.uniform(0.02, 0.15))
        permit = admission.permit(job)
        try:
            permit.__enter__()
        except VQAError:
            refused += 1
            continue
        permits[job] = permit
        heapq.heappush(waiting, (job.urgency.due, number, job))
        if running is None:
            free_at = max(free_at, moment)
            serve_until(moment)
    serve_until(float("inf"))
    # Offered: 1,800 x 0.085 s = 153 s of work in 60 s.
    assert refused > 500
    assert late == 0
    assert served_s > 0.9 * 60


async def test_it_learns_that_everything_takes_longer_than_was_believed() -> None:
    clock = Clock(0)
    admission = Admission(100, clock=clock)
    house = House(admission)
    for _ in range(30):
        slow = ticket(due=clock.now + 100, inference_s=0.1)
        assert await house.come(slow)
        clock.now += 0.3
        await house.go(slow)
    assert 2.5 < admission.slowness <= 3.1
    assert await house.come(ticket(due=clock.now + 100, inference_s=1.0))
    assert not await house.come(ticket(due=clock.now + 5, inference_s=1.0)), "two seconds of work take six"
    assert await house.come(ticket(due=clock.now + 20, inference_s=1.0))


async def test_those_who_have_gone_take_no_place_and_no_time() -> None:
    house = House(Admission(2, clock=Clock(0)))
    gone = [ticket(due=1000, inference_s=5.0), ticket(due=1000, inference_s=5.0)]
    assert [await house.come(each) for each in gone] == [True, True]
    assert not await house.come(ticket(due=1000, inference_s=0.1))
    for each in gone:
        each.urgency.abandon()
    assert await house.come(ticket(due=1001, inference_s=0.1)), "the limit counts those who are there"
    hurried = House(Admission(9, clock=Clock(0)))
    gone = [ticket(due=9, inference_s=5.0)]
    assert await hurried.come(gone[0])
    assert not await hurried.come(ticket(due=9.5, inference_s=4.0))
    gone[0].urgency.abandon()
    assert await hurried.come(ticket(due=9.5, inference_s=4.0)), "nothing will be done for who has gone"


async def test_a_batch_question_of_another_backend_makes_no_way() -> None:
    house = House(Admission(100, clock=Clock(0)))
    generator = ticket(600, 500, priority="batch", backend="generator")
    classifier = ticket(650, 200, priority="batch")
    assert await house.come(generator)
    assert await house.come(classifier)
    assert await house.come(ticket(10, 0.1))
    assert house.outcomes == {}


@pytest.mark.parametrize("slow", [1.0, 2.0])
async def test_being_overtaken_is_no_slowness(slow: float) -> None:
    """One server, the most urgent first; work takes `slow` times what is believed."""
    rng, clock = random.Random(3), Clock(0)
    admission = Admission(10_000, clock=clock)
    waiting: list[tuple[int, float, int, Ticket]] = []
    permits: dict[Ticket, AbstractContextManager[None]] = {}
    believed: list[float] = []
    served: Ticket | None = None
    free = 0.0
    arrivals = [(rng.uniform(0, 400), "interactive", 2.0) for _ in range(1400)]
    arrivals += [(rng.uniform(0, 400), "batch", 60.0) for _ in range(600 if slow == 1.0 else 0)]
    for number, (moment, priority, patience) in enumerate(sorted(arrivals)):
        while free <= moment and (served is not None or waiting):
            if served is not None:
                clock.now = free
                permits.pop(served).__exit__(None, None, None)
                served = None
            while waiting and served is None:
                *_, following = heapq.heappop(waiting)
                if following.shed is None:
                    served = following
                    free += slow * following.inference_s
        clock.now = moment
        new = ticket(moment + patience, 0.2, priority=priority)
        permit = admission.permit(new)
        try:
            permit.__enter__()
        except VQAError:
            continue
        new.task = None
        permits[new] = permit
        if served is None:
            served, free = new, moment + slow * new.inference_s
        else:
            heapq.heappush(waiting, (*new.urgency.order, number, new))
        believed.append(admission.slowness)
    late = believed[len(believed) // 2 :]
    assert slow * 0.8 < sum(late) / len(late) < slow * 1.25


async def test_of_those_who_share_work_the_most_patient_decides() -> None:
    house = House(Admission(100, clock=Clock(0)))
    assert await house.come(ticket(due=0.1, inference_s=0.1))
    assert not await house.come(ticket(due=0.2, inference_s=0.3))
    both = Urgency.shared()
    both.join(Urgency(0.2))
    both.join(Urgency(60))
    assert await house.come(Ticket(both, "classifier", 0, 0.3, 0.0)), "one of them can still be answered"
