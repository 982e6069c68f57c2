"""What share of the answers can be given at a given risk, if those it is least sure of are held back.

The definitions and the numbers are those of `service.scoring.reliability`; here they become shares and a curve to draw.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from service.scoring.reliability import RISKS, risk_coverage, risk_coverage_curve

_POINTS: Final = 200  # of a curve that is drawn

Floats = NDArray[np.float64]


def risk_coverage_figures(score: Floats, accuracy: Floats) -> dict[str, Any]:
    """The area under the curve, the coverage at some risks, and the curve itself, thinned; all are shares.

    Args:
        score: (n,), how sure the model was; n at least 2.
        accuracy: (n,), 0 to 1.

    Raises:
        ValueError: n is below 2.
        MissingExtraError: scikit-learn is not installed.
    """
    found: dict[str, Any] = risk_coverage(score, accuracy)
    coverage, risk = risk_coverage_curve(score, accuracy)
    drawn = np.unique(np.linspace(0, coverage.size - 1, _POINTS).round().astype(int))
    return {
        "questions": int(score.size),
        "area": found["auc"] / 100,
        "best_area": found["best_auc"] / 100,
        "coverage_at_risk": [{"risk": most, "coverage": found[f"cov@{most}"]["coverage"] / 100} for most in RISKS],
        "curve": [{"coverage": float(coverage[i]), "risk": float(risk[i])} for i in drawn],
    }
