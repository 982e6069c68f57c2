"""The scenarios: how each is measured, for a server and for the bare loop."""

from __future__ import annotations

import json
import math
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadtest.closed_loop import ClosedLoop, closed_loop, statuses
from loadtest.open_loop import open_loop, schedule
from loadtest.peers.load import ONE, OVERLOAD, PHOTOS, QUESTIONS, STEADY, TEN, Load
from loadtest.peers.running import RefusedError, Running
from loadtest.peers.tree import spent
from loadtest.pictures import stamped
from loadtest.questions import question
from loadtest.report import busy_s, own_cpu_s
from loadtest.stats import quantile
from loadtest.wire import Client, Exchange, run

SCRIPT = Path(__file__).with_name("wrk.lua")
CONNECTIONS = {STEADY: 16, ONE: 1, PHOTOS: 8, TEN: 20}
# Between two connections that wrk opens (wrk.lua says why), and what it may take longer.
STEP_S = 0.02
SPARE_S = 0.2
WRK_PATIENCE_S = 90
OVERLOAD_FACTOR = 2.0
# Of fewer replies the 99th percentile would be the longest or nearly so.
ENOUGH_FOR_P99 = 100
# Columns of every row, so that one table holds them all.
FIGURES = (
    "per_second", "p50_ms", "p99_ms", "cpu_ms_each", "pss_mib", "answered", "lost", "sent_per_s", "others_cores",
    "note",
)  # fmt: skip
Figures = dict[str, Any]


@dataclass(frozen=True)
class Lengths:
    """Seconds of each scenario, and how the load is cut.

    Attributes:
        warm_up, steady, one, photos, ten, overload: seconds; those of wrk are whole.
        lead_in: seconds under wrk's load that do not count: some first questions find a server at rest.
        deadline_s: in `overload`, how long a client waits.
    """

    warm_up: int = 2
    steady: int = 6
    one: int = 3
    photos: int = 4
    ten: int = 4
    overload: int = 8
    lead_in: float = 0.5
    deadline_s: float = 1.0


class Window:
    """What the machine did between two moments."""

    def __init__(self) -> None:
        self.server_s = self.others = 0.0


@contextmanager
def watching(running: Running) -> Iterator[Window]:
    """CPU time of a contestant, and of what is neither it nor the load generator, over a block."""
    window = Window()
    before, busy, own, started = running.cpu(), busy_s(), own_cpu_s(), time.monotonic()
    yield window
    seconds = time.monotonic() - started
    window.server_s = spent(before, running.cpu())
    window.others = max(0.0, busy_s() - busy - (own_cpu_s() - own) - window.server_s) / seconds


def measure(scenario: str, running: Running, load: Load, lengths: Lengths, first: int, steady: float) -> Figures:
    """One scenario of one contestant.

    Args:
        scenario: which.
        running: the contestant.
        load: what is asked.
        lengths: for how long.
        first: the number of the request to begin with; another each round.
        steady: questions a second in `steady` this round; NaN where it was not measured.
    """
    if running.contestant.protocol is None:
        found = _bare(scenario, running, load, lengths, first)
    elif scenario == TEN and running.protocol.ask_many is not None:
        found = _many(running, load, lengths)
    elif scenario == OVERLOAD:
        found = _overload(running, load, lengths, first, steady)
    else:
        found = _wrk(scenario, running, load, getattr(lengths, scenario), first, lengths.lead_in)
    return dict.fromkeys(FIGURES) | found


def warm_up(running: Running, load: Load, lengths: Lengths) -> None:
    """Load as in `steady`, which nobody looks at; then rest."""
    if running.contestant.protocol is None:
        _bare(STEADY, running, load, lengths, 0, seconds=lengths.warm_up)
    else:
        _wrk(STEADY, running, load, lengths.warm_up, 0, 0.0)
    running.settle()


def _wrk(scenario: str, running: Running, load: Load, seconds: int, first: int, lead_in: float) -> Figures:
    folder, count = load.requests(scenario, running.protocol, running.contestant.name)
    connections = CONNECTIONS[scenario]
    ramp = math.ceil(STEP_S * (connections - 1) + lead_in + SPARE_S)
    command = ["wrk", "-t", str(connections), "-c", str(connections), "-d", f"{seconds + ramp}s", "--timeout", "60s"]
    command += ["-s", str(SCRIPT), running.url, "--", str(folder)]
    command += [str(number) for number in (count, first, STEP_S, seconds, connections, lead_in)]
    with watching(running) as window:
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + WRK_PATIENCE_S)
        except subprocess.TimeoutExpired:
            raise RefusedError(f"wrk did not end within {seconds + WRK_PATIENCE_S} s") from None
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        raise RefusedError(f"wrk: {done.stdout[-300:]} {done.stderr[-300:]}")
    said = json.loads(lines[-1])
    lost = {key: said[key] for key in ("not_200", "connect", "read", "write", "timeout") if said[key]}
    latencies = said["latencies_s"]
    figures: Figures = _latencies(latencies) | {
        "per_second": len(latencies) / seconds,
        "answered": len(latencies),
        "lost": sum(lost.values()),
        "others_cores": window.others,
        "note": ", ".join(f"{key} {value}" for key, value in lost.items()),
    }
    if scenario == STEADY and said["replies"]:
        figures |= {"cpu_ms_each": window.server_s * 1000 / said["replies"], "pss_mib": running.pss_mib()}
    return figures


