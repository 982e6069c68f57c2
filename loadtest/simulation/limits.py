"""Where the design breaks as it grows, on paper: each a formula over measured figures, for 1 to 10,000 replicas."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loadtest.simulation import rendezvous
from loadtest.simulation.experiments import TARGET_LOAD, replica_per_s
from loadtest.simulation.measured import Measured, SharedCache
from loadtest.simulation.theory import che_hit_ratio
from loadtest.simulation.validation import CACHE_BYTES
from loadtest.simulation.workload import Workload, zipf

Row = dict[str, Any]
SIZES = (1, 10, 100, 1_000, 10_000)
# Assumptions, stated on the page.
NIC_GBIT = 25.0
SCRAPE_S = 15.0
MTBF_DAYS = 30.0
POPULAR_SHARE, POPULAR_KEYS, EXPONENT = 0.5, 1_000_000, 0.9
SHARED_BYTES = 64e9
# A rolling restart with a quarter of the replicas at once, as Kubernetes' default is.
SURGE = 0.25
_TRIES = 300


def questions_per_s(measured: Measured, replicas: int) -> float:
    """What a fleet at the target load is asked, if no cache answers any."""
    return TARGET_LOAD * replicas * replica_per_s(measured, Workload(1.0, 1.0))


def picture_bytes(measured: Measured) -> float:
    """Mean size of a picture's file in the usual mix."""
    sizes = Workload(1.0, 1.0).sizes
    return sum(share * measured.picture_bytes[size] for size, share in sizes.items()) / sum(sizes.values())


def bandwidth(measured: Measured) -> list[Row]:
    """Bytes of pictures through one gateway."""
    size, found = picture_bytes(measured), []
    for replicas in SIZES:
        per_s = questions_per_s(measured, replicas)
        gbit = per_s * size * 8 / 1e9
        found.append(
            {
                "replicas": replicas,
                "questions_per_s": round(per_s),
                "picture_kB": round(size / 1000),
                "Gbit_per_s": round(gbit, 2),
                f"NICs_of_{NIC_GBIT:g}_Gbit": math.ceil(gbit / NIC_GBIT),
            }
        )
    return found


def cache(measured: Measured) -> list[Row]:
    """Hit ratio of all questions by Che's approximation: memory of each replica, alone, with affinity, and shared."""
    shares = zipf(POPULAR_KEYS, EXPONENT)
    each = CACHE_BYTES // measured.entry_bytes
    shared = POPULAR_SHARE * che_hit_ratio(shares, SHARED_BYTES / measured.shared_bytes)
    found = []
    for replicas in SIZES:
        # What is asked once passes through the same cache, and takes places of it.
        alone, affine = (hit_ratio_with_one_offs(entries, shares) for entries in (each, each * replicas))
        misses_per_s = questions_per_s(measured, replicas) / replicas * (1 - alone)
        found.append(
            {
                "replicas": replicas,
                "memory_GB": round(replicas * CACHE_BYTES / 1e9, 2),
                "no_affinity_hit_%": round(100 * alone, 1),
                "affinity_hit_%": round(100 * affine, 1),
                f"shared_{SHARED_BYTES / 1e9:g}_GB_hit_%": round(100 * shared, 1),
                "seconds_to_fill": round(each / misses_per_s),
            }
        )
    return found


def hit_ratio_with_one_offs(entries: float, shares: NDArray[np.float64]) -> float:
    """Of all questions, where `POPULAR_SHARE` of them follow `shares` and the others come once.

    Che's approximation with a stream that never hits: in t requests it takes (1 - POPULAR_SHARE) t places.
    """
    popular = POPULAR_SHARE * shares

    def places(requests: float) -> float:
        return float(-np.expm1(-popular * requests).sum()) + (1 - POPULAR_SHARE) * requests

    low, high = 0.0, float(entries)
    while places(high) < entries:
        low, high = high, 2 * high
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if places(middle) < entries else (low, middle)
    return float(-(popular * np.expm1(-popular * high)).sum())


def redis(measured: Measured, limit: SharedCache) -> list[Row]:
    """One shared Redis behind all memory caches: each miss is a GET, each answer that is computed a SET."""
    shares = zipf(POPULAR_KEYS, EXPONENT)
    memory = hit_ratio_with_one_offs(CACHE_BYTES // measured.entry_bytes, shares)
    shared = max(0.0, POPULAR_SHARE * che_hit_ratio(shares, SHARED_BYTES / measured.shared_bytes) - memory)
    found = []
    for replicas in SIZES:
        per_s = questions_per_s(measured, replicas)
        gets, sets = per_s * (1 - memory), per_s * (1 - memory - shared)
        # A GET that misses carries nothing back.
        carried = per_s * shared + sets
        found.append(
            {
                "replicas": replicas,
                "gets_per_s": round(gets),
                "sets_per_s": round(sets),
                "Gbit_per_s": round(carried * measured.shared_bytes * 8 / 1e9, 2),
                "of_its_one_thread_%": round(100 * (gets / limit.gets_per_s + sets / limit.sets_per_s), 1),
            }
        )
    return found


def router(measured: Measured) -> list[Row]:
    """Rendezvous hashing looks at every replica for each question: measured here, in this process."""
    rng, found = np.random.default_rng(0), []
    for replicas in SIZES:
        seeds, load = rendezvous.seeds(replicas), rng.integers(0, 3, replicas)
        started = time.thread_time()
        for picture in range(_TRIES):
            rendezvous.choose(picture, seeds, load, int(load.sum()))
        micros = (time.thread_time() - started) / _TRIES * 1e6
        per_s = questions_per_s(measured, replicas)
        found.append(
            {
                "replicas": replicas,
                "microseconds_a_question": round(micros, 1),
                "questions_per_s": round(per_s),
                "router_cores": round(per_s * micros / 1e6, 2),
            }
        )
    return found


def operations(measured: Measured) -> list[Row]:
    """What people and Prometheus have to live with: time series, crashes, restarts."""
    entries = CACHE_BYTES // measured.entry_bytes
    refill_s = entries * float(measured.busy_s.mean())
    return [
        {
            "replicas": replicas,
            "time_series": replicas * measured.series,
            "samples_per_s": round(replicas * measured.series / SCRAPE_S),
            "crashes_a_day": round(replicas / MTBF_DAYS, 2),
            "restart_one_by_one_minutes": round(replicas * measured.start_s / 60, 1),
            "restart_by_quarters_minutes": round(
                math.ceil(replicas / max(1, int(SURGE * replicas))) * measured.start_s / 60, 1
            ),
            "answers_forgotten": replicas * entries,
            "core_hours_to_compute_them_again": round(replicas * refill_s / 3600, 2),
        }
        for replicas in SIZES
    ]
