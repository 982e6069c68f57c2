"""What is worked out on paper: costs and limits, against the same arithmetic by hand."""

from __future__ import annotations

import numpy as np
import pytest

from loadtest.simulation import cost, limits
from loadtest.simulation.experiments import replica_per_s
from loadtest.simulation.measured import Measured, SharedCache
from loadtest.simulation.theory import che_hit_ratio
from loadtest.simulation.workload import Workload, zipf

USUAL = Workload(1.0, 1.0)


def test_the_cost_of_a_million() -> None:
    # 0.11 core seconds at half load and 0.04 an hour: 220,000 s are 61.1 hours.
    assert cost.dollars(0.11, 0.5, 0.04) == pytest.approx(2.444, abs=0.001)


def test_core_seconds_of_a_question(measured: Measured) -> None:
    def core_s(**changes: float) -> float:
        return cost.core_s_a_question(measured, USUAL, **changes)  # type: ignore[arg-type]

    assert core_s() == pytest.approx(0.11)
    assert core_s(hit_ratio=0.5) == pytest.approx(0.055)
    assert core_s(a_picture=10.0) == pytest.approx(0.11)
    assert core_s(a_picture=10.0, together=True) == pytest.approx(0.101)


def test_the_table_names_every_case_of_every_model(measured: Measured) -> None:
    rows = cost.rows([measured, measured], 0.2, 0.9)
    assert len(rows) == 12
    assert all(row["at_0.02_a_vcpu_hour"] < row["at_0.04_a_vcpu_hour"] < row["at_0.08_a_vcpu_hour"] for row in rows)


def test_bandwidth(measured: Measured) -> None:
    row = next(row for row in limits.bandwidth(measured) if row["replicas"] == 1_000)
    # 0.7 x 1,000 x 2 / 0.11 questions of 100 kB: 12,727 a second, 10.18 Gbit/s.
    assert replica_per_s(measured, USUAL) == pytest.approx(2 / 0.11)
    assert row["questions_per_s"] == 12_727
    assert row["Gbit_per_s"] == pytest.approx(10.18, abs=0.01)
    assert row["NICs_of_25_Gbit"] == 1


def test_one_offs_take_places_in_a_cache() -> None:
    shares = zipf(1_000, 0.9)
    with_them = limits.hit_ratio_with_one_offs(100, shares)
    assert 0 < with_them < limits.POPULAR_SHARE * che_hit_ratio(shares, 100)
    # The same by simulating such a stream.
    from loadtest.simulation.lru import LRU

    rng = np.random.default_rng(0)
    popular, fresh = rng.choice(1_000, size=200_000, p=shares), np.arange(1_000, 201_000)
    keys = np.where(rng.random(200_000) < limits.POPULAR_SHARE, popular, fresh).tolist()
    cache, hits = LRU(100), 0
    for key in keys:
        if cache.get(key):
            hits += 1
        else:
            cache.put(key)
    assert hits / len(keys) == pytest.approx(with_them, rel=0.03)


def test_affinity_makes_one_cache_of_many_and_the_others_do_not(measured: Measured) -> None:
    rows = limits.cache(measured)
    assert len({row["no_affinity_hit_%"] for row in rows}) == 1
    assert rows[0]["affinity_hit_%"] == rows[0]["no_affinity_hit_%"]
    affinity = [row["affinity_hit_%"] for row in rows]
    assert affinity == sorted(affinity)
    assert affinity[-1] > 2 * affinity[0]


def test_one_redis_is_full_in_proportion(measured: Measured) -> None:
    rows = {row["replicas"]: row for row in limits.redis(measured, SharedCache(32 * 1024, 50_000.0, 40_000.0))}
    assert rows[10_000]["of_its_one_thread_%"] == pytest.approx(10 * rows[1_000]["of_its_one_thread_%"], rel=0.01)
    large = rows[10_000]
    assert large["of_its_one_thread_%"] == pytest.approx(
        100 * (large["gets_per_s"] / 50_000 + large["sets_per_s"] / 40_000), rel=0.01
    )


def test_operations(measured: Measured) -> None:
    row = next(row for row in limits.operations(measured) if row["replicas"] == 1_000)
    assert row["time_series"] == 100_000
    assert row["samples_per_s"] == 6_667
    # 1,000 restarts of 5 s one after the other; by quarters, four times.
    assert row["restart_one_by_one_minutes"] == pytest.approx(83.3)
    assert row["restart_by_quarters_minutes"] == pytest.approx(0.3)
    # 1,024 answers of 64 KiB in each replica's 64 MiB; 0.1 s each.
    assert row["answers_forgotten"] == 1_024_000
    assert row["core_hours_to_compute_them_again"] == pytest.approx(28.44)


def test_the_router_is_measured(measured: Measured) -> None:
    rows = limits.router(measured)
    assert [row["replicas"] for row in rows] == list(limits.SIZES)
    assert all(row["microseconds_a_question"] > 0 for row in rows)
