"""Arithmetic on raw scores, in float64 and without overflow."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from service.errors import Code, VQAError


def checked_scores(scores: ArrayLike, n: int) -> NDArray[np.float64]:
    """The scores as (n,) float64.

    Raises:
        VQAError: `backend_invalid_scores`: another shape, a NaN, or plus infinity.
    """
    array = np.asarray(scores, dtype=np.float64)
    if array.shape != (n,):
        raise invalid_scores(f"{n} scores were expected, and an array of shape {array.shape} came")
    if not np.isfinite(array).all():
        if np.isnan(array).any():
            raise invalid_scores("there are NaNs among the scores")
        if np.isposinf(array).any():
            raise invalid_scores("a score is plus infinity")
    return array


def invalid_scores(why: str) -> VQAError:
    """The error for scores that no answer can be made of."""
    return VQAError(Code.BACKEND_INVALID_SCORES, f"The model gave scores that cannot be used: {why}.")


def log_sum_exp(scores: NDArray[np.float64]) -> float:
    """log(sum(exp(scores))); minus infinity for nothing and for nothing but minus infinities."""
    top = float(scores.max()) if scores.size else -math.inf
    if top == -math.inf:
        return top
    return top + float(np.log(np.exp(scores - top).sum()))


def sigmoid(x: ArrayLike) -> NDArray[np.float64]:
    """1 / (1 + exp(-x)), elementwise; exact at both infinities."""
    x = np.asarray(x, dtype=np.float64)
    small = np.exp(-np.abs(x))
    return np.asarray(np.where(x >= 0, 1.0, small) / (1.0 + small), dtype=np.float64)


def logistic(x: float) -> float:
    """1 / (1 + exp(-x)) without overflow."""
    small = math.exp(-abs(x))
    return (1.0 if x >= 0 else small) / (1.0 + small)
