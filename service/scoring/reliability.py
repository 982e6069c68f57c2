"""Risk, coverage and effective reliability of a model that may abstain.

Definitions: Whitehead et al. 2022, "Reliable Visual Question Answering: Abstain Rather Than Answer Incorrectly". The
numbers are those of facebookresearch/reliable_vqa (d9586af, reliable_vqa_eval.py), its rounding and its ties included:

- Coverage is the share of questions answered when the most confident are answered first; risk is one minus their mean
  accuracy. Of questions of equal confidence the more accurate ones come first, which flatters the curve a little.
- cov@r is the largest coverage with a risk of at most r. It never ends amid questions of equal confidence, which no
  threshold could tell apart.
- phi@c, effective reliability, is the mean over all questions of: the accuracy of an answer, -c for an answer of
  accuracy 0, and 0 for none. The threshold is chosen on other questions than those it is tested on.

"best_" is the same for a model whose confidence sorts its answers by their accuracy.

Arrays are [n], aligned: confidences any numbers that can be ordered, accuracies 0 to 1. Percentages have two places.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from service.errors import needs

RISKS: Final = (0.01, 0.05, 0.1, 0.2)
COSTS: Final = (1, 10, 100)

_PLACES: Final = 2

Floats = NDArray[np.float64]


def risk_coverage_curve(confidences: ArrayLike, accuracies: ArrayLike) -> tuple[Floats, Floats]:
    """The risk-coverage curve, one point a question, from the most confident on.

    Args:
        confidences, accuracies: [n] each.

    Returns:
        (coverage, risk), [n] each, 0 to 1. Coverage goes up to 1.

    Raises:
        ValueError: there are no questions, the arrays differ in length, or one holds something not a number.
    """
    confidence, accuracy = _checked(confidences, accuracies)
    return _curve(accuracy[_by_confidence(confidence, accuracy)])


def risk_coverage(
    confidences: ArrayLike, accuracies: ArrayLike, risks: Sequence[float] = RISKS
) -> dict[str, float | dict[str, float]]:
    """The area under the risk-coverage curve, and the coverage at each risk.

    Args:
        confidences, accuracies: [n] each, n at least 2.
        risks: the risks to tolerate, 0 to 1.

    Returns:
        `auc`, `best_auc` (percent) and, for each risk r, `cov@r` and `best_cov@r`: `coverage` (percent) and
        `threshold`, the confidence of the last question answered, 0 where none is.

    Raises:
        ValueError: as `risk_coverage_curve`, or there are fewer than two questions.
        MissingExtraError: scikit-learn is not installed.
    """
    with needs("scikit-learn"):
        from sklearn.metrics import auc
    confidence, accuracy = _checked(confidences, accuracies)
    if len(confidence) < 2:
        raise ValueError("the area under the risk-coverage curve needs two questions at least, and there is one")
    figures: dict[str, float | dict[str, float]] = {}
    orders = {"best_": _by_accuracy(accuracy), "": _by_confidence(confidence, accuracy)}
    for prefix, order in orders.items():
        coverage, risk = _curve(accuracy[order])
        figures[f"{prefix}auc"] = round(100.0 * auc(coverage, risk), _PLACES)
        for tolerated in risks:
            at_risk = _coverage_at_risk(confidence[order], coverage, risk, tolerated)
            figures[f"{prefix}cov@{tolerated}"] = at_risk
    return figures


def choose_thresholds(
    confidences: ArrayLike, accuracies: ArrayLike, costs: Sequence[float] = COSTS
) -> dict[float, float]:
    """For each cost, the confidence from which on to answer: the one of greatest phi, of several the lowest.

    Args:
        confidences, accuracies: [n] each, of questions apart from those the threshold will be tested on.
        costs: what an answer of accuracy 0 costs.

    Raises:
        ValueError: as `risk_coverage_curve`.
    """
    confidence, accuracy = _checked(confidences, accuracies)
    order = np.argsort(-confidence, kind="stable")
    points = _percent(accuracy[order]) / 100
    thresholds = {}
    for cost in costs:
        phi = np.cumsum(_gain(points, cost))
        thresholds[cost] = float(confidence[order][np.flatnonzero(phi == phi.max())[-1]])
    return thresholds


def effective_reliability(
    confidences: ArrayLike, accuracies: ArrayLike, thresholds: Mapping[float, float]
) -> dict[str, dict[str, float]]:
    """Effective reliability at each cost.

    Args:
        confidences, accuracies: [n] each.
        thresholds: for each cost the confidence from which on to answer (`choose_thresholds`).

    Returns:
        For each cost c, `phi@c` (`threshold`, and in percent `phi`, `coverage`, `risk`, `no_abstention_phi`) and
        `best_phi@c` (`phi`, `coverage`, `risk`).

    Raises:
        ValueError: as `risk_coverage_curve`.
    """
    confidence, accuracy = _checked(confidences, accuracies)
    order = _by_confidence(confidence, accuracy)
    confidence, points = confidence[order], _percent(accuracy[order]) / 100
    figures = {}
    for cost, threshold in thresholds.items():
        figures[f"phi@{cost}"] = _phi(confidence, points, cost, threshold)
        figures[f"best_phi@{cost}"] = _best_phi(points, cost)
    return figures


def _checked(confidences: ArrayLike, accuracies: ArrayLike) -> tuple[Floats, Floats]:
    confidence = np.asarray(confidences, dtype=np.float64)
    accuracy = np.asarray(accuracies, dtype=np.float64)
    if confidence.ndim != 1 or confidence.shape != accuracy.shape:
        raise ValueError(f"confidences {confidence.shape} and accuracies {accuracy.shape} must be [n] both")
    if not len(confidence):
        raise ValueError("there are no questions")
    if np.isnan(confidence).any() or np.isnan(accuracy).any():
        raise ValueError("a confidence or an accuracy is not a number")
    return confidence, accuracy


def _percent(accuracy: Floats) -> Floats:
    """Accuracies in percent to two places, rounded as Python's `round` does (numpy's differs in the last digit)."""
    values, inverse = np.unique(accuracy, return_inverse=True)
    rounded = np.array([round(100.0 * value, _PLACES) for value in values.tolist()])
    return rounded[inverse]


def _by_accuracy(accuracy: Floats) -> NDArray[np.intp]:
    return np.argsort(-_percent(accuracy), kind="stable")


def _by_confidence(confidence: Floats, accuracy: Floats) -> NDArray[np.intp]:
    """From the most confident on; of equal confidence the more accurate first, as in the original."""
    best = _by_accuracy(accuracy)
    return best[np.argsort(-confidence[best], kind="stable")]


def _curve(accuracy: Floats) -> tuple[Floats, Floats]:
    answered = np.arange(1, len(accuracy) + 1, dtype=np.float64)
    return answered / len(accuracy), np.cumsum(1.0 - accuracy) / answered


def _coverage_at_risk(confidence: Floats, coverage: Floats, risk: Floats, tolerated: float) -> dict[str, float]:
    within = risk <= tolerated
    last = _last(within)
    if -1 < last < len(confidence) - 1 and confidence[last] == confidence[last + 1]:
        last = _last(within[: last + 1] & (confidence[: last + 1] != confidence[1 : last + 2]))
    if last < 0:
        return {"coverage": 0.0, "threshold": 0.0}
    return {"coverage": round(100.0 * float(coverage[last]), _PLACES), "threshold": float(confidence[last])}


def _last(flags: NDArray[np.bool_]) -> int:
    """The index of the last True; -1 where there is none."""
    found = np.flatnonzero(flags)
    return int(found[-1]) if len(found) else -1


def _gain(points: Floats, cost: float) -> Floats:
    return np.where(points == 0, -float(cost), points)


def _phi(confidence: Floats, points: Floats, cost: float, threshold: float) -> dict[str, float]:
    answered = confidence >= threshold
    count = int(answered.sum())
    risk = 1 - _added(points[answered]) / max(count, 1.0)
    # The original adds numpy numbers to a Python one, so a sum without any right answer stays Python's, which rounds
    # in its own way.
    phi = _added(_gain(points[answered], cost), plain=not points[answered].any()) / len(points)
    without_abstention = _added(_gain(points, cost), plain=not points.any()) / len(points)
    return {
        "threshold": threshold,
        "phi": _rounded(100.0 * phi),
        "coverage": _rounded(100.0 * (count / len(points))),
        "risk": _rounded(100.0 * risk),
        "no_abstention_phi": _rounded(100.0 * without_abstention),
    }


def _best_phi(points: Floats, cost: float) -> dict[str, float]:
    gain = _gain(points, cost)
    right = gain[gain > 0]
    total: Any = right.sum()  # in pairs, as the original does here
    coverage: Any = np.float64(len(right)) / len(points)
    return {
        "phi": _rounded(100.0 * (total / len(points))),
        "coverage": _rounded(100.0 * coverage),
        "risk": _rounded(100.0 * (1 - total / max(len(right), 1.0))),
    }


def _added(values: Floats, *, plain: bool = False) -> Any:
    """The values added from left to right; a Python float where `plain` or there are none, else one of numpy."""
    if not len(values):
        return 0.0
    total = np.cumsum(values)[-1]
    return float(total) if plain else total


def _rounded(value: Any) -> float:
    """Two places: by Python's rule for its own floats, by numpy's for numpy's, as in the original."""
    return float(round(value, _PLACES))
