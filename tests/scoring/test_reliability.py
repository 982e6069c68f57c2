"""Risk, coverage and effective reliability as plain functions; the numbers of whole files are in test_reliable_vqa."""

from __future__ import annotations

import pytest

from service.scoring.reliability import (
    choose_thresholds,
    effective_reliability,
    risk_coverage,
    risk_coverage_curve,
)

# Worked by hand: four questions, the second and third of equal confidence.
CONFIDENCES = [0.5, 0.9, 0.9, 0.2]
ACCURACIES = [1.0, 0.0, 1.0, 0.0]


def test_the_curve_goes_from_the_most_confident_on() -> None:
    coverage, risk = risk_coverage_curve(CONFIDENCES, ACCURACIES)
    assert coverage.tolist() == [0.25, 0.5, 0.75, 1.0]
    assert risk.tolist() == [0.0, 1 / 2, 1 / 3, 1 / 2]


def test_coverage_never_ends_amid_equal_confidences() -> None:
    figures = risk_coverage(CONFIDENCES, ACCURACIES, risks=[0.1, 0.4])
    assert figures["cov@0.1"] == {"coverage": 0.0, "threshold": 0.0}
    assert figures["cov@0.4"] == {"coverage": 75.0, "threshold": 0.5}
    # By accuracy the order is 0.5, 0.9, 0.9, 0.2; the original steps back over equal neighbours there, too.
    assert figures["best_cov@0.1"] == {"coverage": 25.0, "threshold": 0.5}


def test_the_area_under_the_curve_begins_at_the_first_question() -> None:
    """Trapezoids between coverage 1/4 and 1: (0 + 1/2) / 8 + (1/2 + 1/3) / 8 + (1/3 + 1/2) / 8."""
    assert risk_coverage(CONFIDENCES, ACCURACIES)["auc"] == 27.08


def test_of_equal_phi_the_lowest_threshold_is_chosen() -> None:
    # Running sums at cost 1: 1, 0, 1, 0. The first and the third are equal; the third answers more.
    thresholds = choose_thresholds([0.9, 0.8, 0.7, 0.6], [1.0, 0.0, 1.0, 0.0], costs=[1])
    assert thresholds == {1: 0.7}
    figures = effective_reliability([0.9, 0.8, 0.7, 0.6], [1.0, 0.0, 1.0, 0.0], thresholds)
    assert figures["phi@1"] == {
        "threshold": 0.7,
        "phi": 25.0,
        "coverage": 75.0,
        "risk": 33.33,
        "no_abstention_phi": 0.0,
    }
    assert figures["best_phi@1"] == {"phi": 50.0, "coverage": 50.0, "risk": 0.0}


def test_a_threshold_that_nothing_reaches_answers_nothing() -> None:
    figures = effective_reliability(CONFIDENCES, ACCURACIES, {10: 2.0})
    assert figures["phi@10"]["phi"] == figures["phi@10"]["coverage"] == 0.0


@pytest.mark.parametrize(
    ("confidences", "accuracies", "match"),
    [([], [], "no questions"), ([0.1], [0.1, 0.2], "must be"), ([float("nan")], [1.0], "not a number")],
)
def test_odd_arrays_are_refused(confidences: list[float], accuracies: list[float], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        risk_coverage_curve(confidences, accuracies)


def test_one_question_has_no_area() -> None:
    with pytest.raises(ValueError, match="two questions"):
        risk_coverage([0.5], [1.0])
