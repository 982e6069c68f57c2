"""Fitted maps find the map that targets were drawn from, and never promise what was not seen."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, softmax
from scipy.special import logit as scipy_logit

from service.answers import Evidence, read_map
from service.evaluation.calibrating.maps import (
    FOLDS,
    IDENTITY,
    MAX_KNOTS,
    Judged,
    at_temperature,
    choose,
    fit_beta,
    fit_identity,
    fit_isotonic,
    fit_logistic,
    fit_soft_logistic,
    fit_temperature,
    linear_fitter,
)
from service.evaluation.reporting.calibration_figures import brier_score

N = 6000
GRID = np.linspace(0.05, 0.999, 200)
FITTERS = {
    "identity": fit_identity,
    "temperature": fit_temperature,
    "logistic": fit_logistic,
    "beta": fit_beta,
    "isotonic": fit_isotonic,
}


def of_top(p: float) -> Evidence:
    """Evidence of an answer and one other."""
    masses = tuple(sorted((p, 1 - p), reverse=True))
    return Evidence(masses, p, 1 - p, 0.0)


def judged(p, target, groups=None) -> Judged:
    groups = np.arange(len(p)) // 4 if groups is None else groups
    return Judged([of_top(float(each)) for each in p], np.asarray(target, dtype=np.float64), groups)


def applied(fitted, p) -> np.ndarray:
    given = read_map(fitted, "map")
    return np.array([given.of(of_top(float(each))) for each in p])


def soft(rng: np.random.Generator, truth: np.ndarray) -> np.ndarray:
    """What ten people would say of each."""
    return rng.binomial(10, truth) / 10


@pytest.fixture(scope="module")
def drawn() -> tuple[np.ndarray, np.ndarray]:
    """Top masses, and soft targets drawn from logistic(0.6 logit(p) - 0.8)."""
    rng = np.random.default_rng(0)
    p = rng.beta(2, 0.7, N)
    return p, soft(rng, expit(0.6 * scipy_logit(p) - 0.8))


@pytest.mark.parametrize(
    ("fit", "allowed"),
    [
        (fit_logistic, 0.02),
        (fit_beta, 0.03),
        (fit_isotonic, 0.12),
        (linear_fitter(("top_logit",)), 0.02),
    ],
)
def test_each_kind_finds_the_truth_and_never_falls(drawn, fit, allowed) -> None:
    fitted = fit(judged(*drawn))
    values = applied(fitted, GRID)
    assert abs(values - expit(0.6 * scipy_logit(GRID) - 0.8)).max() < allowed
    assert (np.diff(values) >= -1e-12).all()
    assert len(fitted.get("x", [])) <= MAX_KNOTS


def test_platt_scaling_is_the_maximum_of_the_likelihood(drawn) -> None:
    p, target = drawn
    x = scipy_logit(np.clip(p, 1e-6, 1 - 1e-6))

    def loss(ab: np.ndarray) -> float:
        z = ab[0] * x + ab[1]
        return float((np.logaddexp(0, z) - target * z).sum())

    expected = minimize(loss, [1.0, 0.0]).x
    fitted = fit_logistic(judged(p, target))
    assert [fitted["a"], fitted["b"]] == pytest.approx(expected, abs=2e-3)


def test_beta_finds_its_own_kind() -> None:
    rng = np.random.default_rng(1)
    p = rng.uniform(0.01, 0.99, 20_000)
    fitted = fit_beta(judged(p, soft(rng, expit(0.5 * np.log(p) - 1.5 * np.log1p(-p) + 0.3))))
    assert [fitted["a"], fitted["b"], fitted["c"]] == pytest.approx([0.5, 1.5, 0.3], abs=0.08)


def test_linear_finds_weights_over_masses_and_pictures() -> None:
    rng = np.random.default_rng(2)
    p, sharpness = rng.uniform(0.01, 0.99, 20_000), rng.normal(5, 2, 20_000)
    truth = expit(0.7 * scipy_logit(p) + 0.4 * sharpness - 2.5)
    evidence = [
        Evidence((a,), a, 0.0, 0.0, {"sharpness": b}) for a, b in zip(p.tolist(), sharpness.tolist(), strict=True)
    ]
    fitted = linear_fitter(("top_logit", "sharpness"))(Judged(evidence, soft(rng, truth), np.arange(20_000)))
    assert fitted["features"] == ["top_logit", "sharpness"]
    assert [*fitted["weights"], fitted["bias"]] == pytest.approx([0.7, 0.4, -2.5], abs=0.06)


@pytest.mark.parametrize("t", [0.3, 0.8, 1.0, 2.5])
def test_a_temperature_is_recovered_from_logits(t: float) -> None:
    """Whether the top answer is right is drawn from softmax(logits / t), which the model's own softmax is not."""
    logits = np.random.default_rng(3).normal(0, 1.5, (4000, 6))
    p, truth = softmax(logits, axis=1), softmax(logits / t, axis=1).max(axis=1)
    masses = np.sort(p, axis=1)[:, ::-1].tolist()
    evidence = [Evidence(tuple(row), row[0], row[1], 0.0) for row in masses]
    drawn = (np.random.default_rng(4).uniform(size=len(truth)) < truth).astype(np.float64)
    for target, within in ((truth, 0.01), (drawn, 0.12)):
        fitted = fit_temperature(Judged(evidence, target, np.arange(len(truth))))
        assert fitted["t"] == pytest.approx(t, rel=within)


