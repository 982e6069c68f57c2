"""Which runs there are, in full and in miniature."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from typing import Any

from loadtest.simulation.autoscaling import Signal
from loadtest.simulation.experiments import (
    FLEET,
    TARGET_LOAD,
    Job,
    Row,
    autoscaled,
    day,
    replica_per_s,
    rolling,
    routing,
    scale,
    targets_at_load,
)
from loadtest.simulation.measured import Measured
from loadtest.simulation.routing import Policy
from loadtest.simulation.spec import Failures
from loadtest.simulation.validation import theory_rows
from loadtest.simulation.workload import Workload
from service.backends.cpus import available_cpus

# Replicas that the day keeps busy on average.
DAY_REPLICAS = 3
# Loads below and above what the fleet can do without a cache.
BELOW, ABOVE = 0.8, 1.4
_SCALES = {
    1: (20_000, (0.7, 0.8, 0.9, 0.95)),
    10: (40_000, (0.8, 0.9, 0.95)),
    100: (150_000, (0.9, 0.95)),
    1_000: (600_000, (0.9,)),
}


def scale_jobs(measured: Measured, quick: bool, seed: int) -> list[Job]:
    """Sizes and loads, the largest first."""
    divisor = 100 if quick else 1
    return [
        Job(
            "scale", scale, {"measured": measured, "replicas": n, "load": load, "questions": c // divisor, "seed": seed}
        )
        for n, (c, loads) in reversed(_SCALES.items())
        for load in loads
    ]


def routing_jobs(measured: Measured, quick: bool, seed: int) -> list[Job]:
    """Policies below and above capacity, then in trouble."""
    crashes = Failures(mtbf_s=900.0, restart_s=30.0 + measured.start_s)
    stale, gray = {"stale_s": 1.0}, {"slow": FLEET // 10, "slowdown": 2.0}
    cases: list[tuple[Policy, float, str, dict[str, Any]]] = [
        *((policy, load, "none", {}) for load in (BELOW, ABOVE) for policy in Policy),
        (Policy.LEAST, ABOVE, "refusals tried twice", {"retry_refused": True}),
        *((policy, BELOW, "loads 1 s old", stale) for policy in (Policy.LEAST, Policy.TWO_CHOICES, Policy.AFFINITY)),
        *((policy, 0.9, "a tenth twice as slow", gray) for policy in Policy),
        *((policy, BELOW, "crashes, no retry", {"failures": replace(crashes, retry=False)}) for policy in Policy),
        *(
            (policy, BELOW, "crashes, one retry", {"failures": crashes})
            for policy in (Policy.TWO_CHOICES, Policy.AFFINITY)
        ),
    ]
    common = {"measured": measured, "questions": 2_000 if quick else 60_000, "seed": seed}
    return [
        Job("routing", routing, common | {"policy": policy, "load": load, "trouble": trouble} | changes)
        for policy, load, trouble, changes in cases
    ]


def rolling_jobs(measured: Measured, quick: bool, seed: int) -> list[Job]:
    """With and without the restart, with and without affinity."""
    common = {"measured": measured, "seconds": 150.0 if quick else 600.0, "seed": seed}
    cases = ((Policy.AFFINITY, False), (Policy.AFFINITY, True), (Policy.TWO_CHOICES, True))
    return [Job("rolling", rolling, common | {"policy": policy, "restart": restart}) for policy, restart in cases]


def scaling_jobs(measured: Measured, quick: bool, seed: int) -> list[Job]:
    """Each signal through the day, with two kinds of crowd; and fleets of a fixed size."""
    jobs = []
    workload = day(measured, DAY_REPLICAS, False, quick)
    targets = targets_at_load(measured, replace(workload, seconds=100.0 if quick else 1200.0), seed)
    cases = {str(signal): {signal: targets[signal]} for signal in Signal}
    # The waits that a deadline allows, in place of those at the target load.
    cases[f"{Signal.WAIT}: a quarter of the deadline"] = {Signal.WAIT: min(Workload(1.0, 1.0).timeouts_s) / 4}
    both = (Signal.REQUESTS, Signal.CPU)
    cases[" and ".join(both)] = {signal: targets[signal] for signal in both}
    for heavy, crowd in ((False, "usual pictures"), (True, "12-megapixel pictures")):
        workload = day(measured, DAY_REPLICAS, heavy, quick)
        per_s = TARGET_LOAD * replica_per_s(measured, replace(workload, crowd=None))
        common = {"measured": measured, "workload": workload, "seed": seed, "crowd_of": crowd}
        start = max(2, round(workload.rate(0.0) / per_s))
        jobs += [
            Job("autoscaling", autoscaled, common | {"name": name, "targets": found, "replicas": start})
            for name, found in cases.items()
        ]
        if not heavy:
            assert workload.crowd is not None
            for what, rate in (
                ("the day's peak", workload.per_s * (1 + workload.swing)),
                ("the crowd", workload.rate(workload.crowd.start_s)),
            ):
                fixed = max(2, round(rate / per_s))
                arguments = {"name": f"none: {fixed} for {what}", "targets": {}, "replicas": fixed}
                jobs.append(Job("autoscaling", autoscaled, common | arguments))
    return jobs


def all_jobs(measured: Measured, quick: bool, seed: int) -> list[Job]:
    """Everything that is simulated of one model, the longest first."""
    makers = (scaling_jobs, scale_jobs, rolling_jobs, routing_jobs)
    return [job for maker in makers for job in maker(measured, quick, seed)]


def run(jobs: Sequence[Job], quick: bool) -> dict[str, list[Row]]:
    """Run jobs on all cores: tables with their rows in the jobs' order. Which process runs what changes nothing."""
    # Fresh interpreters: the threads of ONNX Runtime, which reports import, survive no fork.
    with ProcessPoolExecutor(available_cpus(), mp_context=get_context("spawn")) as pool:
        theory = pool.submit(theory_rows, 5_000 if quick else 200_000)
        futures = [pool.submit(job) for job in jobs]
        tables: dict[str, list[Row]] = {"theory": theory.result()}
        for job, future in zip(jobs, futures, strict=True):
            tables.setdefault(job.table, []).append(future.result())
    return tables
