"""The formulas, against values worked out by hand, and the simulation, against the formulas."""

from __future__ import annotations

import numpy as np
import pytest

from loadtest.simulation.theory import che_hit_ratio, erlang_c, mmc_wait_s, pollaczek_khinchine
from loadtest.simulation.validation import hit_ratio, mean_wait_s
from loadtest.simulation.workload import zipf

COUNT = 100_000


def test_pollaczek_khinchine_by_hand() -> None:
    # M/M/1: rho / (mu - lambda) = 0.5 / (1 - 0.5); M/D/1 waits half as long.
    assert pollaczek_khinchine(0.5, 1.0, 2.0) == pytest.approx(1.0)
    assert pollaczek_khinchine(0.5, 1.0, 1.0) == pytest.approx(0.5)
    with pytest.raises(ValueError, match="steady state"):
        pollaczek_khinchine(1.0, 1.0, 1.0)


def test_erlang_c_by_hand() -> None:
    # One server: whoever comes while it is busy waits. Two servers, one Erlang: (1/2 x 2) / (1 + 1 + 1) = 1/3.
    assert erlang_c(1, 0.7) == pytest.approx(0.7)
    assert erlang_c(2, 1.0) == pytest.approx(1 / 3)
    assert mmc_wait_s(2, 1.0, 1.0) == pytest.approx(1 / 3)
    assert mmc_wait_s(1, 0.5, 1.0) == pytest.approx(pollaczek_khinchine(0.5, 1.0, 2.0))
    with pytest.raises(ValueError, match="steady state"):
        erlang_c(2, 2.0)


def test_che_of_keys_that_are_asked_alike() -> None:
    """What is cached is any part of them, so the ratio is the part."""
    assert che_hit_ratio(np.full(1000, 0.001), 250) == pytest.approx(0.25)
    assert che_hit_ratio(np.full(4, 0.25), 4) == 1.0
    assert che_hit_ratio(np.full(4, 0.25), 0) == 0.0


@pytest.mark.parametrize(
    ("servers", "rate", "kind", "formula"),
    [
        (1, 0.7, "exponential", pollaczek_khinchine(0.7, 1.0, 2.0)),
        (1, 0.7, "constant", pollaczek_khinchine(0.7, 1.0, 1.0)),
        (3, 2.1, "exponential", mmc_wait_s(3, 2.1, 1.0)),
    ],
)
def test_a_replica_waits_as_the_formulas_say(servers: int, rate: float, kind: str, formula: float) -> None:
    def draw(rng: np.random.Generator, count: int) -> np.ndarray:
        return rng.exponential(1.0, count) if kind == "exponential" else np.ones(count)

    assert mean_wait_s(servers, rate, draw, COUNT, seed=5) == pytest.approx(formula, rel=0.05)


@pytest.mark.parametrize("entries", [50, 500, 5_000])
def test_the_cache_hits_as_che_says(entries: int) -> None:
    shares = zipf(20_000, 0.9)
    assert hit_ratio(shares, entries, COUNT) == pytest.approx(che_hit_ratio(shares, entries), rel=0.03)
