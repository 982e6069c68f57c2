"""Expected values by the odds form of each map: odds(q) = p^a / (1 - p)^b * e^c."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.answers import BetaMap, CalibrationError, IsotonicMap, LogisticMap
from service.answers.maps import read_map

SLOPES = st.floats(0, 20)
P = st.floats(0, 1)


def test_isotonic_is_linear_between_knots_and_constant_outside():
    fitted = IsotonicMap((0.2, 0.4, 0.8), (0.1, 0.5, 0.9))
    assert [fitted(p) for p in (0.0, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0)] == pytest.approx(
        [0.1, 0.1, 0.3, 0.5, 0.7, 0.9, 0.9]
    )
    assert IsotonicMap((0.5,), (0.3,))(0.9) == 0.3


def test_beta():
    odds = 0.8**2 / 0.2**1 * math.exp(0.5)
    assert BetaMap(2.0, 1.0, 0.5)(0.8) == pytest.approx(odds / (1 + odds), abs=1e-12)
    assert BetaMap(1.0, 1.0, 0.0)(0.3) == pytest.approx(0.3, abs=1e-12)
    assert BetaMap(1.0, 1.0, 0.0)(0.0) == pytest.approx(1e-6, rel=1e-6)
    assert BetaMap(1.0, 1.0, 0.0)(1.0) == pytest.approx(1 - 1e-6, abs=1e-12)


def test_logistic():
    odds = (0.8 / 0.2) ** 2 * math.exp(-1.0)
    assert LogisticMap(2.0, -1.0)(0.8) == pytest.approx(odds / (1 + odds), abs=1e-12)
    assert LogisticMap(1.0, 0.0)(0.0) == pytest.approx(1e-6, rel=1e-6)


@given(SLOPES, SLOPES, st.floats(-2000, 2000), P, P)
def test_every_map_is_monotone_and_within_bounds(a, b, c, p, q):
    low, high = sorted((p, q))
    for fitted in (BetaMap(a, b, c), LogisticMap(a, c), IsotonicMap((0.1, 0.9), (a / 40, 0.5 + b / 40))):
        assert 0.0 <= fitted(low) <= fitted(high) + 1e-12 <= 1.0 + 1e-12


def test_read():
    assert read_map({"kind": "isotonic", "x": [0, 1], "y": [0.1, 0.9]}, "m") == IsotonicMap((0.0, 1.0), (0.1, 0.9))
    assert read_map({"kind": "beta", "a": 1, "b": 2, "c": -3}, "m") == BetaMap(1.0, 2.0, -3.0)
    assert read_map({"kind": "logistic", "a": 1, "b": 2}, "m") == LogisticMap(1.0, 2.0)


@pytest.mark.parametrize(
    ("value", "key"),
    [
        ([], "m must be an object"),
        ({"kind": "spline"}, "m.kind"),
        ({"kind": "isotonic", "x": [0, 1], "y": [0]}, "m.x and m.y"),
        ({"kind": "isotonic", "x": [], "y": []}, "m.x"),
        ({"kind": "isotonic", "x": [0, 0], "y": [0, 1]}, "m.x"),
        ({"kind": "isotonic", "x": [1, 0], "y": [0, 1]}, "m.x"),
        ({"kind": "isotonic", "x": [0, 1], "y": [1, 0]}, "m.y"),
        ({"kind": "isotonic", "x": [0, 1], "y": [0, 1.1]}, "m.y"),
        ({"kind": "isotonic", "x": [0, 1], "y": [0, math.nan]}, r"m.y\[1\]"),
        ({"kind": "isotonic", "x": [0, "1"], "y": [0, 1]}, r"m.x\[1\]"),
        ({"kind": "isotonic", "x": [0], "y": [0], "z": 1}, "m.z"),
        ({"kind": "beta", "a": 1, "b": 1}, "m.c"),
        ({"kind": "beta", "a": -1, "b": 1, "c": 0}, "m.a"),
        ({"kind": "beta", "a": 1, "b": -1, "c": 0}, "m.b"),
        ({"kind": "logistic", "a": True, "b": 0}, "m.a"),
        ({"kind": "logistic", "a": -1, "b": 0}, "m.a"),
        ({"kind": "logistic", "a": 1, "b": math.inf}, "m.b"),
    ],
)
def test_a_map_that_cannot_be_used_is_named(value, key):
    with pytest.raises(CalibrationError, match=key):
        read_map(value, "m")
