"""What share of the questions can be answered at a given risk, if those it is least sure of are left unanswered."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

RISKS: Final = (0.01, 0.05, 0.1, 0.2)
_POINTS: Final = 200  # of a curve that is drawn

Floats = NDArray[np.float64]


def risk_coverage_curve(confidences: Floats, accuracies: Floats) -> tuple[Floats, Floats]:
    """Coverage and risk when the surest 1, 2, ... n questions are answered (Whitehead et al. 2022)."""
    order = np.argsort(-confidences, kind="stable")
    count = np.arange(1, confidences.size + 1)
    return count / confidences.size, np.cumsum(1 - accuracies[order]) / count


def risk_coverage_figures(score: Floats, accuracy: Floats) -> dict[str, Any]:
    """The area under the curve, the coverage at some risks, and the curve itself.

    Args:
        score: (n,), how sure the model was; n at least 1.
        accuracy: (n,), 0 to 1.
    """
    coverage, risk = risk_coverage_curve(score, accuracy)
    best = risk_coverage_curve(accuracy, accuracy)
    drawn = np.unique(np.linspace(0, coverage.size - 1, _POINTS).round().astype(int))
    return {
        "questions": int(score.size),
        "area": float(np.trapezoid(risk, coverage)),
        "best_area": float(np.trapezoid(best[1], best[0])),
        "coverage_at_risk": [{"risk": most, "coverage": _coverage(score, coverage, risk, most)} for most in RISKS],
        "curve": [{"coverage": float(coverage[i]), "risk": float(risk[i])} for i in drawn],
    }


def _coverage(score: Floats, coverage: Floats, risk: Floats, most: float) -> float:
    """The largest coverage at which the risk is at most `most`; equal scores are answered together or not at all."""
    ordered = np.sort(score)[::-1]
    whole = np.append(ordered[:-1] != ordered[1:], True)
    allowed = np.flatnonzero(whole & (risk <= most))
    return float(coverage[allowed[-1]]) if allowed.size else 0.0
