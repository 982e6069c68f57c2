"""The bootstrap against scipy's, and where its outcome is known exactly."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import bootstrap

from service.evaluation.reporting import bootstrap as module
from service.evaluation.reporting.bootstrap import mean_interval, mean_intervals, paired_difference

RNG = np.random.default_rng(11)
N = 400
PICTURES = np.sort(RNG.integers(0, 120, N))
# Questions about one picture are alike: a hard picture is hard for all of them.
VALUES = np.clip(RNG.beta(2, 1, 120)[PICTURES] + RNG.normal(0, 0.1, N), 0, 1)
OTHERS = np.clip(VALUES - RNG.normal(0.02, 0.2, N), 0, 1)


def scipys(*data: np.ndarray, statistic) -> np.ndarray:
    found = bootstrap(
        data, statistic, paired=len(data) > 1, method="percentile", n_resamples=10_000, rng=np.random.default_rng(5)
    )
    return np.array(found.confidence_interval)


def test_as_scipy_where_each_picture_has_one_question() -> None:
    found = mean_interval(VALUES, np.arange(N))
    low, high = scipys(VALUES, statistic=np.mean)
    width = high - low
    assert found.mean == pytest.approx(VALUES.mean())
    assert [found.low, found.high] == pytest.approx([low, high], abs=0.06 * width)
    assert (found.questions, found.pictures) == (N, N)


def test_as_scipy_over_pictures_and_wider_than_over_questions() -> None:
    found = mean_interval(VALUES, PICTURES)
    sums, counts = np.bincount(PICTURES, VALUES), np.bincount(PICTURES)
    sums, counts = sums[counts > 0], counts[counts > 0]
    low, high = scipys(sums, counts, statistic=lambda s, n, axis: s.sum(axis) / n.sum(axis))
    assert [found.low, found.high] == pytest.approx([low, high], abs=0.06 * (high - low))
    assert found.pictures == counts.size
    single = mean_interval(VALUES, np.arange(N))
    assert found.high - found.low > 1.3 * (single.high - single.low)


def test_a_difference_as_scipy_has_it() -> None:
    found = paired_difference(VALUES, OTHERS, np.arange(N))
    low, high = scipys(VALUES, OTHERS, statistic=lambda a, b, axis: a.mean(axis) - b.mean(axis))
    assert found.difference.mean == pytest.approx(VALUES.mean() - OTHERS.mean())
    assert [found.difference.low, found.difference.high] == pytest.approx([low, high], abs=0.06 * (high - low))
    assert found.wins + found.ties + found.losses == N
    turned = paired_difference(OTHERS, VALUES, np.arange(N))
    assert (turned.second_better, turned.first_better) == (found.first_better, found.second_better)


def test_groups_have_the_means_of_their_questions() -> None:
    groups = RNG.integers(-1, 3, N)
    for number, found in enumerate(mean_intervals(VALUES, PICTURES, groups, 4)):
        mine = groups == number
        assert found.questions == mine.sum()
        assert found.pictures == np.unique(PICTURES[mine]).size
        if number < 3:
            assert found.mean == pytest.approx(VALUES[mine].mean())
            alone = mean_interval(VALUES[mine], PICTURES[mine])
            assert [found.low, found.high] == pytest.approx(
                [alone.low, alone.high], abs=0.15 * (alone.high - alone.low)
            )
        else:
            assert np.isnan([found.mean, found.low, found.high]).all()


def test_runs_that_are_alike_differ_by_nothing() -> None:
    found = paired_difference(VALUES, VALUES.copy(), PICTURES)
    assert (found.difference.mean, found.difference.low, found.difference.high) == (0, 0, 0)
    assert (found.first_better, found.second_better) == (0, 0)
    assert (found.wins, found.ties, found.losses) == (0, N, 0)


def test_always_right_against_always_wrong() -> None:
    found = paired_difference(np.ones(N), np.zeros(N), PICTURES)
    assert (found.difference.mean, found.difference.low, found.difference.high) == (1, 1, 1)
    assert (found.first_better, found.second_better, found.wins) == (1, 0, N)


def test_two_pictures_have_three_outcomes() -> None:
    """Draws of two from a right and a wrong picture: both wrong 1/4, one of each 1/2, both right 1/4."""
    found = mean_interval(np.array([0.0, 1.0]), np.array([0, 1]))
    assert (found.mean, found.low, found.high) == (0.5, 0, 1)
    pair = paired_difference(np.array([0.0, 1.0]), np.array([0.0, 0.0]), np.array([0, 1]))
    assert pair.first_better == pytest.approx(0.75, abs=0.02)


@pytest.mark.parametrize(
    ("values", "pictures"), [([0.3, 1.0], [7, 7]), ([1.0, 1.0], [0, 1])], ids=["one picture", "all alike"]
)
def test_no_interval_where_nothing_tells_it(values: list[float], pictures: list[int]) -> None:
    found = mean_interval(np.array(values), np.array(pictures))
    assert found.mean == pytest.approx(np.mean(values))
    assert np.isnan([found.low, found.high]).all()


def test_the_same_however_little_memory_a_draw_may_take(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = mean_interval(VALUES, PICTURES, resamples=500)
    assert whole == mean_interval(VALUES, PICTURES, resamples=500)
    monkeypatch.setattr(module, "_CELLS", 1_000)
    assert mean_interval(VALUES, PICTURES, resamples=500) == whole
    assert mean_interval(VALUES, PICTURES, resamples=500, seed=1) != whole
