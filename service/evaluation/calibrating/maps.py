"""Maps from evidence to the chance of being right, fitted to soft targets with scikit-learn.

Each is given in the JSON form that `service.answers.maps` reads, and applied by that module: what is compared here is
what serving does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from service.answers import EDGE, LISTED, Evidence, logit, read_map
from service.errors import needs
from service.evaluation.calibrating.spread import spread
from service.evaluation.reporting.calibration_figures import brier_score

Floats = NDArray[np.float64]
Map = dict[str, Any]
"""A map in its JSON form."""

FOLDS: Final = 5
MAX_KNOTS: Final = 64
# Weak L2 regularisation keeps the coefficients finite on separable data; features are standardised first.
INVERSE_REGULARIZATION: Final = 100.0
IDENTITY: Final[Map] = {"kind": "logistic", "a": 1.0, "b": 0.0}
"""The model's own probability as it is: what a fitted map has to beat."""


@dataclass(frozen=True)
class Judged:
    """Questions with what is known of them; n entries each.

    Attributes:
        evidence: what a map is given.
        target: what it is to give, in [0, 1].
        groups: questions of one group (one picture, one kind of damage) are never on both sides of a fold.
    """

    evidence: Sequence[Evidence]
    target: Floats
    groups: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.evidence)

    def part(self, which: NDArray[Any]) -> Judged:
        """The questions at these indexes, or where a mask says so."""
        indexes = np.arange(len(self))[which]
        return Judged([self.evidence[int(k)] for k in indexes], self.target[indexes], self.groups[indexes])

    def features(self, names: Sequence[str]) -> Floats:
        """(n, names)."""
        return np.array([[e.feature(name) for name in names] for e in self.evidence], dtype=np.float64)

    @property
    def top(self) -> Floats:
        """The top masses, (n,)."""
        return np.array([e.top for e in self.evidence], dtype=np.float64)

    @property
    def answerable(self) -> Floats:
        """The masses that are not "unanswerable", (n,)."""
        return np.array([e.answerable for e in self.evidence], dtype=np.float64)

    @property
    def masses(self) -> Floats:
        """The masses of the listed members and of the rest, (n, LISTED + 1); 0 where there are fewer."""
        found = np.zeros((len(self), LISTED + 1))
        for row, e in zip(found, self.evidence, strict=True):
            row[: len(e.masses)] = e.masses
            row[LISTED] = e.rest
        return found

    def folds(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Indexes to fit on and to test on, at most five times; none where there is one group alone."""
        with needs("scikit-learn"):
            from sklearn.model_selection import GroupKFold
        folds = min(FOLDS, len(np.unique(self.groups)))
        if folds > 1:
            yield from GroupKFold(folds).split(self.target, groups=self.groups)


Fitter = Callable[[Judged], Map]


def fit_identity(_judged: Judged) -> Map:
    """Nothing is fitted."""
    return dict(IDENTITY)


def fit_temperature(judged: Judged) -> Map:
    """The temperature (Guo et al. 2017) of least squared error, between 1/8 and 8: a grid, refined twice."""
    lowest, highest = np.log(1 / 8), np.log(8)
    low, high = lowest, highest
    best = 0.0
    masses, top = judged.masses, judged.top
    for _ in range(3):
        grid = np.linspace(low, high, 17)
        errors = [brier_score(at_temperature(masses, top, float(np.exp(g))), judged.target) for g in grid]
        best = float(grid[int(np.argmin(errors))])
        step = grid[1] - grid[0]
        low, high = max(lowest, best - step), min(highest, best + step)
    return {"kind": "temperature", "t": float(np.exp(best))}


def at_temperature(masses: Floats, top: Floats, temperature: float) -> Floats:
    """`Evidence.at_temperature` of many questions.

    Args:
        masses: (n, members), the rest among them, 0 where there are fewer members.
        top: (n,).
    """
    with np.errstate(divide="ignore"):
        logs, log_top = np.log(masses), np.log(top)
    largest = logs.max(axis=1)
    powers = np.exp((logs - largest[:, None]) / temperature).sum(axis=1)
    scaled: Floats = np.minimum(np.exp((log_top - largest) / temperature) / powers, 1.0)
    return scaled


def fit_isotonic(judged: Judged) -> Map:
    """Over the top mass: non-decreasing steps, thinned to at most 64 knots; never quite 0 or 1, which n questions
    cannot prove."""
    return _isotonic(judged.top, judged.target)


def fit_isotonic_answerable(judged: Judged) -> Map:
    """The same over the mass that is not "unanswerable"."""
    return _isotonic(judged.answerable, judged.target) | {"mass": "answerable"}


def _isotonic(mass: Floats, target: Floats) -> Map:
    with needs("scikit-learn"):
        from sklearn.isotonic import IsotonicRegression
    edge = 1 / (len(target) + 2)
    fitted = IsotonicRegression(y_min=edge, y_max=1 - edge, out_of_bounds="clip").fit(mass, target)
    x, y = np.asarray(fitted.X_thresholds_), np.asarray(fitted.y_thresholds_)
    if len(x) > MAX_KNOTS:
        kept = np.unique(np.linspace(0, len(x) - 1, MAX_KNOTS).round().astype(int))
        x, y = x[kept], y[kept]
    return {"kind": "isotonic", "x": x.tolist(), "y": y.tolist()}


def fit_beta(judged: Judged) -> Map:
    """Beta calibration (Kull, Silva Filho and Flach 2017).

    a and b are not negative (the map does not fall): a negative one is set to 0 and the rest fitted again.
    """
    top = np.clip(judged.top, EDGE, 1 - EDGE)
    features = np.stack([np.log(top), -np.log1p(-top)], axis=1)
    used = [0, 1]
    weights, bias = np.zeros(0), _logit_of_mean(judged.target)
    while used:
        weights, bias = fit_soft_logistic(features[:, used], judged.target)
        if weights.min() >= 0:
            break
        used.pop(int(weights.argmin()))
        weights, bias = np.zeros(0), _logit_of_mean(judged.target)
    full = np.zeros(2)
    full[used] = weights
    return {"kind": "beta", "a": float(full[0]), "b": float(full[1]), "c": bias}


def fit_logistic(judged: Judged) -> Map:
    """Platt scaling (Platt 1999) on the logit; the slope is not negative."""
    weights, bias = fit_soft_logistic(np.array([[logit(p)] for p in judged.top]), judged.target)
    if weights[0] < 0:
        return {"kind": "logistic", "a": 0.0, "b": _logit_of_mean(judged.target)}
    return {"kind": "logistic", "a": float(weights[0]), "b": bias}


def linear_fitter(features: Sequence[str]) -> Fitter:
    """Logistic regression over these features."""

    def fit_linear(judged: Judged) -> Map:
        values = judged.features(features)
        weights, bias = fit_soft_logistic(values, judged.target)
        ranges = np.stack([values.min(axis=0), values.max(axis=0)], axis=1)
        named = {"features": list(features), "weights": weights.tolist(), "bias": bias, "ranges": ranges.tolist()}
        return {"kind": "linear", **named}

    return fit_linear


def fit_soft_logistic(features: Floats, target: Floats) -> tuple[Floats, float]:
    """Logistic regression on targets in [0, 1]: each question counts as a 1 with weight t and a 0 with 1 - t.

    Where all targets are 0, or all are 1, nothing can be told apart: the weights are 0 and the bias is their mean's.

    Args:
        features: (n, features), of any scale.
        target: (n,).
    """
    with needs("scikit-learn"):
        from sklearn.linear_model import LogisticRegression
    center, scale = features.mean(axis=0), spread(features)
    rows = np.concatenate([(features - center) / scale] * 2)
    labels = np.concatenate([np.ones(len(target)), np.zeros(len(target))])
    weights = np.concatenate([target, 1 - target])
    used = weights > 0
    if len(set(labels[used])) < 2:
        return np.zeros(features.shape[1]), _logit_of_mean(target)
    fitted = LogisticRegression(C=INVERSE_REGULARIZATION, max_iter=2000).fit(
        rows[used], labels[used], sample_weight=weights[used]
    )
    raw = np.asarray(fitted.coef_[0]) / scale
    return raw, float(fitted.intercept_[0] - (raw * center).sum())


def choose(judged: Judged, fitters: Mapping[str, Fitter]) -> tuple[str, Map, dict[str, float | None]]:
    """The simplest kind of map that predicts about as well as the best what it was not fitted on.

    "About": its cross-validated Brier score is within one standard error of their difference (Breiman et al. 1984).
    Where all questions are of one group nothing can be compared: the simplest is taken, and there are no scores.

    Args:
        judged: the questions.
        fitters: by name, the simplest first.

    Returns:
        Its name; the map, fitted on everything and kept off certainty by 1 / (n + 2); the score of each kind.
    """
    folds = list(judged.folds())
    edge = {"edge": 1 / (len(judged) + 2)}
    if not folds:
        simplest = next(iter(fitters))
        return simplest, fitters[simplest](judged) | edge, dict.fromkeys(fitters)
    groups = judged.groups[np.concatenate([test for _, test in folds])]
    errors: dict[str, Floats] = {}
    for name, fit in fitters.items():
        parts = [
            (_applied(fit(judged.part(train)), judged.part(test)) - judged.target[test]) ** 2 for train, test in folds
        ]
        errors[name] = np.concatenate(parts)
    scores = {name: float(each.mean()) for name, each in errors.items()}
    best = min(scores, key=lambda name: scores[name])
    chosen = next(
        name for name in fitters if scores[name] - scores[best] <= _standard_error(errors[name] - errors[best], groups)
    )
    return chosen, fitters[chosen](judged) | edge, dict(scores)


def _standard_error(differences: Floats, groups: NDArray[np.int64]) -> float:
    """Of the mean, where the differences within a group go together (Liang and Zeger 1986)."""
    _, which = np.unique(groups, return_inverse=True)
    sums = np.bincount(which, weights=differences - differences.mean())
    return float(np.sqrt((sums**2).sum()) / len(differences))


def _applied(fitted: Map, judged: Judged) -> Floats:
    given = read_map(fitted, "map", fitted.get("mass", "top"))
    return np.array([given.of(e) for e in judged.evidence], dtype=np.float64)


def _logit_of_mean(target: Floats) -> float:
    return logit(float(target.mean()))
