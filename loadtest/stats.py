"""Quantiles that are values which were measured, never values between them."""

from __future__ import annotations

import math
from collections.abc import Sequence

QUANTILES = {"p50": 0.50, "p90": 0.90, "p95": 0.95, "p99": 0.99}


def quantile(values: Sequence[float], share: float) -> float:
    """The least value that at least `share` of all values do not exceed; NaN of none."""
    if not values:
        return math.nan
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def median(values: Sequence[float]) -> float:
    """The lower median; NaN of none."""
    return quantile(values, 0.5)


def milliseconds(seconds: Sequence[float]) -> dict[str, float]:
    """p50, p90, p95, p99 and max in milliseconds, with their number `n`."""
    found = {name: round(quantile(seconds, share) * 1000, 3) for name, share in QUANTILES.items()}
    return found | {"max": round(max(seconds, default=math.nan) * 1000, 3), "n": len(seconds)}
