"""Rounding and adding up as the original programs do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import ROUND_HALF_UP, Decimal
from functools import reduce
from operator import add
from typing import Final

_HUNDREDTH: Final = Decimal("0.01")


def round_half_away(value: float) -> float:
    """Two places as Python 2.7 rounds: a value exactly halfway goes away from zero (3.125 to 3.13; Python 3: 3.12).

    The official VQA code runs under Python 2.7; evaluators of today use Python 3's `round`.
    """
    return float(Decimal(value).quantize(_HUNDREDTH, ROUND_HALF_UP))


def total(values: Iterable[float]) -> float:
    """The sum from left to right, as `sum` gave it before Python 3.12 began to compensate for lost digits."""
    return reduce(add, values, 0.0)


def mean(values: Sequence[float]) -> float:
    """The mean of the values, added from left to right; 0 where there are none."""
    return total(values) / len(values) if values else 0.0
