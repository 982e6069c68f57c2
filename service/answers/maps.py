"""Maps to a calibrated probability, from the model's own, which they follow monotonely, or from several features."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal, Protocol

import numpy as np

from service.answers.evidence import FEATURES, Evidence
from service.answers.scores import logistic
from service.images.statistics import STATISTICS

Mass = Literal["top", "answerable"]
_LARGEST_WEIGHT: Final = 1e6  # no sum of these overflows
LINEAR_KEYS: Final = ("features", "weights", "bias", "ranges")
"""What a linear map consists of."""
_KNOWN_FEATURES: Final = (*FEATURES, *STATISTICS)

EDGE: Final = 1e-6
"""Probabilities are kept this far from 0 and 1 before a logarithm is taken."""


class CalibrationError(ValueError):
    """A calibration that cannot be used; the message names the key at fault."""


class CalibrationMap(Protocol):
    """Gives a calibrated probability."""

    def of(self, evidence: Evidence) -> float:
        """The calibrated probability, in [0, 1]: of what the map was fitted to."""


class _OfTopMass(ABC):
    """Looks at the top mass alone."""

    @abstractmethod
    def __call__(self, p: float) -> float:
        """The calibrated probability of `p`, in [0, 1]."""

    def of(self, evidence: Evidence) -> float:
        """As `CalibrationMap.of`."""
        return self(evidence.top)


def logit(p: float) -> float:
    """ln(p / (1 - p)), with p kept within [1e-6, 1 - 1e-6]."""
    p = min(max(p, EDGE), 1.0 - EDGE)
    return math.log(p) - math.log1p(-p)


@dataclass(frozen=True)
class IsotonicMap:
    """Isotonic regression (Zadrozny and Elkan 2002): straight lines between knots, constant outside them."""

    x: tuple[float, ...]
    y: tuple[float, ...]
    mass: Mass = "top"
    """What it is a map of: the top mass, or all mass that is not "unanswerable"."""

    def __call__(self, p: float) -> float:
        """The calibrated probability of `p`, in [0, 1]."""
        return float(np.interp(p, self.x, self.y))

    def of(self, evidence: Evidence) -> float:
        """As `CalibrationMap.of`."""
        return self(evidence.top if self.mass == "top" else evidence.answerable)


@dataclass(frozen=True)
class BetaMap(_OfTopMass):
    """Beta calibration (Kull, Silva Filho and Flach 2017): logistic(a ln p - b ln(1 - p) + c)."""

    a: float
    b: float
    c: float

    def __call__(self, p: float) -> float:
        p = min(max(p, EDGE), 1.0 - EDGE)
        return logistic(self.a * math.log(p) - self.b * math.log1p(-p) + self.c)


@dataclass(frozen=True)
class LogisticMap(_OfTopMass):
    """Platt scaling (Platt 1999) on the logit: logistic(a logit(p) + b)."""

    a: float
    b: float

    def __call__(self, p: float) -> float:
        return logistic(self.a * logit(p) + self.b)


@dataclass(frozen=True)
class TemperatureMap:
    """Temperature scaling (Guo et al. 2017): the top mass with all logits divided by `t`."""

    t: float

    def of(self, evidence: Evidence) -> float:
        """As `CalibrationMap.of`."""
        return min(max(evidence.at_temperature(self.t), 0.0), 1.0)


@dataclass(frozen=True)
class LinearMap:
    """Logistic regression: logistic(weights . features + bias) over features by name (`Evidence.feature`)."""

    features: tuple[str, ...]
    weights: tuple[float, ...]
    bias: float
    ranges: tuple[tuple[float, float], ...] | None = None
    """The least and largest value of each feature that was fitted on; what lies beyond counts as that."""

    def of(self, evidence: Evidence) -> float:
        """As `CalibrationMap.of`."""
        values = [evidence.feature(name) for name in self.features]
        if self.ranges is not None:
            values = [min(max(v, low), high) for v, (low, high) in zip(values, self.ranges, strict=True)]
        return logistic(sum(weight * value for weight, value in zip(self.weights, values, strict=True)) + self.bias)


@dataclass(frozen=True)
class EdgedMap:
    """Another map kept within [edge, 1 - edge]: nearer to certainty than its questions can prove nothing is."""

    inner: CalibrationMap
    edge: float

    def of(self, evidence: Evidence) -> float:
        """As `CalibrationMap.of`."""
        return min(max(self.inner.of(evidence), self.edge), 1.0 - self.edge)


def read_map(value: object, at: str, mass: Mass = "top") -> CalibrationMap:
    """A map from its JSON form.

    `{"kind": "isotonic", "x": [...], "y": [...]}`, `{"kind": "beta", "a", "b", "c"}`, `{"kind": "logistic", "a", "b"}`,
    `{"kind": "temperature", "t"}` or `{"kind": "linear", "features": [...], "weights": [...], "bias", "ranges"}`; the
    ranges may be left out. Any may have an `edge`, at most 0.5 (`EdgedMap`), an isotonic one a `mass`, "top" by
    default.

    Args:
        value: the parsed JSON.
        at: the key it stands under, for messages.
        mass: what an isotonic map has to be a map of.

    Raises:
        CalibrationError: it is no such map, one of another mass, or one of the top mass that falls.
    """
    body = dict(read_object(value, at))
    if "edge" in body:
        edge = read_number(body.pop("edge"), f"{at}.edge")
        if not 0 <= edge <= 0.5:
            raise CalibrationError(f"{at}.edge must be within 0 and 0.5")
        return EdgedMap(read_map(body, at, mass), edge)
    kind = body.get("kind")
    if kind == "isotonic":
        check_keys(body, {"kind", "x", "y", "mass"}, at)
        if body.get("mass", "top") != mass:
            raise CalibrationError(f"{at}.mass must be {mass}")
        x, y = (read_numbers(body.get(key), f"{at}.{key}") for key in "xy")
        if len(x) != len(y):
            raise CalibrationError(f"{at}.x and {at}.y must be equally long")
        if any(b <= a for a, b in pairwise(x)):
            raise CalibrationError(f"{at}.x must be strictly ascending")
        if any(b < a for a, b in pairwise(y)) or y[0] < 0 or y[-1] > 1:
            raise CalibrationError(f"{at}.y must be ascending and within 0 and 1")
        return IsotonicMap(x, y, mass)
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
    if kind == "temperature":
        check_keys(body, {"kind", "t"}, at)
        t = read_number(body.get("t"), f"{at}.t")
        if t <= 0:
            raise CalibrationError(f"{at}.t must be positive")
        return TemperatureMap(t)
    if kind == "linear":
        check_keys(body, {"kind", *LINEAR_KEYS}, at)
        return read_linear(body, at)
    raise CalibrationError(f"{at}.kind must be isotonic, beta, logistic, temperature or linear")


def read_linear(body: Mapping[str, object], at: str) -> LinearMap:
    """The features, weights and bias of a JSON object.

    Raises:
        CalibrationError: a feature is not known or there twice, or weights are not as many.
    """
    features = body.get("features")
    if not isinstance(features, list | tuple) or not features:
        raise CalibrationError(f"{at}.features must be a list, and not empty")
    for i, feature in enumerate(features):
        if feature not in _KNOWN_FEATURES or feature in features[:i]:
            raise CalibrationError(f"{at}.features[{i}] must be one of {', '.join(_KNOWN_FEATURES)}, each once")
    weights = read_numbers(body.get("weights"), f"{at}.weights")
    if any(abs(weight) > _LARGEST_WEIGHT for weight in weights):
        raise CalibrationError(f"{at}.weights must be within {_LARGEST_WEIGHT:g} and its negative")
    if len(weights) != len(features):
        raise CalibrationError(f"{at}.weights has {len(weights)} entries for {len(features)} features")
    bias = read_number(body.get("bias"), f"{at}.bias")
    return LinearMap(tuple(features), weights, bias, _read_ranges(body.get("ranges"), f"{at}.ranges", len(features)))


def _read_ranges(value: object, at: str, count: int) -> tuple[tuple[float, float], ...] | None:
    if value is None:
        return None
    if not isinstance(value, list | tuple) or len(value) != count:
        raise CalibrationError(f"{at} must be a list with a pair for each feature")
    pairs = [read_numbers(pair, f"{at}[{i}]") for i, pair in enumerate(value)]
    if any(len(pair) != 2 or pair[0] > pair[1] for pair in pairs):
        raise CalibrationError(f"{at} must hold pairs of a least and a largest value")
    return tuple((low, high) for low, high in pairs)


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
    try:
        if not isinstance(value, bool) and isinstance(value, int | float) and math.isfinite(value):
            return float(value)
    except OverflowError:
        pass  # a whole number beyond all floats
    raise CalibrationError(f"{at} must be a finite number")


def read_numbers(value: object, at: str) -> tuple[float, ...]:
    """The value as at least one finite float, or a CalibrationError that names the key."""
    if not isinstance(value, list | tuple) or not value:
        raise CalibrationError(f"{at} must be a list of numbers, and not empty")
    return tuple(read_number(number, f"{at}[{i}]") for i, number in enumerate(value))


def _check_slopes(at: str, **slopes: float) -> None:
    for key, slope in slopes.items():
        if slope < 0:
            raise CalibrationError(f"{at}.{key} must not be negative; the map would not be monotone")
