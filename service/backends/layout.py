"""How the threads of the machine are laid out over inferences, chosen by measuring the model that is served.

Wide: all threads on one inference, one at a time; the least latency where inferences are long. Narrow: one thread on
each inference, as many at once as there are threads; nothing is lost on handing out parts, so mostly the best
throughput. Which wins by how much depends on the model and the machine: a small model is faster alone on one thread,
an 8-bit one gains little from a second.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

T = TypeVar("T")

# Nothing more is measured after so long. Rounds take turns over all that is measured and the best of each counts, since
# whatever else the machine does only ever adds: to the runners of one round, too, of which the quickest counts. Larger
# batches come in the second round: where inferences are so long that none is reached, none would help.
BUDGET_S = 5.0
_ROUNDS = 5
# So many inferences in one measurement: at least two, and more where they are short.
_LEAST_RUNS, _MOST_RUNS = 2, 50
_LEAST_S = 0.01
# From this length on a measurement is steady enough to say that larger batches will not help, and dear enough to ask.
_LONG_S = 0.05
_HELPS = 1.03

# What a batch costs beside its inference, in seconds: a task on the event loop, two changes of thread. Over the whole
# backend, batches of 1, 2, 4 and 8 answered 900, 1030, 1085 and 1110 questions a second of CPU for a small model.
_HANDOVER_S = 0.15e-3

# What the wide way must win in latency to be there for idle times: it takes the memory of a second session.
_WORTH_A_SESSION = 1.1
# Narrow when busy unless it is clearly the slower. Measured with nothing beside it the wide way looks better than it is
# under load, where each picture that is decoded holds up one of its threads, and the others wait for that one.
# ViLT-B/32 on two: 10.2 to 11.4 questions a second measured so, 10.3 served; narrow 11.3 to 11.9 and 11.1. On two
# slower ones wide 3.1 to 3.8 and 3.0; narrow 3.1 to 3.9 and 3.8.
_NARROW_ENOUGH = 0.9
# A smaller batch is preferred while it has this much of the best throughput: all of a batch wait for its end.
_ENOUGH = 0.95


class Way(StrEnum):
    """One way to use the threads."""

    WIDE = "wide"
    NARROW = "narrow"


@dataclass(frozen=True, slots=True)
class Trial:
    """What is measured of one way.

    Attributes:
        runners: inferences at once when it is busy.
        burst: given runners, batch and runs, each of the runners at once does so many inferences of such a batch; gives
            the seconds that one took the quickest runner.
    """

    runners: int
    burst: Callable[[int, int, int], float]


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured of one way.

    Attributes:
        runners: inferences at once when it is busy.
        latency_s: of one question with nothing beside it.
        rates: questions a second with all runners busy, by batch size, the handing over of batches included.
    """

    runners: int
    latency_s: float
    rates: Mapping[int, float]

    @property
    def best_rate(self) -> float:
        """Most questions a second."""
        return max(self.rates.values())

    @property
    def batch(self) -> int:
        """The smallest batch that has nearly that throughput."""
        return min(size for size, rate in self.rates.items() if rate >= _ENOUGH * self.best_rate)


@dataclass(frozen=True, slots=True)
class Layout:
    """Which way inferences go.

    Attributes:
        idle: when nothing waits and nothing else runs.
        busy: otherwise.
        batch: most questions of one inference, by way.
        runners: inferences at once, by way.
        patience: where the two differ, how many questions the idle way gets done while the busy way does its first:
            no more than that are better served one after another.
        cost_s: seconds of the machine for one question when busy.
        latency_s: seconds of an inference with nothing beside it.
    """

    idle: Way
    busy: Way
    batch: Mapping[Way, int]
    runners: Mapping[Way, int]
    patience: float
    cost_s: float
    latency_s: float

    @property
    def ways(self) -> tuple[Way, ...]:
        """Those that are used."""
        return tuple(dict.fromkeys((self.idle, self.busy)))

    @classmethod
    def fixed(cls, way: Way, *, batch: int, latency_s: float) -> Layout:
        """One way for everything, one inference at a time."""
        return cls(way, way, {way: batch}, {way: 1}, 0.0, latency_s, latency_s)


