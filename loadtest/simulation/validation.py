"""Should anybody believe it? The simulation beside formulas, and beside the real service under the same load."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loadtest.simulation.fleet import simulate
from loadtest.simulation.lru import LRU
from loadtest.simulation.machine import Machine
from loadtest.simulation.measured import Measured
from loadtest.simulation.question import Outcome, Question
from loadtest.simulation.replica import Replica
from loadtest.simulation.spec import Spec
from loadtest.simulation.theory import che_hit_ratio, mmc_wait_s, pollaczek_khinchine
from loadtest.simulation.timeline import Timeline
from loadtest.simulation.workload import Questions, Workload, generate, zipf

Draw = Callable[[np.random.Generator, int], NDArray[np.float64]]
# The overload's, see loadtest/overload.py.
CLIENTS, CAPACITY_S, OVERLOAD_S, FACTOR, TIMEOUT_S = 24, 60.0, 60.0, 3.0, 2.0
CACHE_BYTES = 64 * 1024 * 1024


def mean_wait_s(servers: int, rate: float, draw: Draw, count: int, seed: int = 0) -> float:
    """The mean wait in a replica's queue, where questions have no deadline, no picture to decode and times from `draw`.

    Args:
        servers: cores.
        rate: questions a second, Poisson.
        draw: so many service times, in seconds.
        count: questions.
        seed: of all that is drawn.
    """
    rng = np.random.default_rng(seed)
    at, service = np.cumsum(rng.exponential(1 / rate, count)), draw(rng, count)
    numbers = np.arange(count)
    never = np.full(count, np.inf)
    questions = Questions(at, never, numbers, numbers, np.ones_like(numbers), np.zeros(count), service, service)
    # Where one inference on all cores is no quicker, each has one core.
    machine = Machine(servers, alone_s=2.0, busy_s=1.0, limit=count + 1)
    fleet = simulate(Spec(machine, 1), questions, seed)
    return (fleet.tally.sojourns_s - float(service.sum())) / count


def hit_ratio(shares: NDArray[np.float64], entries: int, count: int, seed: int = 0) -> float:
    """Of an LRU cache under `count` independent requests, after as many that fill it."""
    keys = np.random.default_rng(seed).choice(len(shares), size=2 * count, p=shares).tolist()
    cache, hits = LRU(entries), 0
    for number, key in enumerate(keys):
        if cache.get(key):
            hits += number >= count
        else:
            cache.put(key)
    return hits / count


def theory_rows(count: int) -> list[dict[str, Any]]:
    """Simulated beside the formulas' values; a service takes a second on average."""

    def exponential(rng: np.random.Generator, n: int) -> NDArray[np.float64]:
        return rng.exponential(1.0, n)

    def constant(_: np.random.Generator, n: int) -> NDArray[np.float64]:
        return np.ones(n)

    shares = zipf(10_000, 0.9)
    pairs = [
        ("M/M/1 at 0.7, mean wait", mean_wait_s(1, 0.7, exponential, count), pollaczek_khinchine(0.7, 1.0, 2.0)),
        ("M/D/1 at 0.8, mean wait", mean_wait_s(1, 0.8, constant, count), pollaczek_khinchine(0.8, 1.0, 1.0)),
        ("M/M/4 at 0.8, mean wait", mean_wait_s(4, 3.2, exponential, count), mmc_wait_s(4, 3.2, 1.0)),
        ("LRU of 500 of 10,000, hit ratio", hit_ratio(shares, 500, count), che_hit_ratio(shares, 500)),
    ]
    return [
        {"what": what, "simulated": round(got, 4), "formula": round(value, 4), "ratio": round(got / value, 4)}
        for what, got, value in pairs
    ]


def capacity_per_s(machine: Machine, questions: Iterator[Question], clients: int, seconds: float) -> float:
    """Answers a second while so many clients ask again as soon as they have their answer."""
    timeline = Timeline()
    answered = 0

    def done(_: Question, outcome: Outcome) -> None:
        nonlocal answered
        answered += outcome is Outcome.ANSWERED and timeline.now <= seconds
        if timeline.now < seconds:
            replica.offer(next(questions))

    replica = Replica(0, machine, timeline, done)

    async def in_a_task() -> None:
        for _ in range(clients):
            replica.offer(next(questions))
        while timeline.next_at < seconds:
            timeline.step()

    asyncio.run(in_a_task())
    return answered / seconds


def _patient(questions: Questions) -> Iterator[Question]:
    """With time enough that nobody is refused, as in the measured run."""
    q = questions
    never = [float("inf")] * len(q)
    columns = (q.at, q.picture, q.key, q.pixels, q.prepare_s, q.alone_s, q.busy_s)
    at, *others = (column.tolist() for column in columns)
    return map(Question, at, never, *others)


def simulated_overload(measured: Measured, seed: int = 1) -> dict[str, float]:
    """The overload run: capacity, then three times as much for a minute, all pictures and questions of their own."""
    machine = Machine.of(measured, CACHE_BYTES)
    most_per_s = 2 * machine.cores / float(measured.busy_s.mean())
    load = Workload(most_per_s, CAPACITY_S, sizes={"mixed": 1.0}, timeouts_s={TIMEOUT_S: 1.0})
    capacity = capacity_per_s(machine, _patient(generate(load, measured, seed)), CLIENTS, CAPACITY_S)
    load = Workload(FACTOR * capacity, OVERLOAD_S, sizes={"mixed": 1.0}, timeouts_s={TIMEOUT_S: 1.0})
    tally = simulate(Spec(machine, 1), generate(load, measured, seed + 1), seed).tally
    answered, late = tally.count(Outcome.ANSWERED), tally.count(Outcome.LATE)
    latencies = tally.figures()
    return {
        "capacity_per_s": round(capacity, 2),
        "goodput_of_capacity": round(tally.goodput_per_s / capacity, 4),
        "accepted_kept_share": round(answered / (answered + late), 4),
        "accepted_p50_ms": round(latencies["p50_ms"]),
        "accepted_p99_ms": round(latencies["p99_ms"]),
        "refused_share": round(tally.count(Outcome.REFUSED) / tally.asked, 4),
    }


def measured_overload(path: Path) -> dict[str, float]:
    """The same figures of the real service, from what `loadtest.overload` wrote."""
    summary = json.loads(path.read_text())["summary"]
    return {
        "capacity_per_s": summary["capacity_per_s"],
        "goodput_of_capacity": summary["goodput_of_capacity"],
        "accepted_kept_share": summary["accepted_kept_share"],
        "accepted_p50_ms": round(summary["accepted_reply_ms"]["p50"]),
        "accepted_p99_ms": round(summary["accepted_reply_ms"]["p99"]),
        "refused_share": round(summary["refused"] / (summary["refused"] + summary["accepted"]), 4),
    }
