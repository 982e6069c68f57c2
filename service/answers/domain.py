"""Whether a picture is of the kind that a model knows, by how likely its statistics are.

    {"kind": "gaussian_mixture", "pictures": 1400, "statistics": [name, ...], "center": [...], "scale": [...],
     "weights": [...], "means": [[...], ...], "factors": [[[...], ...], ...], "threshold": 7.2}

A mixture of k normal distributions over d statistics, each less its `center` and divided by its `scale`: `weights` (k),
`means` (k x d), and `factors` (k x d x d), the Cholesky factors F of the precisions F F'. The score is the negative
log-likelihood; above `threshold` a picture lies outside.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from service.answers.maps import CalibrationError, check_keys, read_number, read_numbers, read_object
from service.images.statistics import STATISTICS

_KEYS: Final = {
    "kind", "pictures", "statistics", "center", "scale", "weights", "means", "factors", "threshold",
}  # fmt: skip
_WEIGHTS_SUM_TOLERANCE: Final = 1e-3
_LOG_TWO_PI: Final = float(np.log(2 * np.pi))

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Domain:
    """A fitted domain; d statistics, k components.

    Attributes:
        statistics: d names.
        center, scale: (d,).
        log_weights: (k,), with the normalising factor of each component.
        means: (k, d).
        factors: (k, d, d).
        threshold: the largest score inside.
    """

    statistics: tuple[str, ...]
    center: Floats
    scale: Floats
    log_weights: Floats
    means: Floats
    factors: Floats
    threshold: float

    def score(self, statistics: Mapping[str, float]) -> float:
        """How unlikely the picture is: its negative log-likelihood, in nats; NaN where it is beyond all bounds."""
        x = (np.array([statistics[name] for name in self.statistics]) - self.center) / self.scale
        with np.errstate(over="ignore", invalid="ignore"):
            distances = np.einsum("kd,kde->ke", x - self.means, self.factors)
            logs = self.log_weights - 0.5 * (distances**2).sum(axis=1)
            top = float(logs.max())
            return -(top + float(np.log(np.exp(logs - top).sum())))

    def outside(self, statistics: Mapping[str, float]) -> bool:
        """Whether the picture is not of the kind that the model knows."""
        # Also what is so far away that its likelihood is no number any more.
        return not self.score(statistics) <= self.threshold


def read_domain(value: object, at: str) -> Domain:
    """A domain from its JSON form.

    Raises:
        CalibrationError: it is none; the message names the key.
    """
    body = read_object(value, at)
    check_keys(body, set(_KEYS), at)
    if body.get("kind") != "gaussian_mixture":
        raise CalibrationError(f"{at}.kind must be gaussian_mixture")
    names = body.get("statistics")
    if not isinstance(names, list | tuple) or not names or len(set(map(str, names))) != len(names):
        raise CalibrationError(f"{at}.statistics must be a list of names, each once")
    for i, name in enumerate(names):
        if name not in STATISTICS:
            raise CalibrationError(f"{at}.statistics[{i}] must be one of {', '.join(STATISTICS)}")
    weights = _array(body, "weights", at, None)
    k, d = len(weights), len(names)
    if weights.min() <= 0 or abs(weights.sum() - 1) > _WEIGHTS_SUM_TOLERANCE:
        raise CalibrationError(f"{at}.weights must be positive and sum to 1")
    center, scale = (_array(body, key, at, (d,)) for key in ("center", "scale"))
    if scale.min() <= 0:
        raise CalibrationError(f"{at}.scale must be positive")
    means, factors = _array(body, "means", at, (k, d)), _array(body, "factors", at, (k, d, d))
    diagonals = np.diagonal(factors, axis1=1, axis2=2)
    if diagonals.min() <= 0 or np.tril(factors, -1).any():
        raise CalibrationError(f"{at}.factors must be upper triangular, with positive diagonals")
    if read_number(body.get("pictures"), f"{at}.pictures") < 1:
        raise CalibrationError(f"{at}.pictures must be 1 at least")
    log_weights = np.log(weights) + np.log(diagonals).sum(axis=1) - 0.5 * d * _LOG_TWO_PI
    threshold = read_number(body.get("threshold"), f"{at}.threshold")
    return Domain(tuple(map(str, names)), center, scale, log_weights, means, factors, threshold)


def _array(body: Mapping[str, object], key: str, at: str, shape: tuple[int, ...] | None) -> Floats:
    """Numbers in nested lists of this shape; a list of any length where it is None."""
    array = np.array(_nested(body.get(key), f"{at}.{key}", 1 if shape is None else len(shape)), dtype=np.float64)
    if shape is not None and array.shape != shape:
        raise CalibrationError(f"{at}.{key} has the shape {array.shape}; it must be {shape}")
    return array


def _nested(value: object, at: str, depth: int) -> tuple[object, ...]:
    if depth == 1:
        return read_numbers(value, at)
    if not isinstance(value, list | tuple) or not value:
        raise CalibrationError(f"{at} must be a list, and not empty")
    rows = tuple(_nested(row, f"{at}[{i}]", depth - 1) for i, row in enumerate(value))
    if len({len(row) for row in rows}) > 1:
        raise CalibrationError(f"{at} must have rows of one length")
    return rows
