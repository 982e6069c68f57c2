"""Routing: what each policy promises."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from loadtest.simulation import rendezvous
from loadtest.simulation.routing import Policy, Router


def router(policy: Policy, replicas: int, stale_s: float = 0.0) -> Router:
    made = Router(policy, replicas, seed=3, stale_s=stale_s)
    made.set_ready(list(range(replicas)))
    return made


def test_splitmix_is_the_published_one() -> None:
    """The first outputs of splitmix64 for the seed 0 (Java's SplittableRandom, and Vigna's reference code)."""
    assert rendezvous.mixed(0) == 0xE220A8397B1DCDAF
    assert rendezvous.mixed(0x9E3779B97F4A7C15) == 0x6E789E6AA1B965F4


def test_a_replica_that_goes_moves_its_own_pictures_only() -> None:
    seeds, idle = rendezvous.seeds(10), np.zeros(10, dtype=np.int64)
    without = np.delete(seeds, 4)
    moved = 0
    for picture in range(2_000):
        # A bound so wide that nobody is full.
        before = rendezvous.choose(picture, seeds, idle, 1_000_000)
        after = rendezvous.choose(picture, without, idle[:9], 1_000_000)
        if before == 4:
            moved += 1
        else:
            assert after == before - (before > 4)
    assert 150 < moved < 250


def test_pictures_spread_evenly() -> None:
    seeds, idle = rendezvous.seeds(8), np.zeros(8, dtype=np.int64)
    counts = Counter(rendezvous.choose(picture, seeds, idle, 1_000_000) for picture in range(8_000))
    # Binomial, n 8,000, p 1/8: five standard deviations are 148.
    assert all(abs(count - 1_000) < 148 for count in counts.values())


def test_no_replica_gets_more_than_the_bound_of_one_popular_picture() -> None:
    """100 questions on 10 replicas: ceil(1.25 m / n) is 13 for the last."""
    seeds, load = rendezvous.seeds(10), np.zeros(10, dtype=np.int64)
    for total in range(100):
        load[rendezvous.choose(7, seeds, load, total)] += 1
    assert load.sum() == 100
    assert load.max() <= 13
    assert (load > 0).sum() == 8  # seven full ones hold 91


def test_round_robin_takes_turns() -> None:
    mine = router(Policy.ROUND_ROBIN, 3)
    assert Counter(mine.choose(0, 0.0) for _ in range(9)) == {0: 3, 1: 3, 2: 3}


@pytest.mark.parametrize("policy", [Policy.LEAST, Policy.TWO_CHOICES])
def test_who_looks_at_loads_avoids_the_busiest(policy: Policy) -> None:
    mine = router(policy, 3)
    mine.load[:], mine.total = [9, 0, 4], 13
    chosen = Counter(mine.choose(0, 0.0) for _ in range(900))
    if policy is Policy.LEAST:
        assert chosen == {1: 900}
    else:
        # The busiest only where both choices fall on it: a ninth.
        assert 60 < chosen[0] < 145


def test_stale_loads_are_those_of_the_last_look() -> None:
    mine = router(Policy.LEAST, 2, stale_s=1.0)
    mine.load[0] = 5
    assert mine.choose(0, 0.0) == 1
    mine.load[:] = [0, 5]
    assert mine.choose(0, 0.9) == 1
    assert mine.choose(0, 1.0) == 0


@pytest.mark.parametrize("policy", list(Policy))
def test_only_who_is_ready_is_chosen_and_who_failed_is_avoided(policy: Policy) -> None:
    mine = router(policy, 5)
    mine.set_ready([1, 3])
    assert {mine.choose(picture, 0.0) for picture in range(60)} <= {1, 3}
    assert {mine.choose(picture, 0.0, avoid=1) for picture in range(20)} == {3}
    mine.set_ready([])
    assert mine.choose(0, 0.0) == -1
