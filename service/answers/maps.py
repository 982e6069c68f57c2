"""Maps from a model's probability to a calibrated one: monotone, [0, 1] to [0, 1]."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Protocol

import numpy as np

EDGE: Final = 1e-6
"""Probabilities are kept this far from 0 and 1 before a logarithm is taken."""


class CalibrationError(ValueError):
    """A calibration that cannot be used; the message names the key at fault."""


class CalibrationMap(Protocol):
    """Takes a probability to a calibrated probability."""

    def __call__(self, p: float) -> float:
        """The calibrated probability of `p`."""


def logit(p: float) -> float:
    """ln(p / (1 - p)), with p kept within [1e-6, 1 - 1e-6]."""
    p = min(max(p, EDGE), 1.0 - EDGE)
    return math.log(p) - math.log1p(-p)


def logistic(x: float) -> float:
    """1 / (1 + exp(-x)) without overflow."""
    small = math.exp(-abs(x))
    return (1.0 if x >= 0 else small) / (1.0 + small)


@dataclass(frozen=True)
class IsotonicMap:
    """Isotonic regression (Zadrozny and Elkan 2002): straight lines between knots, constant outside them."""

    x: tuple[float, ...]
    y: tuple[float, ...]

    def __call__(self, p: float) -> float:
        return float(np.interp(p, self.x, self.y))


@dataclass(frozen=True)
class BetaMap:
    """Beta calibration (Kull, Silva Filho and Flach 2017): logistic(a ln p - b ln(1 - p) + c)."""

    a: float
    b: float
    c: float

    def __call__(self, p: float) -> float:
        p = min(max(p, EDGE), 1.0 - EDGE)
        return logistic(self.a * math.log(p) - self.b * math.log1p(-p) + self.c)


@dataclass(frozen=True)
class LogisticMap:
    """Platt scaling (Platt 1999) on the logit: logistic(a logit(p) + b)."""

    a: float
    b: float

    def __call__(self, p: float) -> float:
        return logistic(self.a * logit(p) + self.b)


def read_map(value: object, at: str) -> CalibrationMap:
    """A map from its JSON form: `{"kind": "isotonic", "x": [...], "y": [...]}`, `{"kind": "beta", "a", "b",
    "c"}` or `{"kind": "logistic", "a", "b"}`.

    Args:
        value: the parsed JSON.
        at: the key it stands under, for messages.

    Raises:
        CalibrationError: it is no such map, or one that is not monotone.
    """
    body = read_object(value, at)
    kind = body.get("kind")
    if kind == "isotonic":
        check_keys(body, {"kind", "x", "y"}, at)
        x, y = (read_numbers(body.get(key), f"{at}.{key}") for key in "xy")
        if len(x) != len(y):
            raise CalibrationError(f"{at}.x and {at}.y must be equally long")
        if any(b <= a for a, b in pairwise(x)):
            raise CalibrationError(f"{at}.x must be strictly ascending")
        if any(b < a for a, b in pairwise(y)) or y[0] < 0 or y[-1] > 1:
            raise CalibrationError(f"{at}.y must be ascending and within 0 and 1")
        return IsotonicMap(x, y)
    if kind == "beta":
        check_keys(body, {"kind", "a", "b", "c"}, at)
        a, b, c = (read_number(body.get(key), f"{at}.{key}") for key in "abc")
        _check_slopes(at, a=a, b=b)
        return BetaMap(a, b, c)
    if kind == "logistic":
        check_keys(body, {"kind", "a", "b"}, at)
        a, b = (read_number(body.get(key), f"{at}.{key}") for key in "ab")
        _check_slopes(at, a=a)
        return LogisticMap(a, b)
    raise CalibrationError(f"{at}.kind must be isotonic, beta or logistic")


def read_object(value: object, at: str) -> Mapping[str, object]:
    """The value as a JSON object, or a CalibrationError that names the key."""
    if not isinstance(value, Mapping):
        raise CalibrationError(f"{at} must be an object")
    return value


def check_keys(body: Mapping[str, object], known: set[str], at: str) -> None:
    """Refuses keys that are not known, so that a misspelt one is not taken for "not fitted"."""
    if unknown := sorted(set(body) - known):
        raise CalibrationError(f"{at}.{unknown[0]} is not a known key; known are {', '.join(sorted(known))}")


def read_number(value: object, at: str) -> float:
    """The value as a finite float, or a CalibrationError that names the key."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise CalibrationError(f"{at} must be a finite number")
    return float(value)


def read_numbers(value: object, at: str) -> tuple[float, ...]:
    """The value as at least one finite float, or a CalibrationError that names the key."""
    if not isinstance(value, list | tuple) or not value:
        raise CalibrationError(f"{at} must be a list of numbers, and not empty")
    return tuple(read_number(number, f"{at}[{i}]") for i, number in enumerate(value))


def _check_slopes(at: str, **slopes: float) -> None:
    for key, slope in slopes.items():
        if slope < 0:
            raise CalibrationError(f"{at}.{key} must not be negative; the map would not be monotone")
