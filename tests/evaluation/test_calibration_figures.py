"""Calibration errors against cases, other libraries, and a set in which a fraction is so many questions of 0 and 1."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss

from service.evaluation.reporting.calibration_figures import brier_score, equal_mass_bins, equal_width_bins
from tests.support.cases import CASES

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "calibration_errors.json").read_text())
CAL_01 = [json.loads(line) for line in (CASES / "metrics" / "cal-01_ece.jsonl").read_text().splitlines()]
CONFIDENCE, CORRECT = np.array(GOLDEN["confidence"]), np.array(GOLDEN["correct"])


@pytest.mark.parametrize("case", CAL_01, ids=lambda case: case["why"])
def test_cal_01_confidences_of_exactly_0_and_1_are_in_a_bin(case: dict) -> None:
    bins = equal_width_bins(case["confidence"], case["correct"], case["n_bins"])
    assert bins.expected_calibration_error == pytest.approx(case["expected_ece"], abs=1e-12), case["why"]
    assert bins.count.sum() == len(case["correct"])


def test_cal_06_the_target_is_the_accuracy_as_a_fraction() -> None:
    for bins in (equal_width_bins([0.9, 0.9], [0.6, 0.9]), equal_mass_bins([0.9, 0.9], [0.6, 0.9])):
        assert bins.expected_calibration_error == pytest.approx(0.15)
    assert brier_score([0.9, 0.9], [0.6, 0.9]) == pytest.approx(0.045)


@pytest.mark.parametrize("expected", GOLDEN["expected"], ids=lambda expected: str(expected["bins"]))
def test_against_netcal_and_torchmetrics(expected: dict) -> None:
    width = equal_width_bins(CONFIDENCE, CORRECT, expected["bins"])
    assert width.expected_calibration_error == pytest.approx(expected["ece"])
    assert width.maximum_calibration_error == pytest.approx(expected["mce"])
    mass = equal_mass_bins(CONFIDENCE, CORRECT, expected["bins"])
    assert mass.expected_calibration_error == pytest.approx(expected["ece_equal_mass"])


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_against_scikit_learn(strategy: str) -> None:
    bins = (equal_width_bins if strategy == "uniform" else equal_mass_bins)(CONFIDENCE, CORRECT, 15)
    accuracy, confidence = calibration_curve(CORRECT, CONFIDENCE, n_bins=15, strategy=strategy)
    filled = bins.count > 0
    assert bins.accuracy[filled] == pytest.approx(accuracy)
    assert bins.confidence[filled] == pytest.approx(confidence)
    assert brier_score(CONFIDENCE, CORRECT) == pytest.approx(brier_score_loss(CORRECT, CONFIDENCE))


@pytest.mark.parametrize("made", [equal_width_bins, equal_mass_bins])
def test_a_fraction_counts_as_so_many_questions_of_ten(made) -> None:
    rng = np.random.default_rng(3)
    confidence, tenths = rng.random(150), rng.choice([0, 3, 6, 9, 10], 150)
    whole = np.concatenate([np.repeat([1, 0], [right, 10 - right]) for right in tenths])
    fractional, counted = made(confidence, tenths / 10), made(np.repeat(confidence, 10), whole)
    assert fractional.expected_calibration_error == pytest.approx(counted.expected_calibration_error)
    assert fractional.maximum_calibration_error == pytest.approx(counted.maximum_calibration_error)
    assert (counted.count == 10 * fractional.count).all()


def test_an_edge_belongs_to_the_bin_below() -> None:
    edges = [k / 10 for k in range(1, 11)]
    assert equal_width_bins(edges, np.ones(10), 10).count.tolist() == [1] * 10
    assert equal_width_bins([np.nextafter(0.3, 1)], [1], 10).count.tolist() == [0, 0, 0, 1, 0, 0, 0, 0, 0, 0]


def test_equal_confidences_share_a_bin_of_equal_mass_in_any_order() -> None:
    confidence, accuracy = np.repeat([0.5, 0.9, 1.0], [10, 5, 15]), np.tile([0.0, 1.0, 1.0], 10)
    bins = equal_mass_bins(confidence, accuracy, 6)
    # Their middle ranks are 4.5, 12 and 22 of 30; a bin has 5.
    assert bins.count.tolist() == [10, 0, 5, 0, 15, 0]
    assert bins.lower[[0, 2, 4]].tolist() == bins.upper[[0, 2, 4]].tolist() == [0.5, 0.9, 1.0]
    order = np.random.default_rng(1).permutation(30)
    again = equal_mass_bins(confidence[order], accuracy[order], 6)
    assert again.expected_calibration_error == pytest.approx(bins.expected_calibration_error)


def test_counts_of_equal_mass_differ_by_one_at_most() -> None:
    counts = equal_mass_bins(np.random.default_rng(2).random(107), np.ones(107), 15).count
    assert counts.sum() == 107
    assert set(counts) == {7, 8}


def test_nothing_gives_no_number_and_nonsense_is_refused() -> None:
    for bins in (equal_width_bins([], []), equal_mass_bins([], [])):
        assert np.isnan(bins.expected_calibration_error)
        assert np.isnan(bins.maximum_calibration_error)
    assert np.isnan(brier_score([], []))
    for confidence, accuracy, count in (([0.5], [0.5, 1], 5), ([1.2], [1], 5), ([np.nan], [1], 5), ([0.5], [1], 0)):
        with pytest.raises(ValueError, match="must be"):
            equal_width_bins(confidence, accuracy, count)
