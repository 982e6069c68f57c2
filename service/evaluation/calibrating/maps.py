"""Maps from a model's probability to the chance of being right, fitted to soft targets with scikit-learn.

Each map is a JSON object, as `calibration.json` holds it:
isotonic  {"kind", "x", "y"}      linear between knots, constant outside
beta      {"kind", "a", "b", "c"} sigmoid(a ln p - b ln(1 - p) + c)    (Kull, Silva Filho and Flach 2017)
logistic  {"kind", "a", "b"}      sigmoid(a logit(p) + b)              (Platt 1999, on the logit)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold

Map = dict[str, object]

CLIP = 1e-6
MAX_KNOTS = 64
FOLDS = 5
# Weak L2 regularisation keeps the coefficients finite on separable data.
INVERSE_REGULARIZATION = 1e3


def clip(p: np.ndarray) -> np.ndarray:
    return np.clip(p, CLIP, 1 - CLIP)


def logit(p: np.ndarray) -> np.ndarray:
    """ln(p / (1 - p)) of the clipped probability."""
    p = clip(p)
    return np.log(p) - np.log1p(-p)


def sigmoid(z: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-z))


def fit_isotonic(p: np.ndarray, target: np.ndarray) -> Map:
    """Non-decreasing steps, thinned to at most 64 knots; never quite 0 or 1, which n questions cannot prove."""
    edge = 1 / (len(p) + 2)
    fitted = IsotonicRegression(y_min=edge, y_max=1 - edge, out_of_bounds="clip").fit(p, target)
    x, y = fitted.X_thresholds_, fitted.y_thresholds_
    if len(x) > MAX_KNOTS:
        kept = np.unique(np.linspace(0, len(x) - 1, MAX_KNOTS).round().astype(int))
        x, y = x[kept], y[kept]
    return {"kind": "isotonic", "x": x.tolist(), "y": y.tolist()}


def fit_beta(p: np.ndarray, target: np.ndarray) -> Map:
    """a and b are not negative (the map does not fall): a negative one is set to 0 and the rest fitted again."""
    features = np.stack([np.log(clip(p)), -np.log1p(-clip(p))], axis=1)
    used = [0, 1]
    weights, bias = np.zeros(0), float(logit(np.array(target.mean())))
    while used:
        weights, bias = fit_soft_logistic(features[:, used], target)
        if weights.min() >= 0:
            break
        used.pop(int(weights.argmin()))
        weights, bias = np.zeros(0), float(logit(np.array(target.mean())))
    full = np.zeros(2)
    full[used] = weights
    return {"kind": "beta", "a": float(full[0]), "b": float(full[1]), "c": bias}


def fit_logistic(p: np.ndarray, target: np.ndarray) -> Map:
    weights, bias = fit_soft_logistic(logit(p)[:, None], target)
    return {"kind": "logistic", "a": float(weights[0]), "b": bias}


def fit_soft_logistic(features: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, float]:
    """Logistic regression on targets in [0, 1]: each question counts as a 1 with weight t and a 0 with 1 - t.

    Where all targets are 0, or all are 1, nothing can be told apart: the weights are 0 and the bias is their mean's.
    """
    rows = np.concatenate([features, features])
    labels = np.concatenate([np.ones(len(target)), np.zeros(len(target))])
    weights = np.concatenate([target, 1 - target])
    used = weights > 0
    if len(set(labels[used])) < 2:
        return np.zeros(features.shape[1]), float(logit(np.array(target.mean())))
    fitted = LogisticRegression(C=INVERSE_REGULARIZATION, max_iter=2000).fit(
        rows[used], labels[used], sample_weight=weights[used]
    )
    return fitted.coef_[0], float(fitted.intercept_[0])


def apply(fitted: Map, p: np.ndarray) -> np.ndarray:
    """The map's value at each probability."""
    if fitted["kind"] == "isotonic":
        return np.interp(p, fitted["x"], fitted["y"])
    if fitted["kind"] == "beta":
        return sigmoid(fitted["a"] * np.log(clip(p)) - fitted["b"] * np.log1p(-clip(p)) + fitted["c"])
    if fitted["kind"] == "logistic":
        return sigmoid(fitted["a"] * logit(p) + fitted["b"])
    raise ValueError(f"unknown kind of map: {fitted['kind']}")


def fit_nothing(_p: np.ndarray, _target: np.ndarray) -> Map:
    """The probability as it is: what a fitted map has to beat."""
    return {"kind": "logistic", "a": 1.0, "b": 0.0}


FITTERS: dict[str, Callable[[np.ndarray, np.ndarray], Map]] = {
    "identity": fit_nothing,
    "isotonic": fit_isotonic,
    "beta": fit_beta,
    "logistic": fit_logistic,
}


def fit_best(
    p: np.ndarray, target: np.ndarray, groups: np.ndarray, kinds: Sequence[str] = tuple(FITTERS)
) -> tuple[Map, dict[str, float]]:
    """The kind of map with the lowest cross-validated Brier score, fitted on everything; and all scores.

    Folds never split a group (a wording): in use the wordings are others than those that were fitted on.
    """
    scores: dict[str, float] = {}
    for kind in kinds:
        fit = FITTERS[kind]
        errors = np.empty(len(p))
        for train, test in GroupKFold(FOLDS).split(p, groups=groups):
            errors[test] = (apply(fit(p[train], target[train]), p[test]) - target[test]) ** 2
        scores[kind] = float(errors.mean())
    best = min(scores, key=scores.__getitem__)
    return FITTERS[best](p, target), scores


def brier(p: np.ndarray, target: np.ndarray) -> float:
    """Mean squared difference."""
    return float(((p - target) ** 2).mean())


def expected_calibration_error(p: np.ndarray, target: np.ndarray, bins: int = 15) -> float:
    """ECE with equal-width bins (Guo et al. 2017): |mean target - mean p| of each bin, weighted by its share."""
    which = np.minimum((p * bins).astype(int), bins - 1)
    gaps = [abs(p[which == k].mean() - target[which == k].mean()) * (which == k).mean() for k in np.unique(which)]
    return float(sum(gaps))
