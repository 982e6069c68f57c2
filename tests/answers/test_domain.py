"""The domain's score against scikit-learn and SciPy, and what a verdict makes of a picture outside."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal
from sklearn.mixture import GaussianMixture

from service.answers import Calibration, CalibrationError, Posterior, Vocabulary, finish, read_domain
from service.images import STATISTICS
from tests.support.bodies import changed

D, K = 3, 2
NAMES = STATISTICS[:D]
CENTER, SCALE = np.array([0.4, 3.0, 5.0]), np.array([0.1, 0.7, 2.0])


def made(rng: np.random.Generator) -> tuple[GaussianMixture, dict]:
    """A mixture that scikit-learn fitted, and its JSON."""
    points = np.concatenate([rng.normal(-1, 0.5, (200, D)), rng.normal(1, 1.5, (100, D)) @ rng.normal(0, 1, (D, D))])
    fitted = GaussianMixture(K, random_state=0).fit(points)
    return fitted, {
        "kind": "gaussian_mixture",
        "pictures": len(points),
        "statistics": list(NAMES),
        "center": CENTER.tolist(),
        "scale": SCALE.tolist(),
        "weights": fitted.weights_.tolist(),
        "means": fitted.means_.tolist(),
        "factors": fitted.precisions_cholesky_.tolist(),
        "threshold": 12.0,
    }


MIXTURE, JSON = made(np.random.default_rng(0))


def of(x) -> dict[str, float]:
    """The statistics of a picture at this standardised point."""
    return dict(zip(NAMES, (np.asarray(x) * SCALE + CENTER).tolist(), strict=True))


@given(st.lists(st.floats(-1000, 1000), min_size=D, max_size=D))
def test_the_score_is_scikit_learns(x) -> None:
    assert read_domain(JSON, "domain").score(of(x)) == pytest.approx(-MIXTURE.score_samples([x])[0], rel=1e-6, abs=1e-6)


def test_the_score_is_scipys() -> None:
    domain = read_domain(JSON, "domain")
    for x in np.random.default_rng(1).normal(0, 2, (50, D)):
        density = sum(
            weight * multivariate_normal(mean, covariance).pdf(x)
            for weight, mean, covariance in zip(MIXTURE.weights_, MIXTURE.means_, MIXTURE.covariances_, strict=True)
        )
        assert domain.score(of(x)) == pytest.approx(-math.log(density), rel=1e-7)


def normal(**changes) -> dict:
    """One standard normal distribution of brightness; its score at z is ln(2 pi) / 2 + z^2 / 2."""
    return {
        "kind": "gaussian_mixture", "pictures": 9, "statistics": ["brightness"], "center": [0.5], "scale": [0.1],
        "weights": [1], "means": [[0]], "factors": [[[1]]], "threshold": 3,
    } | changes  # fmt: skip


def test_one_normal_distribution_by_hand() -> None:
    domain = read_domain(normal(), "domain")
    assert domain.score({"brightness": 0.5}) == pytest.approx(0.9189385332046727)
    assert domain.score({"brightness": 0.7, "contrast": 99.0}) == pytest.approx(0.9189385332046727 + 2)
    assert not domain.outside({"brightness": 0.7})  # 2.92
    assert domain.outside({"brightness": 0.71})
    at = read_domain(normal(threshold=domain.score({"brightness": 0.7})), "domain")
    assert not at.outside({"brightness": 0.7}), "the threshold itself is inside"
    with pytest.raises(KeyError, match="brightness"):
        domain.outside({"contrast": 1.0})


@given(st.floats(50, 1e6), st.lists(st.floats(-1, 1), min_size=D, max_size=D))
def test_a_picture_far_away_is_outside(far, direction) -> None:
    length = np.linalg.norm(direction)
    x = far * (np.array(direction) / length if length > 1e-3 else np.eye(D)[0])
    domain = read_domain(JSON, "domain")
    assert domain.outside(of(x))
    assert domain.score(of(2 * x)) > domain.score(of(x))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_picture_farther_away_than_floats_reach_is_outside() -> None:
    assert read_domain(normal(scale=[1e-200]), "domain").outside({"brightness": 1.0})


@pytest.mark.parametrize(
    ("path", "value", "names"),
    [
        ("kind", None, "domain.kind"),
        ("kind", "kernel", "domain.kind"),
        ("area", 1, "domain.area"),
        ("statistics", None, "domain.statistics"),
        ("statistics", [], "domain.statistics"),
        ("statistics", "brightness", "domain.statistics"),
        ("statistics", ["brightness"] * 3, "domain.statistics"),
        ("statistics", ["brightness", "contrast", "blur"], r"domain.statistics\[2\]"),
        ("statistics", [["brightness"], "contrast", "sharpness"], r"domain.statistics\[0\]"),
        ("statistics", ["brightness", "contrast"], "domain.center"),
        ("center", None, "domain.center"),
        ("center", [1, 2], "domain.center"),
        ("center", [1, 2, "3"], r"domain.center\[2\]"),
        ("center", {}, "domain.center"),
        ("center", [[1, 2, 3]], r"domain.center\[0\]"),
        ("scale", None, "domain.scale"),
        ("scale", [1, 2, 0], "domain.scale must be positive"),
        ("scale", [1, 2, -3], "domain.scale must be positive"),
        ("scale", [1, math.nan, 3], r"domain.scale\[1\]"),
        ("weights", None, "domain.weights"),
        ("weights", [], "domain.weights"),
        ("weights", [1.0], "domain.means"),
        ("weights", [0.5, 0.6], "domain.weights must be positive and sum to 1"),
        ("weights", [1.5, -0.5], "domain.weights must be positive and sum to 1"),
        ("weights", [1.0, 0.0], "domain.weights must be positive and sum to 1"),
        ("weights", [True, False], r"domain.weights\[0\]"),
        ("means", None, "domain.means"),
        ("means", [[0, 0, 0]], "domain.means"),
        ("means", [0, 0], r"domain.means\[0\]"),
        ("means", [[0, 0, 0], [0, 0]], "domain.means must have rows of one length"),
        ("means.1.2", math.inf, r"domain.means\[1\]\[2\]"),
        ("factors", None, "domain.factors"),
        ("factors", [[[1]], [[1]]], "domain.factors"),
        ("factors", [[1, 2, 3]] * 2, r"domain.factors\[0\]\[0\]"),
        ("factors.1.2", [0, 1], r"domain.factors\[1\] must have rows of one length"),
        ("factors.1.2.2", -1, "domain.factors must be upper triangular, with positive diagonals"),
        ("factors.0.0.0", 0, "domain.factors must be upper triangular, with positive diagonals"),
        ("factors.0.1.2", "x", r"domain.factors\[0\]\[1\]\[2\]"),
        ("threshold", None, "domain.threshold"),
        ("threshold", math.inf, "domain.threshold"),
        ("threshold", "12", "domain.threshold"),
    ],
)
def test_a_domain_that_cannot_be_used_names_the_key(path, value, names) -> None:
    with pytest.raises(CalibrationError, match=names):
        read_domain(changed(JSON, path, value), "domain")


@pytest.mark.parametrize("value", [None, [], "x", 1])
def test_what_is_no_object_is_no_domain(value) -> None:
    with pytest.raises(CalibrationError, match="domain must be an object"):
        read_domain(value, "domain")


def test_through_a_file_nothing_is_lost() -> None:
    again = read_domain(json.loads(json.dumps(JSON)), "domain")
    x = of([0.3, -0.2, 1.0])
    assert again.score(x) == read_domain(JSON, "domain").score(x)


def calibrated(**domain) -> Calibration:
    same = {"quantity": "top_mass", "maps": {"default": {"kind": "logistic", "a": 1, "b": 0}}}
    able = {"kind": "logistic", "features": ["unanswerable_logit"], "weights": [-1], "bias": 0, "threshold": 0.5}
    base = {"version": 1, "fitted_on": "text", "questions": 10, "target": "t", "confidence": same}
    return Calibration.load(base | {"answerability": able, "domain": normal(**domain)})


def posterior(*p: float) -> Posterior:
    vocabulary = Vocabulary(["yes", "no", "unanswerable"])
    return Posterior.from_logits(
        np.log(p), vocabulary.project(vocabulary.default_set), vocabulary.default_set, "softmax"
    )


@pytest.mark.parametrize("p", [(0.9, 0.06, 0.04), (0.1, 0.1, 0.8)])
@pytest.mark.parametrize("max_risk", [None, 0.0, 1.0])
def test_nothing_is_vouched_for_outside(p, max_risk) -> None:
    inside = finish(posterior(*p), calibrated(), statistics={"brightness": 0.5}, max_risk=1.0)
    verdict = finish(posterior(*p), calibrated(), statistics={"brightness": 0.9}, max_risk=max_risk)
    assert (inside.outside_domain, inside.calibrated, inside.abstained) == (False, True, False)
    assert inside.answer == ("yes" if p[0] == 0.9 else "unanswerable")
    assert verdict.outside_domain
    assert (verdict.answer, verdict.confidence, verdict.calibrated, verdict.abstained) == (None, None, False, True)
    assert (verdict.answerable, verdict.answerability) == (None, None)
    # what the model said stays to be seen
    assert (verdict.candidates, verdict.raw_answer, verdict.off_set) == (
        inside.candidates,
        inside.raw_answer,
        inside.off_set,
    )


def test_a_calibration_that_reads_pictures_needs_their_statistics() -> None:
    """Without them an answer about a photograph would slip through as one about a drawing."""
    with pytest.raises(ValueError, match="statistics"):
        finish(posterior(0.9, 0.06, 0.04), calibrated(), statistics=None)


def test_without_a_domain_nothing_is_outside() -> None:
    verdict = finish(posterior(0.9, 0.06, 0.04), None, statistics={"brightness": 1e9})
    assert (verdict.answer, verdict.outside_domain) == ("yes", False)


def test_answerability_by_the_picture_decides() -> None:
    body = {"kind": "logistic", "features": ["sharpness"], "weights": [1], "bias": -3, "threshold": 0.5}
    base = {"version": 1, "fitted_on": "text", "questions": 10, "target": "t", "answerability": body}
    fitted = Calibration.load(base)
    verdict = finish(posterior(0.9, 0.06, 0.04), fitted, statistics={"sharpness": 2.0})
    assert (verdict.answer, verdict.answerability) == ("unanswerable", pytest.approx(1 / (1 + math.e)))
    verdict = finish(posterior(0.1, 0.1, 0.8), fitted, statistics={"sharpness": 4.0})
    assert (verdict.answerable, verdict.answerability) == (True, pytest.approx(math.e / (1 + math.e)))
