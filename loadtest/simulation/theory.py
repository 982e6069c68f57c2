"""What queueing theory and cache theory say: formulas to hold the simulation against, and to go beyond its size."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def pollaczek_khinchine(rate: float, mean_s: float, second_moment_s2: float) -> float:
    """Mean wait in the queue of an M/G/1, in seconds (Pollaczek, 1930; Khinchine, 1932).

    M/M/1: the second moment is 2 mean^2; M/D/1: mean^2.

    Raises:
        ValueError: it has no steady state.
    """
    load = rate * mean_s
    if load >= 1:
        raise ValueError(f"a load of {load:g} has no steady state")
    return rate * second_moment_s2 / (2 * (1 - load))


def erlang_c(servers: int, offered: float) -> float:
    """Probability of having to wait in an M/M/c with `offered` = rate x mean service time (Erlang, 1917).

    Raises:
        ValueError: it has no steady state.
    """
    if offered >= servers:
        raise ValueError(f"{offered:g} Erlang on {servers} servers have no steady state")
    # Erlang B by its recurrence, which stays in range for any number of servers.
    blocking = 1.0
    for n in range(1, servers + 1):
        blocking = offered * blocking / (n + offered * blocking)
    return blocking / (1 - offered / servers * (1 - blocking))


def mmc_wait_s(servers: int, rate: float, mean_s: float) -> float:
    """Mean wait in the queue of an M/M/c, in seconds."""
    offered = rate * mean_s
    return erlang_c(servers, offered) * mean_s / (servers - offered)


def che_hit_ratio(shares: NDArray[np.float64], entries: float) -> float:
    """Hit ratio of an LRU cache under independent requests (Che, Tung, Wang, 2002).

    An entry stays for about the same time t, in requests: sum(1 - exp(-p t)) is the number of entries.

    Args:
        shares: (keys,) probability of each key.
        entries: that the cache holds.
    """
    if entries <= 0:
        return 0.0
    if entries >= len(shares):
        return 1.0
    low, high = 0.0, float(entries)
    while -np.expm1(-shares * high).sum() < entries:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        if -np.expm1(-shares * middle).sum() < entries:
            low = middle
        else:
            high = middle
    return float(-(shares * np.expm1(-shares * high)).sum())
