"""Risk and coverage, computed by hand."""

from __future__ import annotations

import numpy as np
import pytest

from service.evaluation.reporting.risk_coverage import risk_coverage_figures


def test_by_hand() -> None:
    figures = risk_coverage_figures(np.array([0.6, 0.9, 0.7, 0.8]), np.array([1.0, 1.0, 0.0, 1.0]))
    points = [(point["coverage"], point["risk"]) for point in figures["curve"]]
    assert points == [(0.25, 0), (0.5, 0), (0.75, pytest.approx(1 / 3)), (1, 0.25)]
    # Trapezes: 0, then 1/4 of (0 + 1/3) / 2, then 1/4 of (1/3 + 1/4) / 2; at best only the last has a height, 1/4.
    # The official code gives percentages of two places.
    assert figures["area"] == pytest.approx(1 / 24 + 7 / 96, abs=5e-5)
    assert figures["best_area"] == pytest.approx(1 / 32, abs=5e-5)
    assert [(at["risk"], at["coverage"]) for at in figures["coverage_at_risk"]] == [
        (0.01, 0.5),
        (0.05, 0.5),
        (0.1, 0.5),
        (0.2, 0.5),
    ]


def test_equals_are_given_together_or_not_at_all() -> None:
    figures = risk_coverage_figures(np.array([0.9, 0.5, 0.5]), np.array([1.0, 1.0, 0.0]))
    assert [at["coverage"] for at in figures["coverage_at_risk"]] == pytest.approx([1 / 3] * 4, abs=5e-5)
    figures = risk_coverage_figures(np.array([0.5, 0.5]), np.array([1.0, 0.0]))
    assert [at["coverage"] for at in figures["coverage_at_risk"]] == [0] * 4


def test_a_long_curve_is_thinned_and_keeps_its_ends() -> None:
    rng = np.random.default_rng(4)
    figures = risk_coverage_figures(rng.random(5_000), rng.choice([0, 0.3, 1.0], 5_000))
    curve = figures["curve"]
    assert len(curve) == 200
    assert (curve[0]["coverage"], curve[-1]["coverage"]) == (1 / 5_000, 1)
    assert figures["best_area"] < figures["area"]
