"""How far a confidence may be believed: reliability bins, calibration errors and the Brier score.

What is compared is the confidence in the one answer that was given and that answer's accuracy in the data set's own
metric. VQA accuracy is fractional (0.3, 0.6, 0.9), and the target is that fraction itself: a confidence is the expected
accuracy. For accuracies of 0 and 1 all definitions are those of the papers for the predicted label.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

BINS: Final = 15
"""As in the tables of Guo et al. 2017."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ReliabilityBins:
    """Questions sorted into B bins by confidence; all arrays are (B,).

    Attributes:
        lower, upper: the bin's edges; of equal-mass bins, its least and greatest confidence (NaN where empty).
        count: how many questions are in it.
        confidence, accuracy: their means; NaN where the bin is empty.
    """

    lower: Floats
    upper: Floats
    count: NDArray[np.int64]
    confidence: Floats
    accuracy: Floats

    @property
    def expected_calibration_error(self) -> float:
        """ECE (Guo et al. 2017, equation 3): the bins' |accuracy - confidence|, weighted by their share; NaN if empty.

        Over equal-mass bins it is what Nguyen & O'Connor 2015 call adaptive binning, with absolute differences.
        """
        filled = self.count > 0
        if not filled.any():
            return float("nan")
        return float(np.average(self._gaps()[filled], weights=self.count[filled]))

    @property
    def maximum_calibration_error(self) -> float:
        """MCE (Guo et al. 2017, equation 5): the largest |accuracy - confidence| of any bin that is not empty."""
        filled = self.count > 0
        return float(self._gaps()[filled].max()) if filled.any() else float("nan")

    def _gaps(self) -> Floats:
        return np.abs(self.accuracy - self.confidence)


def equal_width_bins(confidence: ArrayLike, accuracy: ArrayLike, bins: int = BINS) -> ReliabilityBins:
    """Bins ((b-1)/B, b/B] (Guo et al. 2017); the first holds 0 as well, so that no confidence is left out.

    Args:
        confidence, accuracy: (n,), each within 0 and 1.
        bins: B, at least 1.

    Raises:
        ValueError: the shapes differ, a value is outside 0 and 1 or not a number, or `bins` is below 1.
    """
    confidences, accuracies = _checked(confidence, accuracy, bins)
    # k / B is the very number that is written 0.7; a sum of steps (numpy's linspace) may lie a little beside it.
    edges = np.arange(bins + 1) / bins
    which = np.searchsorted(edges[1:-1], confidences, side="left")
    count, mean_confidence, mean_accuracy = _means(which, confidences, accuracies, bins)
    return ReliabilityBins(edges[:-1], edges[1:], count, mean_confidence, mean_accuracy)


def equal_mass_bins(confidence: ArrayLike, accuracy: ArrayLike, bins: int = BINS) -> ReliabilityBins:
    """Bins of as nearly equal counts as can be (Nguyen & O'Connor 2015, section 3).

    Equal confidences are never told apart: all of them go to the bin where their middle falls. The outcome therefore
    does not depend on the order of the questions, and some bins may stay empty.

    Args:
        confidence, accuracy: (n,), each within 0 and 1.
        bins: B, at least 1.

    Raises:
        ValueError: as `equal_width_bins`.
    """
    confidences, accuracies = _checked(confidence, accuracy, bins)
    values, inverse, counts = np.unique(confidences, return_inverse=True, return_counts=True)
    # Ranks run from 0 to n - 1; twice the middle rank keeps to whole numbers.
    twice_middle = 2 * (np.cumsum(counts) - counts) + counts - 1
    of_value = twice_middle * bins // max(2 * confidences.size, 1)
    count, mean_confidence, mean_accuracy = _means(of_value[inverse], confidences, accuracies, bins)
    lower, upper = np.full(bins, np.nan), np.full(bins, np.nan)
    np.fmin.at(lower, of_value, values)
    np.fmax.at(upper, of_value, values)
    return ReliabilityBins(lower, upper, count, mean_confidence, mean_accuracy)


def brier_score(confidence: ArrayLike, accuracy: ArrayLike) -> float:
    """The mean squared difference of confidence and accuracy (Brier 1950, for the one event "it is right").

    Args:
        confidence, accuracy: (n,), each within 0 and 1.

    Returns:
        0 (best) to 1; NaN where n is 0. With fractional accuracies 0 is reached only by a confidence that equals them.

    Raises:
        ValueError: as `equal_width_bins`.
    """
    confidences, accuracies = _checked(confidence, accuracy, 1)
    return float(np.mean((confidences - accuracies) ** 2)) if confidences.size else float("nan")


def _checked(confidence: ArrayLike, accuracy: ArrayLike, bins: int) -> tuple[Floats, Floats]:
    confidences, accuracies = np.asarray(confidence, dtype=np.float64), np.asarray(accuracy, dtype=np.float64)
    if confidences.ndim != 1 or confidences.shape != accuracies.shape:
        raise ValueError(f"confidence {confidences.shape} and accuracy {accuracies.shape} must be (n,) alike")
    if bins < 1:
        raise ValueError(f"bins is {bins}; it must be at least 1")
    for name, values in (("confidence", confidences), ("accuracy", accuracies)):
        if not ((values >= 0) & (values <= 1)).all():
            raise ValueError(f"{name} must be within 0 and 1")
    return confidences, accuracies


def _means(
    which: NDArray[np.intp], confidences: Floats, accuracies: Floats, bins: int
) -> tuple[NDArray[np.int64], Floats, Floats]:
    """Count, mean confidence and mean accuracy of each bin, (B,)."""
    count = np.bincount(which, minlength=bins)
    with np.errstate(invalid="ignore"):
        confidence = np.bincount(which, weights=confidences, minlength=bins) / count
        accuracy = np.bincount(which, weights=accuracies, minlength=bins) / count
    return count, confidence, accuracy
