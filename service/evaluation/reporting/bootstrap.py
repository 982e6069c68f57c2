"""How sure a mean accuracy, or a difference of two, is: the bootstrap by picture.

Questions about one picture are not independent: whoever fails to see the dog fails all questions about it. So pictures
are drawn with replacement, each with all its questions (the cluster bootstrap; Efron & Tibshirani 1993, chapters 8 and
13), and the interval is that of the percentiles. Two runs are compared on the same draws (paired; Koehn 2004). Where
each picture has one question this is the ordinary bootstrap.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

RESAMPLES: Final = 10_000
SEED: Final = 20_040_725
LEVEL: Final = 0.95
_CELLS: Final = 4_000_000  # so many numbers of a draw are held at a time: some 64 MB

Floats = NDArray[np.float64]
Indexes = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean with its 95 % percentile interval.

    The ends are NaN where the questions say nothing of it: there are fewer than two pictures, or (for the mean of one
    run) all values are alike, so that every draw has the same mean.
    """

    mean: float
    low: float
    high: float
    questions: int
    pictures: int


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """The first run's mean accuracy minus the second's, over the same questions.

    Attributes:
        first, second: the two means.
        difference: of the means, with its interval.
        first_better, second_better: the share of the draws in which it is; what is missing to 1 are draws of equals.
        wins, ties, losses: questions where the first run has the higher, the same, or the lower accuracy.
    """

    first: float
    second: float
    difference: Interval
    first_better: float
    second_better: float
    wins: int
    ties: int
    losses: int


def mean_interval(values: Floats, pictures: Indexes, *, resamples: int = RESAMPLES, seed: int = SEED) -> Interval:
    """The mean of `values` (n,) with its interval; `pictures` (n,) says which picture each question is about."""
    return mean_intervals(values, pictures, np.zeros(values.size, dtype=np.int64), 1, resamples=resamples, seed=seed)[0]


def mean_intervals(
    values: Floats, pictures: Indexes, groups: Indexes, count: int, *, resamples: int = RESAMPLES, seed: int = SEED
) -> list[Interval]:
    """The mean of each of `count` groups of questions with its interval, all from the same draws of pictures.

    Args:
        values: (n,), an accuracy a question.
        pictures: (n,), the picture's number, from 0.
        groups: (n,), the question's group, below `count`; -1 for a question in none.
        count: how many groups there are.
        resamples, seed: how many draws, and where they start.
    """
    kept = groups >= 0
    values, pictures, groups = values[kept], pictures[kept], groups[kept]
    size = int(pictures.max()) + 1 if pictures.size else 0
    totals = np.zeros((2, size, count))
    np.add.at(totals[0], (pictures, groups), values)
    np.add.at(totals[1], (pictures, groups), 1.0)
    present = totals[1].any(axis=1)
    drawn = _resampled(np.concatenate(totals, axis=1)[present], resamples, seed)
    with np.errstate(invalid="ignore", divide="ignore"):
        observed = totals[0].sum(axis=0) / totals[1].sum(axis=0)
        means = drawn[:, :count] / drawn[:, count:]
    found = []
    for group in range(count):
        members = values[groups == group]
        told = members.size > 0 and members.min() < members.max()
        of_group = means[:, group] if told else means[:0, group]
        sizes = totals[1, :, group]
        found.append(_interval(observed[group], of_group, int(sizes.sum()), int(np.count_nonzero(sizes))))
    return found


def paired_difference(
    first: Floats, second: Floats, pictures: Indexes, *, resamples: int = RESAMPLES, seed: int = SEED
) -> PairedDifference:
    """Compare two runs on the questions that both answered.

    Args:
        first, second: (n,), the two accuracies of each question; n at least 1.
        pictures: (n,), the picture's number, from 0.
        resamples, seed: how many draws, and where they start.
    """
    # Differences are summed a picture at a time, so that runs that are alike differ by 0 exactly, not by rounding.
    totals = np.stack([np.bincount(pictures, weights=first - second), np.bincount(pictures) * 1.0], axis=1)
    totals = totals[totals[:, 1] > 0]
    drawn = _resampled(totals, resamples, seed)
    differences = drawn[:, 0] / drawn[:, 1]
    return PairedDifference(
        first=float(first.mean()),
        second=float(second.mean()),
        difference=_interval(float((first - second).mean()), differences, first.size, len(totals)),
        first_better=float((differences > 0).mean()),
        second_better=float((differences < 0).mean()),
        wins=int((first > second).sum()),
        ties=int((first == second).sum()),
        losses=int((first < second).sum()),
    )


def _interval(mean: float, means: Floats, questions: int, pictures: int) -> Interval:
    low = high = float("nan")
    means = means[np.isfinite(means)]  # a draw without a single question of a small group says nothing of it
    if pictures > 1 and means.size:
        tail = (1 - LEVEL) / 2
        low, high = (float(end) for end in np.quantile(means, [tail, 1 - tail]))
    return Interval(float(mean), low, high, questions, pictures)


def _resampled(totals: Floats, resamples: int, seed: int) -> Floats:
    """The column sums of `totals` (pictures, k) over each draw of as many rows with replacement: (resamples, k)."""
    size = len(totals)
    if not size:
        return np.full((resamples, totals.shape[1]), np.nan)
    rng = np.random.default_rng(seed)
    sums = np.empty((resamples, totals.shape[1]))
    step = max(_CELLS // size, 1)
    for start in range(0, resamples, step):
        rows = min(step, resamples - start)
        drawn = rng.integers(size, size=(rows, size))
        drawn += np.arange(rows)[:, None] * size
        times = np.bincount(drawn.ravel(), minlength=rows * size).reshape(rows, size)
        sums[start : start + rows] = times @ totals
    return sums
