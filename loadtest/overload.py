"""Three times more than the server can do: does it still do what it can, and refuse the rest at once?

    python -m loadtest.overload [--model vilt-shapes] [--quick]

Measures capacity (closed loop), then sends three times that rate for a minute (open loop), in the same run and with
the same pictures; beside it a process of its own asks `GET /livez` every 50 ms.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from loadtest import report
from loadtest.closed_loop import ClosedLoop, Make, asking, closed_loop, statuses
from loadtest.open_loop import OpenLoop, open_loop, schedule
from loadtest.pictures import camera_mixed
from loadtest.server import ROOT, Server, parse_settings, running
from loadtest.stats import milliseconds
from loadtest.wire import Client, Exchange, run

FACTOR = 3.0
TIMEOUT_MS = 2_000
CAPACITY_CLIENTS = 24
PATIENT_MS = 60_000
PROBES_A_SECOND = 20
# The probe starts Python first; it begins and ends within the load.
PROBE_START_S = 1.0


@dataclass(frozen=True)
class Size:
    """How long, and with how many pictures."""

    capacity_s: float
    seconds: float
    pictures: int


FULL, QUICK = Size(10.0, 60.0, 300), Size(1.0, 5.0, 20)


class Probe:
    """`GET /livez` at a constant rate from a process of its own, which the load cannot delay."""

    def __init__(self) -> None:
        self.result: dict[str, Any] = {}

    @contextmanager
    def beside(self, url: str, seconds: float) -> Iterator[None]:
        """Probe for `seconds` while the block runs; the figures are there when it has ended."""
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "livez.json"
            command = [sys.executable, "-m", "loadtest.open_loop", "--url", f"{url}/livez", "--arrivals", "constant"]
            command += ["--rate", str(PROBES_A_SECOND), "--seconds", str(seconds), "--out", str(out)]
            process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                yield
                process.wait(120)
                self.result = json.loads(out.read_text())
            finally:
                if process.poll() is None:
                    process.kill()
                process.wait()


def within(exchange: Exchange, timeout_ms: int) -> bool:
    """A 200 within the deadline, which counts from when the body has arrived."""
    return exchange.status == 200 and exchange.reply_s <= timeout_ms / 1000


def figures(load: OpenLoop, capacity: float, timeout_ms: int) -> dict[str, Any]:
    """What became of the load, against what the server can do."""
    exchanges = load.exchanges
    end = load.started + load.seconds
    kept = [e for e in exchanges if within(e, timeout_ms)]
    late = [e for e in exchanges if e.status == 200 and not within(e, timeout_ms)]
    refused = [e for e in exchanges if e.status == 503]
    expired = [e for e in exchanges if e.status == 504]
    # Replies behind the end are of no second that was counted.
    goodput = sum((e.ended or end) <= end for e in kept) / load.seconds
    from_planned = sum((e.ended or end) <= end and e.latency_s <= timeout_ms / 1000 for e in kept) / load.seconds
    accepted = len(kept) + len(late) + len(expired)
    summary = load.summary()
    return {
        "planned_per_s": round(summary["planned"] / load.seconds, 1),
        "goodput_per_s": round(goodput, 2),
        "goodput_of_capacity": round(goodput / capacity, 4),
        "goodput_from_planned_of_capacity": round(from_planned / capacity, 4),
        "accepted": accepted,
        "accepted_kept": len(kept),
        "accepted_late_200": len(late),
        "accepted_504": len(expired),
        "accepted_kept_share": round(len(kept) / accepted, 4) if accepted else None,
        "accepted_reply_ms": milliseconds([e.reply_s for e in (*kept, *late, *expired)]),
        "refused": len(refused),
        "refused_with_retry_after_share": round(sum(bool(e.retry_after) for e in refused) / len(refused), 4)
        if refused
        else None,
        "refused_before_last_byte": sum(e.handed_over is None for e in refused),
        "refusal_ms": milliseconds([e.reply_s for e in refused]),
        "other": len(exchanges) - accepted - len(refused),
        "dropped": summary["dropped"],
        "late_sends": summary["late"],
        "send_delay_ms": summary["send_delay_ms"],
        "latency_ms": summary["latency_ms"],
        "statuses": summary["statuses"],
    }


def by_second(load: OpenLoop, timeout_ms: int) -> list[dict[str, Any]]:
    """The run second by second, by when requests were due."""
    rows = []
    for second in range(int(load.seconds)):
        due = [e for e in load.exchanges if second <= e.planned - load.started < second + 1]
        rows.append(
            {
                "second": second,
                "sent": len(due),
                "kept": sum(within(e, timeout_ms) for e in due),
                "refused": sum(e.status == 503 for e in due),
                "expired": sum(e.status == 504 for e in due),
                "refusal_max_ms": round(max((e.reply_s for e in due if e.status == 503), default=0.0) * 1000, 1),
            }
        )
    return rows


def measure(server: Server, size: Size, timeout_ms: int, factor: float) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Capacity, the idle probe, the overload and the probe beside it."""
    pictures = [camera_mixed(seed) for seed in range(size.pictures)]
    make = asking(server.host, pictures, timeout_ms=timeout_ms)
    # With time enough that nobody is refused: those who come back at once after a refusal would eat up the capacity.
    patient = asking(server.host, pictures, timeout_ms=PATIENT_MS)
    run(_capacity(server, patient, size.capacity_s / 4, first=0))  # warm
    capacity_cpu = server.cpu_s()
    capacity = run(_capacity(server, patient, size.capacity_s, first=1_000_000))
    capacity_cpu = (server.cpu_s() - capacity_cpu) / size.capacity_s
    if not capacity.succeeded:
        raise click.ClickException(f"no question succeeded: {statuses(capacity.exchanges)}")
    server.wait_idle()
    idle, busy = Probe(), Probe()
    with idle.beside(server.url, size.seconds / 5):
        pass
    with busy.beside(server.url, size.seconds - PROBE_START_S):
        server_cpu, own_cpu = server.cpu_s(), time.process_time()
        load = run(_load(server, make, capacity.per_second * factor, size.seconds))
        server_cpu, own_cpu = server.cpu_s() - server_cpu, time.process_time() - own_cpu
    summary: dict[str, Any] = {
        "capacity_per_s": round(capacity.per_second, 2),
        "capacity_clients": CAPACITY_CLIENTS,
        "capacity_statuses": statuses(capacity.exchanges),
        "capacity_server_cores": round(capacity_cpu, 3),
        "picture_kb": _sizes(pictures),
        "timeout_ms": timeout_ms,
        "seconds": size.seconds,
        **figures(load, capacity.per_second, timeout_ms),
        "livez_ms": busy.result["latency_ms"],
        "livez_idle_ms": idle.result["latency_ms"],
        "server_cores": round(server_cpu / size.seconds, 3),
        "generator_cores": round(own_cpu / size.seconds, 3),
    }
    return summary, by_second(load, timeout_ms)


