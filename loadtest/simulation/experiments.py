"""The simulated experiments: functions of plain values that give a row of a table, so that they run side by side."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from loadtest.simulation.autoscaling import Scaling, Signal
from loadtest.simulation.fleet import simulate
from loadtest.simulation.machine import Machine
from loadtest.simulation.measured import Measured
from loadtest.simulation.question import Outcome
from loadtest.simulation.routing import Policy
from loadtest.simulation.spec import Spec
from loadtest.simulation.validation import CACHE_BYTES
from loadtest.simulation.workload import Crowd, Workload, generate

Row = dict[str, Any]
# What everybody asks about, in the routing experiments: half of the sessions, 20,000 pictures, five questions each.
POPULAR: dict[str, Any] = {"popular_share": 0.5, "pictures": 20_000, "exponent": 0.9, "common": 5}
# The point that all signals' targets are taken at, so that none is set more carefully than another.
TARGET_LOAD = 0.7
FLEET = 20


@dataclass(frozen=True)
class Job:
    """One run: `work(**arguments)` gives a row of the table."""

    table: str
    work: Callable[..., Row]
    arguments: Mapping[str, Any]

    def __call__(self) -> Row:
        return self.work(**self.arguments)


def core_s(measured: Measured, workload: Workload) -> float:
    """Mean seconds of a core for one question that no cache answers and that shares no picture."""
    shares = sum(workload.sizes.values())
    prepare = sum(share / shares * float(measured.prepare_s[size].mean()) for size, share in workload.sizes.items())
    return prepare + float(measured.busy_s.mean()) + measured.front_s


def replica_per_s(measured: Measured, workload: Workload, cores: int | None = None) -> float:
    """Questions a second that a replica can do at most, if no cache answers any."""
    return (cores or measured.cores) / core_s(measured, workload)


def rounded(figures: Mapping[str, Any], *names: str) -> Row:
    """Some figures, as they are told: shares in percent."""
    told: Row = {}
    for name in names:
        value = figures[name]
        if name in ("in_time", "refused", "late", "lost", "hit_ratio"):
            told[f"{name}_%"] = round(100 * value, 2)
        else:
            told[name] = round(value, 1)
    return told


def scale(measured: Measured, replicas: int, load: float, questions: int, seed: int) -> Row:
    """A fleet of that size at that load: no popular pictures, no cache, power of two choices."""
    workload = Workload(1.0, 1.0)
    per_s = load * replicas * replica_per_s(measured, workload)
    workload = dataclasses.replace(workload, per_s=per_s, seconds=questions / per_s)
    spec = Spec(Machine.of(measured, 0), replicas, warm_s=min(5.0, workload.seconds / 4))
    tally = simulate(spec, generate(workload, measured, seed), seed).tally
    return {"replicas": replicas, "load_%": round(100 * load), "questions": tally.asked} | rounded(
        tally.figures(), "in_time", "refused", "p50_ms", "p99_ms"
    )


def routing(
    measured: Measured, policy: Policy, load: float, questions: int, seed: int, trouble: str = "none", **changes: Any
) -> Row:
    """A policy at a load (of what the fleet could do without a cache), with popular pictures."""
    workload = Workload(1.0, 1.0, questions=2.0, think_s=15.0, **POPULAR)
    per_s = load * FLEET * replica_per_s(measured, workload)
    workload = dataclasses.replace(workload, per_s=per_s, seconds=questions / per_s)
    spec = Spec(Machine.of(measured, CACHE_BYTES), FLEET, policy, start_s=measured.start_s, warm_s=workload.seconds / 3)
    fleet = simulate(dataclasses.replace(spec, **changes), generate(workload, measured, seed), seed)
    row: Row = {"policy": str(policy), "load_%": round(100 * load), "trouble": trouble, "questions": fleet.tally.asked}
    return row | rounded(
        fleet.tally.figures(), "in_time", "refused", "late", "lost", "hit_ratio", "goodput_per_s", "p50_ms", "p99_ms"
    )


def rolling(measured: Measured, policy: Policy, seconds: float, seed: int, restart: bool) -> Row:
    """The hit ratio around a rolling restart of all replicas in the middle of the run, which takes two minutes."""
    workload = Workload(1.0, 1.0, **POPULAR)
    per_s = 0.6 * FLEET * replica_per_s(measured, workload)
    workload = dataclasses.replace(workload, per_s=per_s, seconds=seconds)
    spec = Spec(
        Machine.of(measured, CACHE_BYTES),
        FLEET,
        policy,
        start_s=measured.start_s,
        restart_from_s=seconds / 2 if restart else None,
        restart_every_s=120 / FLEET,
    )
    tally = simulate(spec, generate(workload, measured, seed), seed).tally
    ratio = tally.hits_by_minute / tally.by_minute.sum(axis=1).clip(1)
    middle = int(seconds / 120)
    after = ratio[middle:-1]
    return {
        "policy": str(policy),
        "restart": "rolling, 2 min" if restart else "none",
        "hit_%_minute_before": round(100 * float(ratio[middle - 1]), 1),
        "hit_%_worst_minute_after": round(100 * float(after.min()), 1),
        "hit_%_last_minute": round(100 * float(ratio[-2]), 1),
        "minutes_after": len(after),
        "in_time_%": rounded(tally.figures(), "in_time")["in_time_%"],
        "questions": tally.asked,
    }


def targets_at_load(measured: Measured, workload: Workload, seed: int) -> dict[Signal, float]:
    """What each signal is in a fleet of fixed size at the target load: the autoscalers' targets."""
    replicas = 5
    per_s = TARGET_LOAD * replicas * replica_per_s(measured, workload)
    steady = dataclasses.replace(workload, per_s=per_s, swing=0.0, crowd=None)
    fleet = simulate(Spec(Machine.of(measured, 0), replicas), generate(steady, measured, seed), seed)
    seconds = steady.seconds
    found = fleet.replicas
    return {
        Signal.CPU: sum(r.busy_core_s for r in found) / (seconds * replicas * measured.cores),
        Signal.IN_FLIGHT: sum(r.in_flight_s for r in found) / (seconds * replicas),
        Signal.WAIT: sum(r.waits_s for r in found) / sum(r.waits for r in found),
        Signal.REQUESTS: sum(r.asked for r in found) / (seconds * replicas),
    }


