"""Expected values by the odds form of each map: odds(q) = p^a / (1 - p)^b * e^c."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.special import expit, softmax
from scipy.special import logit as scipy_logit

from service.answers import (
    FEATURES,
    BetaMap,
    CalibrationError,
    Evidence,
    IsotonicMap,
    LinearMap,
    LogisticMap,
    TemperatureMap,
)
from service.answers.maps import read_map
from service.images import STATISTICS

SLOPES = st.floats(0, 20)
P = st.floats(0, 1)


def of_masses(masses, *, unanswerable=None):
    """Evidence of a distribution over answers; one of them may be "unanswerable"."""
    answerable = sorted((p for k, p in enumerate(masses) if k != unanswerable), reverse=True)
    top, second, *_ = (*answerable, 0.0, 0.0)
    nothing = 0.0 if unanswerable is None else masses[unanswerable]
    return Evidence(tuple(sorted(masses, reverse=True)), top, second, nothing)


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


@given(P)
def test_maps_of_one_number_look_at_the_top_mass(p):
    evidence = Evidence((0.9, 0.05), p, 0.05, 0.9, {"sharpness": 3.0})
    for fitted in (BetaMap(1.5, 0.5, 0.1), LogisticMap(2.0, -1.0), IsotonicMap((0.1, 0.9), (0.2, 0.7))):
        assert fitted.of(evidence) == fitted(p)


@given(st.lists(st.floats(-8, 8), min_size=2, max_size=10), st.floats(0.2, 3.0))
def test_temperature_is_the_softmax_of_divided_logits(logits, t):
    masses = softmax(logits)
    assert TemperatureMap(t).of(of_masses(masses)) == pytest.approx(softmax(np.array(logits) / t).max(), abs=1e-5)


@pytest.mark.parametrize("t", [1 / 8, 1.0, 8.0])
def test_temperature_at_both_ends_of_what_is_fitted(t):
    # masses that are exact in binary, so that nothing is left over
    assert TemperatureMap(t).of(of_masses([0.5, 0.25, 0.25])) == pytest.approx(
        0.5 ** (1 / t) / (0.5 ** (1 / t) + 2 * 0.25 ** (1 / t)), abs=1e-12
    )


@given(st.lists(st.floats(-8, 8), min_size=3, max_size=10), st.floats(0.2, 3.0))
def test_temperature_with_unanswerable_among_the_answers(logits, t):
    hot = softmax(np.array(logits) / t)
    fitted = TemperatureMap(t).of(of_masses(softmax(logits), unanswerable=0))
    assert fitted == pytest.approx(hot[1:].max(), abs=1e-5)


def test_temperature_takes_the_rest_as_one_answer():
    # 0.6 and 0.2 are listed, 0.2 is left: at T = 1/2 their squares
    assert TemperatureMap(0.5).of(of_masses([0.6, 0.2])) == pytest.approx(0.36 / (0.36 + 0.04 + 0.04), abs=1e-12)
    # also where the rest is the largest
    assert TemperatureMap(0.5).of(of_masses([0.1])) == pytest.approx(0.01 / (0.01 + 0.81), abs=1e-12)


def test_temperature_one_changes_nothing_and_none_overflows():
    assert TemperatureMap(1.0).of(of_masses([0.7, 0.2, 0.1])) == pytest.approx(0.7, abs=1e-12)
    assert TemperatureMap(1.0).of(of_masses([0.0, 0.0])) == 0.0
    assert TemperatureMap(1e-300).of(of_masses([0.6, 0.4])) == 1.0
    assert TemperatureMap(1e-300).of(of_masses([0.4, 0.6], unanswerable=1)) == 0.0
    assert TemperatureMap(1e300).of(of_masses([0.5, 0.25, 0.25])) == pytest.approx(1 / 3)
    assert 0.0 <= TemperatureMap(0.125).of(of_masses([5e-324])) <= 1e-12


@given(st.lists(st.floats(0, 1), min_size=1, max_size=10), st.floats(1e-3, 1e3))
def test_temperature_is_within_bounds_for_scores_that_sum_to_anything(scores, t):
    assert 0.0 <= TemperatureMap(t).of(of_masses(scores)) <= 1.0


def test_a_high_temperature_does_not_raise_what_rounding_left():
    logits = np.random.default_rng(0).normal(0, 3, (500, 10))
    hot = softmax(logits / 8, axis=1).max(axis=1)
    assert [TemperatureMap(8.0).of(of_masses(row)) for row in softmax(logits, axis=1)] == pytest.approx(hot, abs=1e-6)


NUMBERS = st.floats(-5, 5)


@given(st.lists(NUMBERS, min_size=4, max_size=4), NUMBERS, st.lists(st.floats(-3, 3), min_size=4, max_size=4))
def test_linear_is_logistic_regression(weights, bias, logits):
    p = softmax(logits)
    assume(p.min() > 1e-4 and p.max() < 1 - 1e-4)
    evidence = of_masses(p, unanswerable=3)
    top, second = sorted(p[:3], reverse=True)[:2]
    x = [*scipy_logit([top, second, p[3]]), -(p * np.log(p)).sum()]
    names = ("top_logit", "second_logit", "unanswerable_logit", "entropy")
    assert LinearMap(names, tuple(weights), bias).of(evidence) == pytest.approx(expit(np.dot(weights, x) + bias))


def test_linear_over_the_picture():
    evidence = Evidence((0.5,), 0.5, 0.0, 0.0, {"sharpness": 2.0, "brightness": 0.25})
    fitted = LinearMap(("brightness", "top_logit", "sharpness"), (4.0, 9.0, -0.5), 0.75)
    assert fitted.of(evidence) == pytest.approx(expit(4.0 * 0.25 - 0.5 * 2.0 + 0.75))
    with pytest.raises(KeyError, match="contrast"):
        LinearMap(("contrast",), (1.0,), 0.0).of(evidence)


def test_linear_keeps_masses_of_0_and_1_apart_by_one_in_ten_thousand():
    certain = Evidence((1.0,), 1.0, 0.0, 0.0)
    for name, p in (("top_logit", 0.9999), ("second_logit", 0.0001), ("unanswerable_logit", 0.0001)):
        assert LinearMap((name,), (1.0,), 0.0).of(certain) == pytest.approx(p, rel=1e-9)
    assert LinearMap(("top_logit",), (1e300,), 0.0).of(certain) == 1.0
    assert LinearMap(("top_logit",), (-1e300,), 0.0).of(certain) == 0.0


def test_weights_whose_sums_could_overflow_are_refused():
    body = {"kind": "linear", "features": ["top_logit", "second_logit"], "weights": [1e308] * 2, "bias": 0}
    with pytest.raises(CalibrationError, match=r"m\.weights must be within"):
        read_map(body, "m")
    fitted = read_map(body | {"weights": [1e6, 1e6]}, "m")
    assert 0.0 <= fitted.of(Evidence((0.999, 0.001), 0.999, 0.001, 0.0)) <= 1.0


def test_read():
    assert read_map({"kind": "isotonic", "x": [0, 1], "y": [0.1, 0.9]}, "m") == IsotonicMap((0.0, 1.0), (0.1, 0.9))
    assert read_map({"kind": "beta", "a": 1, "b": 2, "c": -3}, "m") == BetaMap(1.0, 2.0, -3.0)
    assert read_map({"kind": "logistic", "a": 1, "b": 2}, "m") == LogisticMap(1.0, 2.0)
    assert read_map({"kind": "temperature", "t": 2}, "m") == TemperatureMap(2.0)
    linear = {"kind": "linear", "features": ["entropy", "contrast"], "weights": [1, -2], "bias": 3}
    assert read_map(linear, "m") == LinearMap(("entropy", "contrast"), (1.0, -2.0), 3.0)
    for name in (*FEATURES, *STATISTICS):
        read_map({"kind": "linear", "features": [name], "weights": [0], "bias": 0}, "m")


def linear(**changes):
    return {"kind": "linear", "features": ["entropy", "contrast"], "weights": [1, 2], "bias": 0} | changes


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
        ({"kind": "isotonic", "x": [0], "y": [0], "mass": "second"}, "m.mass"),
        ({"kind": "beta", "a": 1, "b": 1}, "m.c"),
        ({"kind": "beta", "a": -1, "b": 1, "c": 0}, "m.a"),
        ({"kind": "beta", "a": 1, "b": -1, "c": 0}, "m.b"),
        ({"kind": "logistic", "a": True, "b": 0}, "m.a"),
        ({"kind": "logistic", "a": -1, "b": 0}, "m.a"),
        ({"kind": "logistic", "a": 1, "b": math.inf}, "m.b"),
        ({"kind": "temperature"}, "m.t"),
        ({"kind": "temperature", "t": 0}, "m.t must be positive"),
        ({"kind": "temperature", "t": -1}, "m.t must be positive"),
        ({"kind": "temperature", "t": math.inf}, "m.t"),
        ({"kind": "temperature", "t": "1"}, "m.t"),
        ({"kind": "temperature", "t": True}, "m.t"),
        ({"kind": "temperature", "t": 1, "a": 1}, "m.a"),
        (linear(features=[]), "m.features"),
        (linear(features="entropy"), "m.features"),
        (linear(features=["entropy", "blur"]), r"m.features\[1\]"),
        (linear(features=["entropy", "entropy"]), r"m.features\[1\]"),
        (linear(features=[None, "entropy"]), r"m.features\[0\]"),
        (linear(features=[["entropy"], "contrast"]), r"m.features\[0\]"),
        (linear(features=[{}, "contrast"]), r"m.features\[0\]"),
        (linear(features=["top", "contrast"]), r"m.features\[0\]"),
        (linear(weights=[1]), "m.weights has 1 entries for 2"),
        (linear(weights=[1, 2, 3]), "m.weights has 3 entries for 2"),
        (linear(weights=[1, math.nan]), r"m.weights\[1\]"),
        (linear(weights=None), "m.weights"),
        (linear(bias=None), "m.bias"),
        (linear(bias=math.inf), "m.bias"),
        (linear(threshold=0.5), "m.threshold"),
    ],
)
def test_a_map_that_cannot_be_used_is_named(value, key):
    with pytest.raises(CalibrationError, match=key):
        read_map(value, "m")


def test_an_integer_that_is_no_float_is_named():
    with pytest.raises(CalibrationError, match=r"m\.t"):
        read_map({"kind": "temperature", "t": 10**400}, "m")
