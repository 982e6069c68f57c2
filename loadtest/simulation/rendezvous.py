"""Rendezvous hashing with bounded loads: a picture keeps its replica, and no replica gets much more than its share.

Highest random weight: Thaler and Ravishankar, 1998. The bound is that of "Consistent Hashing with Bounded Loads"
(Mirrokni, Thorup, Zadimoghaddam, 2016): with m questions under way, the new one included, on n replicas, none gets more
than ceil(c m / n); a picture whose replica is full goes to the next in the picture's own order.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

BOUND = 1.25
_MASK = (1 << 64) - 1


def mixed(value: int) -> int:
    """64 bits, well mixed (the finaliser of splitmix64: Steele, Lea, Flood, 2014)."""
    value = (value + 0x9E3779B97F4A7C15) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


def seeds(count: int) -> NDArray[np.uint64]:
    """One value for each replica, by its number."""
    return np.array([mixed(number) for number in range(count)], dtype=np.uint64)


def weights(picture: int, of: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The weight of each replica for a picture; O(n)."""
    value = of ^ np.uint64(mixed(picture ^ 0x5851F42D4C957F2D))
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


def choose(picture: int, of: NDArray[np.uint64], load: NDArray[np.int64], total: int, bound: float = BOUND) -> int:
    """The place in `of` that gets one more question.

    Args:
        picture: its identity.
        of: the seeds of the replicas that are ready, n of them.
        load: (n,) questions under way on each.
        total: m without the new one; at least the sum of `load`, or nobody may have room.
        bound: c, above 1.
    """
    most = math.ceil(bound * (total + 1) / len(of))
    weight = weights(picture, of)
    best = int(weight.argmax())
    if load[best] < most:
        return best
    return int(np.where(load < most, weight, np.uint64(0)).argmax())