def day(measured: Measured, replicas: float, heavy: bool, quick: bool) -> Workload:
    """A day in an hour and a half, whose mean keeps `replicas` at the target load, with a flash crowd near its peak.

    Args:
        measured: what a question costs.
        replicas: on average.
        heavy: the crowd's pictures have 12 megapixels.
        quick: a few minutes of it.
    """
    seconds = 300.0 if quick else 5400.0
    usual = Workload(1.0, seconds)
    per_s = TARGET_LOAD * replicas * replica_per_s(measured, usual)
    crowd = Crowd(0.6 * seconds, seconds / 9, 3.0, size="4032x3024" if heavy else None)
    return dataclasses.replace(usual, per_s=per_s, swing=0.6, day_s=seconds, crowd=crowd)


def autoscaled(
    measured: Measured,
    workload: Workload,
    targets: Mapping[Signal, float],
    replicas: int,
    seed: int,
    name: str,
    crowd_of: str,
) -> Row:
    """A day with an autoscaler, or, without targets, with so many replicas all the time."""
    scaling = Scaling(targets, least=2, most=100) if targets else None
    spec = Spec(Machine.of(measured, 0), replicas, start_s=measured.start_s, scaling=scaling)
    fleet = simulate(spec, generate(workload, measured, seed), seed)
    crowd = workload.crowd
    assert crowd is not None
    begin, end = int(crowd.start_s / 60), int((crowd.start_s + crowd.seconds) / 60) + 1
    minutes = fleet.tally.by_minute
    inside = minutes[begin:end]
    outside = minutes.sum(axis=0) - inside.sum(axis=0)
    answered = inside[:, Outcome.ANSWERED] / inside.sum(axis=1).clip(1)
    return {
        "signal": name,
        "crowd": crowd_of,
        "target": ", ".join(f"{target:.3g}" for target in targets.values()),
        "in_time_%": round(100 * fleet.tally.figures()["in_time"], 2),
        "outside_the_crowd_%": round(100 * float(outside[Outcome.ANSWERED] / outside.sum()), 3),
        "in_the_crowd_%": round(100 * float(inside[:, Outcome.ANSWERED].sum() / inside.sum()), 1),
        "worst_minute_%": round(100 * float(answered.min()), 1),
        "late_%": round(100 * fleet.tally.figures()["late"], 3),
        "replica_hours": round(fleet.replica_s / 3600, 1),
        "most_replicas": fleet.most_replicas,
        "questions": fleet.tally.asked,
    }
