"""One replica, in scenarios worked out by hand; an inference takes a second where nothing else is said."""

from __future__ import annotations

from collections.abc import Callable

from loadtest.simulation.question import Outcome
from tests.loadtest.simulation.conftest import Scenario

Make = Callable[..., Scenario]
ANSWERED, LATE, REFUSED = Outcome.ANSWERED, Outcome.LATE, Outcome.REFUSED


def test_the_nearest_deadline_goes_first_and_interrupts_nothing(scenario: Make) -> None:
    run = scenario()
    run.asks("begun", 0.0, within=90.0)
    run.asks("patient", 0.1, within=50.0)
    run.asks("hasty", 0.2, within=20.0)
    assert run.run() == [("begun", ANSWERED, 1.0), ("hasty", ANSWERED, 2.0), ("patient", ANSWERED, 3.0)]


def test_cores_work_side_by_side(scenario: Make) -> None:
    run = scenario(cores=2)
    for name in "abc":
        run.asks(name, 0.0)
    assert run.run() == [("a", ANSWERED, 1.0), ("b", ANSWERED, 1.0), ("c", ANSWERED, 2.0)]
    run.replica.account()
    assert run.replica.busy_core_s == 3.0


def test_a_lone_question_has_all_cores_where_that_is_quicker() -> None:
    from loadtest.simulation.machine import Machine

    run = Scenario(Machine(2, alone_s=0.5, busy_s=1.0))
    run.asks("lone", 0.0, busy=0.5)
    # Two at once are within the patience of 1 / 0.5; the second waits for the first.
    run.asks("second", 0.1, busy=0.5)
    assert run.run() == [("lone", ANSWERED, 0.5), ("second", ANSWERED, 1.0)]


def test_a_picture_is_decoded_once_for_all_who_ask_about_it(scenario: Make) -> None:
    run = scenario()
    run.asks("one", 0.0, prepare=1.0)
    run.asks("two", 0.5, prepare=1.0)
    assert run.run() == [("one", ANSWERED, 2.0), ("two", ANSWERED, 3.0)]
    assert run.replica.prepared == 1


def test_the_same_question_is_computed_once(scenario: Make) -> None:
    run = scenario()
    run.asks("same", 0.0)
    run.asks("same", 0.5)
    assert run.run() == [("same", ANSWERED, 1.0)] * 2
    assert (run.replica.computed, run.replica.joined) == (1, 1)


def test_whoever_joins_makes_it_as_urgent(scenario: Make) -> None:
    run = scenario()
    run.asks("begun", 0.0)
    run.asks("joined", 0.1, within=80.0)
    run.asks("between", 0.2, within=50.0)
    run.asks("joined", 0.3, within=20.0)
    assert [name for name, _, _ in run.run()] == ["begun", "joined", "joined", "between"]


def test_the_cache_answers_what_was_computed_until_it_is_forgotten(scenario: Make) -> None:
    run = scenario(cache_entries=1, front_s=0.25)
    run.asks("a", 0.0)
    run.asks("a", 2.0)
    run.asks("b", 4.0)
    run.asks("a", 6.0)
    assert run.run() == [("a", ANSWERED, 1.0), ("a", ANSWERED, 2.25), ("b", ANSWERED, 5.0), ("a", ANSWERED, 7.0)]
    assert run.replica.hits == 1


def test_what_would_be_late_is_refused_by_the_services_own_rule(scenario: Make) -> None:
    """Begun, a second to go; behind it 1.5 x (1 + 1 + 2) s would be needed, as `latency_s` is believed to be 2."""
    for within, outcome in ((5.9, REFUSED), (6.1, ANSWERED)):
        run = scenario()
        run.asks("begun", 0.0)
        run.asks("next", 0.0, within=within)
        assert ("next", outcome) in {(name, found) for name, found, _ in run.run()}, within


def test_refusals_cost_what_was_measured(scenario: Make) -> None:
    run = scenario(refusal_s=0.25)
    run.asks("begun", 0.0)
    run.asks("refused", 0.5, within=0.1)
    run.asks("next", 0.6)
    assert run.run() == [("refused", REFUSED, 0.5), ("begun", ANSWERED, 1.0), ("next", ANSWERED, 2.25)]


def test_a_question_whose_time_has_run_out_costs_nothing(scenario: Make) -> None:
    run = scenario()
    # Admission believes a second; it takes ten.
    run.asks("long", 0.0, busy=10.0)
    run.asks("expired", 0.1, within=6.5)
    run.asks("next", 0.2)
    assert run.run() == [("long", ANSWERED, 10.0), ("expired", LATE, 10.0), ("next", ANSWERED, 11.0)]


def test_an_answer_after_its_deadline_is_late(scenario: Make) -> None:
    run = scenario()
    run.asks("long", 0.0, within=5.0, busy=6.0)
    assert run.run() == [("long", LATE, 6.0)]


def test_a_crash_loses_what_is_under_way_and_what_was_remembered(scenario: Make) -> None:
    run = scenario(cache_entries=10)
    run.asks("done", 0.0)
    run.asks("begun", 2.0)
    run.asks("waiting", 2.1)
    run.asks("done", 4.0)
    assert run.run(crash_at=2.5) == [("done", ANSWERED, 1.0), ("done", ANSWERED, 5.0)]
    assert sorted(run.lost) == ["begun", "waiting"]
    assert run.replica.in_flight == 0


def test_a_slow_replica_takes_longer(scenario: Make) -> None:
    run = scenario()
    run.replica.slowdown = 2.0
    run.asks("a", 0.0)
    assert run.run() == [("a", ANSWERED, 2.0)]