async def _capacity(server: Server, make: Make, seconds: float, first: int) -> ClosedLoop:
    client = Client(server.url)
    try:
        return await closed_loop(client, make, CAPACITY_CLIENTS, seconds=seconds, first=first)
    finally:
        client.close()


async def _load(server: Server, make: Make, rate: float, seconds: float) -> OpenLoop:
    client = Client(server.url)
    try:
        due = schedule(rate, seconds, "poisson", seed=1)
        return await open_loop(
            lambda number, planned: client.send(make(2_000_000 + number), planned=planned), due, seconds
        )
    finally:
        client.close()


def _sizes(pictures: Sequence[bytes]) -> dict[str, float]:
    sizes = sorted(len(picture) / 1000 for picture in pictures)
    return {"least": round(sizes[0], 1), "median": round(sizes[len(sizes) // 2], 1), "most": round(sizes[-1], 1)}


@click.command()
@report.options
@click.option("--timeout-ms", type=click.IntRange(1), default=TIMEOUT_MS, show_default=True, help="Of each question.")
@click.option("--factor", type=float, default=FACTOR, show_default=True, help="Load over capacity.")
def main(model: str, quick: bool, settings: tuple[str, ...], results: Path, timeout_ms: int, factor: float) -> None:
    """Measure goodput, refusals and liveness at three times the capacity."""
    machine = report.Machine()
    with running(model, parse_settings(settings)) as server:
        summary, rows = measure(server, QUICK if quick else FULL, timeout_ms, factor)
    report.write("overload", model, results, machine=machine, summary=summary, rows=rows, quick=quick)


if __name__ == "__main__":
    main()