@pytest.mark.parametrize("t", [1 / 8, 0.7, 1.0, 8.0])
def test_many_at_once_are_as_one_by_one(t: float) -> None:
    """Of few and of many answers, of none that is answerable, and of certain ones."""
    rows = [(1.0,), (0.5, 0.5), (0.4, 0.1), (0.0, 0.0), (0.05,) * 10, (1.0, 0.0, 0.0)]
    evidence = [Evidence(masses, masses[0], masses[-1], 0.0) for masses in rows]
    evidence.append(Evidence((0.7, 0.2), 0.2, 0.0, 0.7))
    evidence.append(Evidence((0.9,), 0.0, 0.0, 0.9))
    given = Judged(evidence, np.zeros(len(evidence)), np.arange(len(evidence)))
    assert at_temperature(given.masses, given.top, t) == pytest.approx(
        [each.at_temperature(t) for each in evidence], abs=1e-12
    )


@pytest.mark.parametrize("right", [True, False])
def test_a_temperature_stays_near_its_bounds(right: bool) -> None:
    p = np.random.default_rng(5).uniform(0.51, 0.99, 300)
    fitted = fit_temperature(judged(p, np.full(300, float(right))))
    assert 1 / 12 < fitted["t"] < 12
    assert (fitted["t"] < 0.3) if right else (fitted["t"] > 7)


def test_a_temperature_stays_within_its_bounds() -> None:
    p = np.random.default_rng(5).uniform(0.51, 0.99, 300)
    assert fit_temperature(judged(p, np.zeros(300)))["t"] <= 8 + 1e-9


def test_falling_data_give_a_flat_map_at_the_mean(drawn) -> None:
    p, target = drawn
    falling = judged(p, 1 - target)
    for fit, slopes in ((fit_beta, ("a", "b")), (fit_logistic, ("a",))):
        fitted = fit(falling)
        assert [fitted[name] for name in slopes] == [0.0] * len(slopes)
        assert applied(fitted, GRID) == pytest.approx(np.full(len(GRID), (1 - target).mean()), abs=0.001)
    assert applied(fit_isotonic(falling), GRID) == pytest.approx(np.full(len(GRID), (1 - target).mean()), abs=0.06)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_where_all_are_wrong_or_all_are_right(value: float) -> None:
    p = np.random.default_rng(6).uniform(0.3, 0.99, 50)
    given = judged(p, np.full(50, value))
    for name, fit in (FITTERS | {"linear": linear_fitter(("top_logit", "entropy"))}).items():
        values = applied(fit(given), GRID)
        assert np.isfinite(values).all(), name
        assert ((values >= 0) & (values <= 1)).all()
    # fifty questions do not prove certainty
    assert applied(fit_isotonic(given), GRID) == pytest.approx(np.full(len(GRID), abs(value - 1 / 52)))


def test_one_question_alone() -> None:
    best, fitted, scores = choose(judged([0.7], [1.0]), FITTERS)
    assert (best, fitted) == ("identity", IDENTITY | {"edge": 1 / 3})  # one question proves nothing
    assert set(scores) == set(FITTERS)
    for fit in FITTERS.values():
        assert 0 <= applied(fit(judged([0.7], [1.0])), [0.7])[0] <= 1


