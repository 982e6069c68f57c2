"""Which replica gets a question: the policies that are compared, over the questions that each has under way."""

from __future__ import annotations

import random
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from loadtest.simulation import rendezvous


class Policy(StrEnum):
    """By its usual name."""

    RANDOM = "random"
    ROUND_ROBIN = "round robin"
    LEAST = "least outstanding"
    TWO_CHOICES = "power of two choices"
    AFFINITY = "picture affinity, bounded"


class Router:
    """Chooses among the replicas that are believed ready.

    Args:
        policy: the rule.
        most: largest number of a replica, plus one.
        seed: of the random choices.
        stale_s: how old the loads are that it sees: it looks at them so often only; 0: always at those of now.

    Attributes:
        load: (most,) questions under way by replica, kept by whoever routes.
        total: their sum.
    """

    def __init__(self, policy: Policy, most: int, seed: int, stale_s: float = 0.0) -> None:
        self.load = np.zeros(most, dtype=np.int64)
        self.total = 0
        self._policy, self._stale_s = policy, stale_s
        self._random = random.Random(seed)
        self._seeds = rendezvous.seeds(most)
        self._ready = np.zeros(0, dtype=np.int64)
        self._ready_seeds = self._seeds[:0]
        self._next = 0
        self._seen, self._seen_total, self._seen_at = self.load, 0, float("-inf")

    def set_ready(self, ready: list[int]) -> None:
        """The numbers of the replicas that may be chosen."""
        self._ready = np.array(ready, dtype=np.int64)
        self._ready_seeds = self._seeds[self._ready]

    def choose(self, picture: int, now: float, avoid: int = -1) -> int:
        """The number of a replica; -1 where none is ready.

        Args:
            picture: the question's.
            now: seconds.
            avoid: a replica that failed on it; another one, if there is one.
        """
        ready, n = self._ready, len(self._ready)
        if n == 0:
            return -1
        if avoid >= 0 and n > 1:
            others = ready[ready != avoid]
            return int(others[int(self._random.random() * len(others))])
        if self._policy is Policy.RANDOM:
            return int(ready[int(self._random.random() * n)])
        if self._policy is Policy.ROUND_ROBIN:
            self._next = (self._next + 1) % n
            return int(ready[self._next])
        load, total = self._loads(now)
        if self._policy is Policy.TWO_CHOICES:
            one, two = (int(ready[int(self._random.random() * n)]) for _ in range(2))
            return one if load[one] <= load[two] else two
        mine = load[ready]
        if self._policy is Policy.LEAST:
            least = np.flatnonzero(mine == mine.min())
            return int(ready[least[int(self._random.random() * len(least))]])
        return int(ready[rendezvous.choose(picture, self._ready_seeds, mine, total)])

    def _loads(self, now: float) -> tuple[NDArray[np.int64], int]:
        if not self._stale_s:
            return self.load, self.total
        if now - self._seen_at >= self._stale_s:
            self._seen, self._seen_total, self._seen_at = self.load.copy(), self.total, now
        return self._seen, self._seen_total
