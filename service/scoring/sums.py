"""Sums as the original programs form them.

From Python 3.12 on, `sum` compensates the rounding of floats; the published programs ran on Pythons that add from left
to right. The last digit of a score must not depend on the Python it is computed with.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def left_to_right(values: Iterable[float]) -> float:
    """The sum of the values, added one after the other."""
    total = 0.0
    for value in values:
        total += value
    return total


def mean(values: Sequence[float]) -> float:
    """The mean of the values, added one after the other; 0 where there are none."""
    return left_to_right(values) / len(values) if values else 0.0
