"""The bootstrap against scipy's, and where its outcome is known exactly."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import bootstrap

from service.evaluation.reporting import bootstrap as module
from service.evaluation.reporting.bootstrap import Bootstrap, Draws

BOOTSTRAP = Bootstrap()
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
    found = BOOTSTRAP.mean(VALUES, np.arange(N))
    low, high = scipys(VALUES, statistic=np.mean)
    width = high - low
    assert found.mean == pytest.approx(VALUES.mean())
    assert [found.low, found.high] == pytest.approx([low, high], abs=0.06 * width)
    assert (found.questions, found.pictures) == (N, N)


def test_as_scipy_over_pictures_and_wider_than_over_questions() -> None:
    found = BOOTSTRAP.mean(VALUES, PICTURES)
    sums, counts = np.bincount(PICTURES, VALUES), np.bincount(PICTURES)
    sums, counts = sums[counts > 0], counts[counts > 0]
    low, high = scipys(sums, counts, statistic=lambda s, n, axis: s.sum(axis) / n.sum(axis))
    assert [found.low, found.high] == pytest.approx([low, high], abs=0.06 * (high - low))
    assert found.pictures == counts.size
    single = BOOTSTRAP.mean(VALUES, np.arange(N))
    assert found.high - found.low > 1.3 * (single.high - single.low)


def test_a_difference_as_scipy_has_it() -> None:
    found = BOOTSTRAP.difference(VALUES, OTHERS, np.arange(N))
    low, high = scipys(VALUES, OTHERS, statistic=lambda a, b, axis: a.mean(axis) - b.mean(axis))
    assert found.difference.mean == pytest.approx(VALUES.mean() - OTHERS.mean())
    assert [found.difference.low, found.difference.high] == pytest.approx([low, high], abs=0.06 * (high - low))
    assert found.wins + found.ties + found.losses == N
    turned = BOOTSTRAP.difference(OTHERS, VALUES, np.arange(N))
    assert (turned.second_better, turned.first_better) == (found.first_better, found.second_better)


def test_groups_have_the_means_of_their_questions() -> None:
    groups = RNG.integers(-1, 3, N)
    for number, found in enumerate(BOOTSTRAP.means(VALUES, PICTURES, groups, 4)):
        mine = groups == number
        assert found.questions == mine.sum()
        assert found.pictures == np.unique(PICTURES[mine]).size
        if number < 3:
            assert found.mean == pytest.approx(VALUES[mine].mean())
            alone = BOOTSTRAP.mean(VALUES[mine], PICTURES[mine])
            assert [found.low, found.high] == pytest.approx(
                [alone.low, alone.high], abs=0.15 * (alone.high - alone.low)
            )
        else:
            assert np.isnan([found.mean, found.low, found.high]).all()


def test_runs_that_are_alike_differ_by_nothing() -> None:
    found = BOOTSTRAP.difference(VALUES, VALUES.copy(), PICTURES)
    assert (found.difference.mean, found.difference.low, found.difference.high) == (0, 0, 0)
    assert (found.first_better, found.second_better) == (0, 0)
    assert (found.wins, found.ties, found.losses) == (0, N, 0)


def test_always_right_against_always_wrong() -> None:
    found = BOOTSTRAP.difference(np.ones(N), np.zeros(N), PICTURES)
    assert (found.difference.mean, found.difference.low, found.difference.high) == (1, 1, 1)
    assert (found.first_better, found.second_better, found.wins) == (1, 0, N)


def test_two_pictures_have_three_outcomes() -> None:
    """Draws of two from a right and a wrong picture: both wrong 1/4, one of each 1/2, both right 1/4."""
    found = BOOTSTRAP.mean(np.array([0.0, 1.0]), np.array([0, 1]))
    assert (found.mean, found.low, found.high) == (0.5, 0, 1)
    pair = BOOTSTRAP.difference(np.array([0.0, 1.0]), np.array([0.0, 0.0]), np.array([0, 1]))
    assert pair.first_better == pytest.approx(0.75, abs=0.02)


@pytest.mark.parametrize(
    ("values", "pictures"), [([0.3, 1.0], [7, 7]), ([1.0, 1.0], [0, 1])], ids=["one picture", "all alike"]
)
def test_no_interval_where_nothing_tells_it(values: list[float], pictures: list[int]) -> None:
    found = BOOTSTRAP.mean(np.array(values), np.array(pictures))
    assert found.mean == pytest.approx(np.mean(values))
    assert np.isnan([found.low, found.high]).all()


def test_a_seed_decides_and_a_number_of_pictures_between_does_not() -> None:
    one = Bootstrap()
    found = one.mean(VALUES, PICTURES)
    one.mean(VALUES[:9], np.arange(9))
    assert one.mean(VALUES, PICTURES) == found
    assert Bootstrap(seed=1).mean(VALUES, PICTURES) != found


def test_many_pictures_are_drawn_less_often_and_alike_whatever_is_held_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [Draws(n).resamples for n in (1, 10_000, 40_000, 10**6)] == [10_000, 10_000, 2_500, 1_000]
    monkeypatch.setattr(module, "MOST_RESAMPLES", 1_000)
    whole = Bootstrap().mean(VALUES, PICTURES)
    monkeypatch.setattr(module, "_CELLS_AT_ONCE", 3_000)
    parts = Bootstrap().mean(VALUES, PICTURES)
    assert [parts.low, parts.high] == pytest.approx([whole.low, whole.high], abs=1e-12)


def test_each_draw_has_as_many_pictures_as_there_are() -> None:
    pictures = np.arange(300)
    assert (Draws(300).sums(np.ones((1, 300)), pictures) == 300).all()
    # Each picture is in a draw once on average, with the binomial's variance.
    first = Draws(300).sums(np.ones((1, 1)), pictures[7:8])[0]
    assert first.mean() == pytest.approx(1, abs=0.04)
    assert first.var() == pytest.approx(1 - 1 / 300, abs=0.06)
