"""Fleets: nothing is lost sight of, whatever goes wrong; and what goes wrong has the effect that it must have."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from loadtest.simulation.autoscaling import Scaling, Signal
from loadtest.simulation.fleet import Fleet, simulate
from loadtest.simulation.machine import Machine
from loadtest.simulation.measured import Measured
from loadtest.simulation.question import Outcome
from loadtest.simulation.routing import Policy
from loadtest.simulation.spec import Failures, Spec
from loadtest.simulation.tally import BookkeepingError, Tally
from loadtest.simulation.workload import Questions, Workload, generate

CACHE = 100 * 64 * 1024  # 100 answers of the measured size


def asked(measured: Measured, per_s: float, seconds: float = 300.0, **changes: float) -> Questions:
    return generate(Workload(per_s, seconds, **changes), measured, 1)  # type: ignore[arg-type]


def ends(fleet: Fleet) -> dict[Outcome, int]:
    return {outcome: fleet.tally.count(outcome) for outcome in Outcome}


@pytest.mark.parametrize("policy", list(Policy))
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"failures": Failures(60.0, retry=False)},
        {"failures": Failures(60.0)},
        {"slow": 2, "slowdown": 4.0},
        {"restart_from_s": 50.0},
        {"stale_s": 1.0, "retry_refused": True},
        {"scaling": Scaling({Signal.REQUESTS: 10.0}, least=1, most=20)},
    ],
    ids=["calm", "crashes", "crashes-retried", "slow", "restart", "stale", "scaled"],
)
def test_every_question_ends_as_exactly_one_thing(measured: Measured, policy: Policy, changes: dict) -> None:
    """`simulate` itself checks conservation and Little's law; half as much again as the fleet can do."""
    questions = asked(measured, 110.0, 120.0, questions=2.0, popular_share=0.3)
    fleet = simulate(Spec(Machine.of(measured, CACHE), 4, policy, **changes), questions)
    assert sum(ends(fleet).values()) == len(questions)
    assert fleet.tally.by_minute.sum() == len(questions)
    assert fleet.tally.present_s == pytest.approx(fleet.tally.sojourns_s)
    assert fleet.tally.count(Outcome.ANSWERED) > 0
    latencies = fleet.tally.latencies_s
    assert len(latencies) == fleet.tally.count(Outcome.ANSWERED)
    assert latencies.max() <= 10.0


def test_the_checks_see_what_is_wrong() -> None:
    tally = Tally(10.0)
    tally.came(0.0)
    with pytest.raises(BookkeepingError, match="1 are left"):
        tally.check(1)
    tally.ended(0.0, 2.0, Outcome.ANSWERED, False)
    tally.check(1)
    with pytest.raises(BookkeepingError, match="2 questions were asked"):
        tally.check(2)
    tally.sojourns_s += 1.0
    with pytest.raises(BookkeepingError, match="sum of W"):
        tally.check(1)


def test_a_seed_gives_the_same_run_again(measured: Measured) -> None:
    questions = asked(measured, 60.0, 100.0)
    spec = Spec(Machine.of(measured, CACHE), 4, failures=Failures(50.0))
    one, same, other = (simulate(spec, questions, seed) for seed in (1, 1, 2))
    assert (one.tally.latencies_s == same.tally.latencies_s).all()
    assert ends(one) == ends(same)
    assert (
        len(one.tally.latencies_s) != len(other.tally.latencies_s)
        or (one.tally.latencies_s != other.tally.latencies_s).any()
    )


def test_far_below_capacity_everything_is_in_time(measured: Measured) -> None:
    figures = simulate(Spec(Machine.of(measured, 0), 4), asked(measured, 20.0)).tally.figures()
    assert figures["in_time"] == 1.0
    # Alone on all cores: 10 ms and 50 ms.
    assert figures["p50_ms"] == pytest.approx(60, abs=1)


def test_far_above_capacity_goodput_is_what_the_cores_can_do(measured: Measured) -> None:
    """Four replicas of two cores; a question takes 0.11 core seconds."""
    tally = simulate(Spec(Machine.of(measured, 0), 4), asked(measured, 220.0, 100.0)).tally
    assert tally.figures()["goodput_per_s"] == pytest.approx(8 / 0.11, rel=0.03)
    assert tally.count(Outcome.LATE) <= 0.01 * tally.asked


