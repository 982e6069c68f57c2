"""How far values spread, for dividing by it."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

# Values that deviate less than this, of their size, are the same but for rounding.
_ALIKE: Final = 1e-9


def spread(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The standard deviation of each column, 1 where its values are all the same.

    Args:
        values: (n, columns).

    Returns:
        (columns,), positive.
    """
    deviation: NDArray[np.float64] = values.std(axis=0)
    alike = deviation < _ALIKE * np.maximum(1.0, np.abs(values.mean(axis=0)))
    return np.where(alike, 1.0, deviation)