def test_soft_targets_count_as_shares_of_both() -> None:
    """Logistic regression on a constant feature gives the mean; a feature that never changes gets no weight."""
    target = np.array([0.0, 0.3, 0.6, 1.0])
    weights, bias = fit_soft_logistic(np.full((4, 1), 7.0), target)
    assert weights == pytest.approx([0.0])
    assert bias == pytest.approx(scipy_logit(target.mean()), abs=1e-3)


def test_the_right_kind_is_chosen_and_helps(drawn) -> None:
    given = judged(*drawn)
    best, fitted, scores = choose(given, FITTERS)
    assert best == "logistic"
    assert [fitted["a"], fitted["b"]] == pytest.approx([0.6, -0.8], abs=0.05)
    assert min(scores, key=scores.get) == "logistic"
    assert brier_score(applied(fitted, drawn[0]), drawn[1]) < brier_score(drawn[0], drawn[1]) - 0.01


@pytest.mark.parametrize(
    ("truth", "kinds"),
    [
        (lambda p: p, {"identity"}),
        (lambda p: expit(0.4 * np.log(p) - 2.0 * np.log1p(-p) - 1.0), {"beta"}),
        (lambda p: np.where(p < 0.4, 0.1, np.where(p < 0.7, 0.5, 0.95)), {"isotonic"}),
    ],
)
def test_the_family_of_the_truth_is_chosen(truth, kinds) -> None:
    rng = np.random.default_rng(7)
    p = rng.uniform(0.02, 0.98, N)
    # The expectation itself: with noise, a larger family may win by luck.
    best, _, scores = choose(judged(p, truth(p)), FITTERS)
    assert best in kinds, scores


def test_a_score_is_of_what_was_left_out() -> None:
    """A map that remembers everything is no better than chance, and what it was fitted on never contains the test."""
    rng = np.random.default_rng(8)
    p, target = rng.uniform(0.1, 0.9, 200), rng.integers(0, 2, 200).astype(float)
    seen = []

    def fit(part: Judged):
        seen.append(set(part.groups.tolist()))
        return fit_logistic(part)

    _, _, scores = choose(judged(p, target), {"counted": fit})
    assert len(seen) == FOLDS + 1, "each fold, then everything"
    assert all(len(groups) == 40 for groups in seen[:-1])
    assert len(seen[-1]) == 50
    assert math.isfinite(scores["counted"])


@pytest.mark.parametrize("pictures", [2, 3, 5, 40])
def test_folds_never_split_a_picture(pictures: int) -> None:
    groups = np.random.default_rng(9).integers(0, pictures, 200)
    given = judged(np.full(200, 0.5), np.full(200, 0.5), groups)
    folds = list(given.folds())
    assert len(folds) == min(FOLDS, len(set(groups.tolist())))
    for train, test in folds:
        assert not set(groups[train]) & set(groups[test])
    assert sorted(np.concatenate([test for _, test in folds]).tolist()) == list(range(200))


def test_parts_by_mask_and_by_index() -> None:
    given = judged([0.2, 0.4, 0.6], [0.0, 0.5, 1.0], np.array([3, 4, 5]))
    by_mask, by_index = given.part(np.array([True, False, True])), given.part(np.array([0, 2]))
    for part in (by_mask, by_index):
        assert part.top.tolist() == [0.2, 0.6]
        assert part.target.tolist() == [0.0, 1.0]
        assert part.groups.tolist() == [3, 5]


@pytest.mark.parametrize("value", [0.0, 0.1, 1.7, 3e4])
def test_a_feature_that_never_changes_tells_nothing(value: float) -> None:
    """Its standard deviation may be 1e-17 instead of 0: the mean rounds."""
    rng = np.random.default_rng(0)
    features = np.stack([rng.normal(0, 1, 300), np.full(300, value)], axis=1)
    weights, bias = fit_soft_logistic(features, 1 / (1 + np.exp(-features[:, 0])))
    assert abs(weights[1]) < 1e-6
    assert weights[0] == pytest.approx(1, abs=0.05)
    assert bias == pytest.approx(0, abs=0.05)
