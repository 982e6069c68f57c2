"""Leaving alone what fails: one probe at a time, ever more rarely, and a word in the log only for what is new."""

from __future__ import annotations

import logging

import pytest

from service.gateway.breaker import FIRST_S, LONGEST_S, Breaker


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def breaker(clock: Clock) -> Breaker:
    return Breaker("the thing", clock)


def trip(breaker: Breaker, why: str = "gone") -> None:
    ticket = breaker.enter()
    assert ticket is not None
    breaker.failed(ticket, why)


def test_all_calls_go_through_while_all_is_well(breaker: Breaker) -> None:
    tickets = [breaker.enter() for _ in range(5)]
    assert None not in tickets
    for ticket in tickets:
        breaker.succeeded(ticket)
    assert breaker.enter() is not None


def test_the_pauses_double_up_to_the_longest(breaker: Breaker, clock: Clock) -> None:
    pause = FIRST_S
    for _ in range(8):
        trip(breaker)
        clock.now += pause - 0.01
        assert breaker.enter() is None
        clock.now += 0.01
        pause = min(2 * pause, LONGEST_S)
    ticket = breaker.enter()
    breaker.succeeded(ticket)
    trip(breaker)
    clock.now += FIRST_S
    assert breaker.enter() is not None, "after a success it starts again with the shortest"


def test_one_probe_at_a_time(breaker: Breaker, clock: Clock) -> None:
    trip(breaker)
    clock.now += FIRST_S
    probe = breaker.enter()
    assert probe is not None
    assert breaker.enter() is None
    breaker.left(probe)
    second = breaker.enter()
    assert second is not None, "a probe that was given up makes room for the next one"
    breaker.succeeded(second)
    assert breaker.enter() is not None


def test_calls_that_fail_together_are_one_failure(breaker: Breaker, clock: Clock) -> None:
    together = [breaker.enter() for _ in range(16)]
    for ticket in together:
        breaker.failed(ticket, "gone")
    clock.now += FIRST_S
    probe = breaker.enter()
    assert probe is not None
    breaker.failed(together[0], "gone")
    breaker.succeeded(together[1])
    breaker.left(together[2])
    assert breaker.enter() is None, "stragglers decide nothing"
    breaker.succeeded(probe)
    breaker.failed(together[3], "gone")
    assert breaker.enter() is not None


def test_only_what_changes_is_said(breaker: Breaker, clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    for why in ("gone", "gone", "full", "full"):
        trip(breaker, why)
        clock.now += LONGEST_S
    for _ in range(2):
        breaker.succeeded(breaker.enter())
    assert [record.getMessage() for record in caplog.records] == [
        "the thing cannot be used and is left out: gone",
        "the thing cannot be used and is left out: full",
        "the thing works again",
    ]
