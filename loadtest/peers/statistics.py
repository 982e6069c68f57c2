"""Medians over rounds, and how sure they are.

Rounds are few, and nothing is known of how their figures are distributed; so the interval of a median is that of the
order statistics, which is exact for every distribution (David and Nagaraja, Order Statistics, 2003, section 7.1): the
median of n values lies between the k-th least and the k-th largest with probability 1 - 2 P(Bin(n, 1/2) < k).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

LEVEL = 0.95


@dataclass(frozen=True)
class Spread:
    """A median over rounds with its interval.

    Attributes:
        median: of the values; NaN of none.
        low, high: the interval.
        level: with which probability it holds the true median; below 0.95 where the rounds are fewer than six.
        rounds: how many values.
    """

    median: float
    low: float
    high: float
    level: float
    rounds: int


def spread(values: Sequence[float]) -> Spread:
    """The median and the narrowest interval that holds it with at least 95 %, or the widest there is."""
    n = len(values)
    if not n:
        return Spread(math.nan, math.nan, math.nan, 0.0, 0)
    ordered = sorted(values)
    tails = [sum(math.comb(n, j) for j in range(k)) / 2**n for k in range(1, n // 2 + 2)]
    k = max([k for k, tail in enumerate(tails, 1) if 1 - 2 * tail >= LEVEL], default=1)
    return Spread(median(ordered), ordered[k - 1], ordered[n - k], 1 - 2 * tails[k - 1], n)