def choose(measured: Mapping[Way, Measured]) -> Layout:
    """The layout for what was measured."""
    idle = busy = next(iter(measured))
    if len(measured) > 1:
        wide, narrow = measured[Way.WIDE], measured[Way.NARROW]
        # Narrow when idle is narrow always: if one question gains nothing from more threads, a batch gains less than
        # as many questions side by side do.
        idle = Way.WIDE if wide.latency_s * _WORTH_A_SESSION <= narrow.latency_s else Way.NARROW
        busy = Way.NARROW if narrow.best_rate >= _NARROW_ENOUGH * wide.best_rate else idle
    return Layout(
        idle=idle,
        busy=busy,
        batch={way: measured[way].batch for way in {idle, busy}},
        runners={way: measured[way].runners for way in {idle, busy}},
        patience=measured[busy].latency_s / measured[idle].latency_s,
        cost_s=1 / measured[busy].rates[measured[busy].batch],
        latency_s=measured[idle].latency_s,
    )


def measure(
    trials: Mapping[Way, Trial],
    max_batch: int,
    *,
    clock: Callable[[], float] = time.perf_counter,
    budget_s: float = BUDGET_S,
) -> dict[Way, Measured]:
    """Latency and throughput of each way; the usual shape must have been run before.

    Args:
        trials: what can be measured.
        max_batch: the largest batch; powers of two below it are tried as well.
        clock: seconds, for the budget alone.
        budget_s: after so long only the smallest batches, where they were not measured yet, are.
    """
    sizes = [2**k for k in range(max_batch.bit_length()) if 2**k < max_batch] + [max_batch]
    alone: dict[Way, float] = {}
    # Seconds of one inference with all runners busy, by batch.
    busy: dict[Way, dict[int, float]] = {way: {} for way in trials}
    open_ways = dict.fromkeys(trials)
    started = clock()
    for number in range(_ROUNDS):
        for size in sizes if number else sizes[:1]:
            for way, trial in trials.items():
                known = busy[way]
                # The smallest batch is always measured: it is the least that a choice needs.
                if known and (clock() - started > budget_s or (way not in open_ways and size not in known)):
                    continue
                if size == sizes[0]:
                    alone[way] = min(_time(trial, 1, 1, alone.get(way)), alone.get(way, math.inf))
                if size == trial.runners == 1:
                    known[1] = alone[way]
                    continue
                known[size] = min(_time(trial, trial.runners, size, known.get(size)), known.get(size, math.inf))
                if known[size] > _LONG_S and _helps_little(known):
                    open_ways.pop(way, None)
    return {
        way: Measured(
            trial.runners, alone[way], {n: trial.runners * n / (s + _HANDOVER_S) for n, s in busy[way].items()}
        )
        for way, trial in trials.items()
    }


def at_once(pool: Executor, runners: int, work: Callable[[], T]) -> list[T]:
    """Do `work` in `runners` threads of the pool, begun at the same moment; what each gave.

    Raises:
        Exception: what one of them raised.
    """
    gate = threading.Barrier(runners)

    def begin() -> T:
        gate.wait()
        return work()

    try:
        futures = [pool.submit(begin) for _ in range(runners)]
    except RuntimeError:
        # The pool was shut down half way: those that have begun must not wait for the others.
        gate.abort()
        raise
    return [future.result() for future in futures]


def describe(measured: Mapping[Way, Measured]) -> str:
    """What was measured, in one line."""
    return "; ".join(
        f"{way} {1000 * m.latency_s:.3g} ms alone, {m.runners} at once: "
        + ", ".join(f"{rate:.4g}/s in batches of {size}" for size, rate in m.rates.items())
        for way, m in measured.items()
    )


def _time(trial: Trial, runners: int, batch: int, expected_s: float | None) -> float:
    """Seconds of one inference."""
    runs = max(_LEAST_RUNS, min(math.ceil(_LEAST_S / expected_s), _MOST_RUNS)) if expected_s else _LEAST_RUNS
    return trial.burst(runners, batch, runs)


def _helps_little(seconds: Mapping[int, float]) -> bool:
    """Whether the largest batch gets no more done than the smaller ones."""
    *smaller, largest = (size / s for size, s in sorted(seconds.items()))
    return largest < _HELPS * max(smaller, default=0.0)
