"""How sure a mean accuracy, or a difference of two, is: the bootstrap by picture.

Questions about one picture are not independent: whoever fails to see the dog fails all questions about it. So pictures
are drawn with replacement, each with all its questions (the cluster bootstrap; Efron & Tibshirani 1993, chapters 8 and
13), and the interval is that of the percentiles. Two runs are compared on the same draws (paired; Koehn 2004). Where
each picture has one question this is the ordinary bootstrap.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

MOST_RESAMPLES: Final = 10_000
LEAST_RESAMPLES: Final = 1_000
SEED: Final = 20_040_725
LEVEL: Final = 0.95
_CELLS: Final = 100_000_000  # pictures times draws that are held, a byte each
_CELLS_AT_ONCE: Final = 2_000_000  # so many of them as floating-point numbers

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


class Draws:
    """Draws of as many pictures as there are, with replacement; made when first needed, and kept for all that follows.

    There are 10,000 draws of up to 10,000 pictures. Of more pictures there are fewer, down to 1,000, so that they fit
    into 100 MB up to 100,000 pictures; the standard error of an interval's end then grows from 1.4 % to
    4.3 % of the interval's half (for means that are spread normally).

    Args:
        pictures: how many there are.
        seed: where the draws start.
    """

    def __init__(self, pictures: int, seed: int = SEED) -> None:
        self.pictures = pictures
        self.resamples = min(max(_CELLS // max(pictures, 1), LEAST_RESAMPLES), MOST_RESAMPLES)
        self._seed = seed

    @cached_property
    def _times(self) -> NDArray[np.uint8]:
        """How often each picture is in each draw, (pictures, resamples)."""
        # No picture is ever in a draw more than 255 times: beyond 255 pictures that has a probability below 1e-500.
        times = np.empty((self.pictures, self.resamples), dtype=np.uint8)
        rng = np.random.default_rng(self._seed)
        step = max(_CELLS_AT_ONCE // self.pictures, 1)
        for start in range(0, self.resamples, step):
            rows = min(step, self.resamples - start)
            drawn = rng.integers(self.pictures, size=(rows, self.pictures))
            drawn += np.arange(rows)[:, None] * self.pictures
            counted = np.bincount(drawn.ravel(), minlength=drawn.size)
            times[:, start : start + rows] = counted.reshape(drawn.shape).T
        return times

    def sums(self, totals: Floats, pictures: Indexes) -> Floats:
        """The sum of what some pictures have, over each draw.

        Args:
            totals: (k, m), k values of each of m pictures.
            pictures: (m,), which pictures those are, none twice.

        Returns:
            (k, resamples).
        """
        summed = np.zeros((len(totals), self.resamples))
        step = max(_CELLS_AT_ONCE // self.resamples, 1)
        for start in range(0, pictures.size, step):
            part = slice(start, start + step)
            summed += totals[:, part] @ self._times[pictures[part]].astype(np.float64)
        return summed


class Bootstrap:
    """Intervals from the same draws, as long as they are about as many pictures."""

    def __init__(self, seed: int = SEED) -> None:
        self._seed = seed
        self._draws = Draws(0, seed)

    def draws(self, pictures: int) -> Draws:
        """The draws of so many pictures; only those of the last number asked for are kept."""
        if self._draws.pictures != pictures:
            self._draws = Draws(pictures, self._seed)
        return self._draws

    def mean(self, values: Floats, pictures: Indexes) -> Interval:
        """The mean of `values` (n,) with its interval; `pictures` (n,) says which picture each question is about."""
        return self.means(values, pictures, np.zeros(values.size, dtype=np.int64), 1)[0]

    def means(self, values: Floats, pictures: Indexes, groups: Indexes, count: int) -> list[Interval]:
        """The mean of each of `count` groups of questions with its interval.

        Args:
            values: (n,), an accuracy a question.
            pictures: (n,), the picture's number, 0 or more; all of these pictures are drawn from.
            groups: (n,), the question's group, below `count`; -1 for a question in none.
            count: how many groups there are.
        """
        numbers, pictures = np.unique(pictures, return_inverse=True)
        draws = self.draws(numbers.size)
        order = np.argsort(groups, kind="stable")
        ends = np.searchsorted(groups[order], np.arange(count + 1))
        return [
            _mean(draws, values[members], pictures[members])
            for members in (order[start:end] for start, end in pairwise(ends))
        ]

    def difference(self, first: Floats, second: Floats, pictures: Indexes) -> PairedDifference:
        """Compare two runs on the questions that both were asked.

        Args:
            first, second: (n,), the two accuracies of each question; n at least 1.
            pictures: (n,), the picture's number, 0 or more.
        """
        numbers, pictures = np.unique(pictures, return_inverse=True)
        # Summed a picture at a time, so that runs that are alike differ by 0 exactly, not by rounding.
        totals = np.stack([np.bincount(pictures, weights=first - second), np.bincount(pictures) * 1.0])
        sums, sizes = self.draws(numbers.size).sums(totals, np.arange(numbers.size))
        differences = sums / sizes
        return PairedDifference(
            first=float(first.mean()),
            second=float(second.mean()),
            difference=_interval(float((first - second).mean()), differences, first.size, numbers.size),
            first_better=float((differences > 0).mean()),
            second_better=float((differences < 0).mean()),
            wins=int((first > second).sum()),
            ties=int((first == second).sum()),
            losses=int((first < second).sum()),
        )


def _mean(draws: Draws, values: Floats, pictures: Indexes) -> Interval:
    """The mean of `values` (n,), of which none may be there, about `pictures` (n,) of those drawn from."""
    mine, place = np.unique(pictures, return_inverse=True)
    mean = float(values.mean()) if values.size else float("nan")
    if mine.size < 2 or values.min() == values.max():
        return Interval(mean, float("nan"), float("nan"), values.size, mine.size)
    totals = np.stack([np.bincount(place, weights=values), np.bincount(place) * 1.0])
    sums, sizes = draws.sums(totals, mine)
    drawn = sizes > 0  # a draw without a single question of a small group says nothing of it
    return _interval(mean, sums[drawn] / sizes[drawn], values.size, mine.size)


def _interval(mean: float, means: Floats, questions: int, pictures: int) -> Interval:
    """The percentile interval from the `means` of the draws; without ends where there is but one picture."""
    low = high = float("nan")
    if pictures > 1:
        tail = (1 - LEVEL) / 2
        low, high = (float(end) for end in np.quantile(means, [tail, 1 - tail]))
    return Interval(mean, low, high, questions, pictures)