def _many(running: Running, load: Load, lengths: Lengths) -> Figures:
    """Ten questions in a request, and as many questions under way as with those who are asked one at a time.

    Counted from the moment when each connection has had its first reply until the last reply: replies come ten at a
    time, so that a window with any other ends would be a matter of luck.
    """
    ask, answers = running.protocol.ask_many, running.protocol.answers
    assert ask is not None
    assert answers is not None
    entries = load.entries(TEN)
    clients = CONNECTIONS[TEN] // QUESTIONS
    requests = [ask(*entry) for entry in entries]

    async def all_of_them(seconds: float) -> ClosedLoop:
        client = Client(running.url)
        try:
            return await closed_loop(client, lambda n: requests[n % len(requests)], clients, seconds=seconds)
        finally:
            client.close()

    # Where so many questions take about as long as the window, the window grows.
    for seconds in (lengths.ten, 2 * lengths.ten, 4 * lengths.ten):
        with watching(running) as window:
            done = run(all_of_them(seconds))
        replies = sorted(done.succeeded, key=lambda exchange: exchange.ended or 0.0)
        counted = replies[clients:]
        if len(counted) >= clients:
            break
    if not counted:
        raise RefusedError(f"{len(replies)} replies to {clients} connections within {seconds} s")
    answered = sum(_said(answers, exchange.body) for exchange in counted)
    lost = QUESTIONS * (len(done.exchanges) - clients) - answered
    return _latencies([exchange.latency_s for exchange in counted]) | {
        "per_second": answered / (_ended(counted[-1]) - _ended(replies[clients - 1])),
        "answered": answered,
        "lost": lost,
        "others_cores": window.others,
        "note": _statuses(statuses(done.exchanges)) if lost else "",
    }


def _said(answers: Callable[[bytes], list[Any]], body: bytes) -> int:
    try:
        return len(answers(body))
    except (ValueError, KeyError, TypeError, IndexError):
        return 0  # one of the ten was refused


def _ended(exchange: Exchange) -> float:
    assert exchange.ended is not None
    return exchange.ended


def _latencies(seconds: Sequence[float]) -> Figures:
    """Median, and the 99th percentile where there are enough for one."""
    return {
        "p50_ms": quantile(seconds, 0.5) * 1000 if seconds else None,
        "p99_ms": quantile(seconds, 0.99) * 1000 if len(seconds) >= ENOUGH_FOR_P99 else None,
    }


def _overload(running: Running, load: Load, lengths: Lengths, first: int, steady: float) -> Figures:
    """Twice its own capacity, open loop. `per_second` is goodput: 200s within the deadline, from when each was due."""
    entries = load.entries(STEADY)
    deadline_ms = round(lengths.deadline_s * 1000)
    rate = OVERLOAD_FACTOR * steady

    def request(number: int) -> bytes:
        # A file and a question of its own: many are under way at once.
        number += first
        return running.protocol.ask(stamped(entries[number % len(entries)][0], number), question(number), deadline_ms)

    async def flood() -> Any:
        # Who has waited as long as the deadline hangs up, as users do.
        client = Client(running.url, timeout_s=lengths.deadline_s)
        try:
            due = schedule(rate, lengths.overload, "poisson", seed=first)
            return await open_loop(lambda n, planned: client.send(request(n), planned=planned), due, lengths.overload)
        finally:
            client.close()

    with watching(running) as window:
        done = run(flood())
    end = done.started + done.seconds
    kept = [e for e in done.exchanges if e.status == 200 and e.latency_s <= lengths.deadline_s]
    inside = [e for e in kept if (e.ended or end) <= end]
    counts = statuses(done.exchanges) | ({"late sends": late} if (late := done.summary()["late"]) else {})
    return _latencies([e.latency_s for e in kept]) | {
        "per_second": len(inside) / done.seconds,
        "answered": len(kept),
        "lost": len(done.exchanges) - len(kept),
        "sent_per_s": rate,
        "others_cores": window.others,
        "note": _statuses(counts),
    }


def _bare(
    scenario: str, running: Running, load: Load, lengths: Lengths, first: int, seconds: float | None = None
) -> Figures:
    processes = range(1 if scenario == ONE else len(running.trees))
    seconds = float(seconds or getattr(lengths, scenario))
    file = load.file(PHOTOS if scenario == PHOTOS else TEN if scenario == TEN else STEADY)
    with watching(running) as window:
        for number in processes:
            running.send(number, run=file, seconds=seconds, first=first + number * 50)
        results = [running.result(number) for number in processes]
    latencies = [latency for result in results for latency in result["latencies"]]
    figures: Figures = _latencies(latencies) | {
        # Of each process until the end of its last question: none is cut in half.
        "per_second": sum(len(result["latencies"]) / result["seconds"] for result in results if result["latencies"]),
        "answered": len(latencies),
        "lost": 0,
        "others_cores": window.others,
        "note": "",
    }
    if scenario == STEADY and latencies:
        cpu_s = sum(result["cpu_s"] for result in results)
        figures |= {"cpu_ms_each": cpu_s * 1000 / len(latencies), "pss_mib": running.pss_mib()}
    return figures


def _statuses(counts: dict[str, int]) -> str:
    return ", ".join(f"{status}: {count}" for status, count in counts.items())
