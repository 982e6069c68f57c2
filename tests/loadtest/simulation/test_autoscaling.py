"""The autoscaler, against decisions worked out from Kubernetes' documentation."""

from __future__ import annotations

from loadtest.simulation.autoscaling import Autoscaler, Scaling, Signal

CPU, REQUESTS = Signal.CPU, Signal.REQUESTS


def scaler(**targets: float) -> Autoscaler:
    return Autoscaler(Scaling({Signal[name]: target for name, target in targets.items()}, least=1, most=50))


def test_the_documented_ratio() -> None:
    """200m over a target of 100m doubles, 50m halves (the documentation's example)."""
    assert scaler(REQUESTS=100.0).decide(0.0, {REQUESTS: [200.0, 200.0]}, 2) == 4
    assert scaler(REQUESTS=100.0).decide(0.0, {REQUESTS: [50.0] * 4}, 4) == 2


def test_within_the_tolerance_nothing_happens() -> None:
    assert scaler(CPU=0.5).decide(0.0, {CPU: [0.54] * 10}, 10) == 10
    assert scaler(CPU=0.5).decide(0.0, {CPU: [0.56] * 10}, 10) == 12  # ceil(11.2)


def test_up_goes_to_the_double_or_by_four_at_most() -> None:
    assert scaler(REQUESTS=1.0).decide(0.0, {REQUESTS: [30.0]}, 1) == 5
    assert scaler(REQUESTS=1.0).decide(0.0, {REQUESTS: [30.0] * 10}, 10) == 20


def test_down_waits_for_the_stabilisation_window() -> None:
    mine = scaler(CPU=0.5)
    assert mine.decide(0.0, {CPU: [0.5] * 10}, 10) == 10
    assert mine.decide(150.0, {CPU: [0.2] * 10}, 10) == 10
    assert mine.decide(300.0, {CPU: [0.3] * 10}, 10) == 10
    # What was wanted at 0 s is forgotten; of 4 and 6, the larger.
    assert mine.decide(315.0, {CPU: [0.2] * 10}, 10) == 6


def test_replicas_without_a_metric_count_as_idle_on_the_way_up_and_as_on_target_on_the_way_down() -> None:
    # Five at 0.9 of a target of 0.5, five that start: 4.5 / 10 / 0.5 is 0.9, the other direction: nothing.
    assert scaler(CPU=0.5).decide(0.0, {CPU: [0.9] * 5}, 10) == 10
    # Seven at 1.0, one that starts: 7 / 8 / 0.5 is 1.75.
    assert scaler(CPU=0.5).decide(0.0, {CPU: [1.0] * 7}, 8) == 14
    # Five at 0.2, five that start: (1.0 + 2.5) / 10 / 0.5 is 0.7.
    assert scaler(CPU=0.5).decide(0.0, {CPU: [0.2] * 5}, 10) == 7


def test_of_two_metrics_the_one_that_wants_more_decides() -> None:
    assert scaler(CPU=0.5, REQUESTS=10.0).decide(0.0, {CPU: [0.5] * 4, REQUESTS: [15.0] * 4}, 4) == 6
    assert scaler(CPU=0.5, REQUESTS=10.0).decide(0.0, {CPU: [1.0] * 4, REQUESTS: [5.0] * 4}, 4) == 8


def test_never_below_the_least_nor_above_the_most() -> None:
    assert scaler(CPU=0.5).decide(0.0, {CPU: [0.0] * 3}, 3) == 1
    assert scaler(REQUESTS=1.0).decide(0.0, {REQUESTS: [9.0] * 40}, 40) == 50
    assert scaler(REQUESTS=1.0).decide(0.0, {REQUESTS: []}, 7) == 7