def test_without_a_retry_a_crash_loses_and_with_one_it_does_not(measured: Measured) -> None:
    questions = asked(measured, 40.0, 600.0)
    # At random: who looks at loads sends more to a replica that fails at once, and so is never busy.
    spec = Spec(Machine.of(measured, 0), 5, Policy.RANDOM, failures=Failures(200.0, retry=False))
    without = simulate(spec, questions)
    crashes = 5 * 600 / 240
    # Each crash costs what is sent there until it is noticed: a fifth of 40 a second for 5 s, and what is under way.
    assert without.tally.count(Outcome.LOST) == pytest.approx(crashes * 40, rel=0.5)
    again = simulate(dataclasses.replace(spec, failures=Failures(200.0)), questions)
    assert again.tally.count(Outcome.LOST) < 0.05 * without.tally.count(Outcome.LOST)
    assert again.tally.retried >= without.tally.count(Outcome.LOST) * 0.8


def test_affinity_remembers_a_picture_once_where_others_do_so_everywhere(measured: Measured) -> None:
    """200 answers are asked for again and again: more than the 100 of one cache, less than the 1,000 of ten."""
    questions = asked(measured, 100.0, popular_share=1.0, pictures=200, exponent=0.0, common=1)
    hits = {
        policy: simulate(Spec(Machine.of(measured, CACHE), 10, policy, warm_s=100.0), questions).tally.figures()[
            "hit_ratio"
        ]
        for policy in (Policy.RANDOM, Policy.AFFINITY)
    }
    # Any half of them is remembered by each.
    assert hits[Policy.RANDOM] == pytest.approx(0.5, abs=0.03)
    assert hits[Policy.AFFINITY] > 0.85


def test_a_rolling_restart_replaces_all_and_forgets_everything(measured: Measured) -> None:
    questions = asked(measured, 60.0, popular_share=1.0, pictures=50, exponent=0.0, common=1)
    spec = Spec(Machine.of(measured, CACHE), 5, Policy.RANDOM, start_s=5.0)
    calm = simulate(spec, questions)
    restarted = simulate(dataclasses.replace(spec, restart_from_s=120.0, restart_every_s=2.0), questions)
    minutes = calm.tally.hits_by_minute, restarted.tally.hits_by_minute
    assert (minutes[0][:2] == minutes[1][:2]).all()
    # Five caches of 50 answers each are filled once more.
    assert minutes[0][2] - minutes[1][2] == pytest.approx(250, abs=60)
    assert restarted.tally.figures()["in_time"] == 1.0
    assert restarted.most_replicas > 5
    assert len(restarted.replicas) == 5


def test_the_autoscaler_follows_the_load_up_and_down(measured: Measured) -> None:
    """Requests are counted, so what it wants can be worked out: 80 a second over 10 a replica."""
    steps = np.concatenate([np.arange(0, 600, 1 / 20), np.arange(600, 1200, 1 / 80), np.arange(1200, 2400, 1 / 20)])
    count = len(steps)
    numbers = np.arange(count)
    ones, never = np.ones(count), np.full(count, np.inf)
    questions = Questions(steps, never, numbers, numbers, numbers, 0 * ones, 0.05 * ones, 0.1 * ones)
    scaling = Scaling({Signal.REQUESTS: 10.0}, least=1, most=50, lag=0, window=1)
    fleet = simulate(Spec(Machine.of(measured, 0), 2, start_s=5.0, scaling=scaling), questions)
    assert fleet.most_replicas == 8
    assert len(fleet.replicas) == 2
    # 2 for 600 s, 8 for 600 s and the window of 300 s, 2 for the other 900 s.
    assert fleet.replica_s == pytest.approx(2 * 600 + 8 * 900 + 2 * 900, rel=0.05)


def test_little_and_the_mean_number_present(measured: Measured) -> None:
    """At 20 a second with 60 ms each: 1.2 on average."""
    questions = asked(measured, 20.0)
    tally = simulate(Spec(Machine.of(measured, 0), 50), questions).tally
    assert tally.present_s / 300 == pytest.approx(20 * 0.06, rel=0.05)
