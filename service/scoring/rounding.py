"""Adding up, averaging and rounding as the original programs do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from decimal import ROUND_HALF_UP, Decimal
from functools import reduce
from operator import add
from typing import Final

_HUNDREDTH: Final = Decimal("0.01")
Percent = Callable[[Sequence[float]], float]
"""The mean of fractions in percent, as one program rounds it."""


def total(values: Iterable[float]) -> float:
    """The sum from left to right, as `sum` gave it before Python 3.12 began to compensate for lost digits."""
    return reduce(add, values, 0.0)


def mean(values: Sequence[float]) -> float:
    """The mean of the values, added from left to right; 0 where there are none."""
    return total(values) / len(values) if values else 0.0


def round_half_away(value: float) -> float:
    """Two places as Python 2.7 rounds: a value exactly halfway goes away from zero (3.125 to 3.13; Python 3: 3.12).

    The official VQA code runs under Python 2.7; evaluators of today use Python 3's `round`.
    """
    return float(Decimal(value).quantize(_HUNDREDTH, ROUND_HALF_UP))


def percent_half_away(fractions: Sequence[float]) -> float:
    """The mean in percent with two places, by Python 2.7's rule (the official VQA code)."""
    return round_half_away(100 * total(fractions) / len(fractions))


def percent_rounded(fractions: Sequence[float]) -> float:
    """The mean in percent with two places, by Python 3's rule."""
    return round(100 * total(fractions) / len(fractions), 2)


def percent_exact(fractions: Sequence[float]) -> float:
    """The mean in percent as it is, for programs that do not round."""
    return 100 * total(fractions) / len(fractions)


def per_type(fractions: Sequence[float], kinds: Sequence[str], percent: Percent) -> dict[str, float]:
    """The percentage of each type, types in alphabetical order.

    Args:
        fractions: (n,) scores, 0 to 1.
        kinds: (n,) the questions' types; empty where there are none, and "" for a question without one.
        percent: the program's rounding.
    """
    groups: dict[str, list[float]] = {}
    if kinds:
        for kind, fraction in zip(kinds, fractions, strict=True):
            groups.setdefault(kind, []).append(fraction)
    return {kind: percent(groups[kind]) for kind in sorted(groups) if kind}
