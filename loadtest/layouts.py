"""Settings side by side: throughput and latency of each, by the number of clients.

    python -m loadtest.layouts --variant one:VQA_THREADS=1,VQA_DECODE_THREADS=1 --variant two:VQA_THREADS=2 [--quick]

Every variant is a server of its own; they take turns within each round, so that what the machine does besides hits all
of them alike. The table holds the medians of the rounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from loadtest import report
from loadtest.closed_loop import ClosedLoop, Make, asking, closed_loop, statuses
from loadtest.pictures import camera_mixed
from loadtest.server import Server, parse_settings, running
from loadtest.stats import median, quantile
from loadtest.wire import Client, run

CLIENTS = (1, 2, 4, 8, 16, 32)
ROUNDS = 3
SECONDS = 3.0
DEFAULT_VARIANTS = (
    "default",
    "one-thread:VQA_THREADS=1,VQA_DECODE_THREADS=1",
    "no-batching:VQA_MAX_BATCH_SIZE=1",
    "two-workers:VQA_WORKERS=2",
)


def parse_variant(text: str) -> tuple[str, dict[str, object]]:
    """`NAME:VQA_X=1,VQA_Y=2` as a name and settings; the name alone is the defaults."""
    name, _, pairs = text.partition(":")
    return name, parse_settings(tuple(pair for pair in pairs.split(",") if pair))


def one_run(server: Server, make: Make, clients: int, seconds: float, first: int) -> dict[str, Any]:
    """One variant with so many clients."""
    cpu = server.cpu_s()
    done = run(_ask(server, make, clients, seconds, first))
    cpu = server.cpu_s() - cpu
    latencies = [exchange.latency_s for exchange in done.succeeded]
    return {
        "per_second": round(done.per_second, 2),
        "p50_ms": round(quantile(latencies, 0.50) * 1000, 2),
        "p99_ms": round(quantile(latencies, 0.99) * 1000, 2),
        "cpu_ms_each": round(cpu * 1000 / max(1, len(done.exchanges)), 3),
        "statuses": statuses(done.exchanges),
    }


def measure(
    servers: Mapping[str, Server], clients: tuple[int, ...], rounds: int, seconds: float, pictures: int
) -> list[dict[str, Any]]:
    """Every variant with every number of clients, `rounds` times in turn; the first round is preceded by a warm-up."""
    made = [camera_mixed(seed) for seed in range(pictures)]
    makes = {name: asking(server.host, made, timeout_ms=60_000) for name, server in servers.items()}
    for name, server in servers.items():
        one_run(server, makes[name], max(clients), seconds / 2, 0)
    rows = []
    first = 0
    for number in range(rounds):
        for count in clients:
            for name, server in servers.items():
                first += 1_000_000
                measured = one_run(server, makes[name], count, seconds, first)
                rows.append({"variant": name, "clients": count, "round": number + 1, **measured})
    return rows


def medians(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Per variant and number of clients, the medians of the rounds."""
    found: dict[str, Any] = {}
    for variant, clients in dict.fromkeys((row["variant"], row["clients"]) for row in rows):
        same = [row for row in rows if (row["variant"], row["clients"]) == (variant, clients)]
        keys = ("per_second", "p50_ms", "p99_ms", "cpu_ms_each")
        found[f"{variant} x{clients}"] = {key: median([row[key] for row in same]) for key in keys}
    return found


async def _ask(server: Server, make: Make, clients: int, seconds: float, first: int) -> ClosedLoop:
    client = Client(server.url)
    try:
        return await closed_loop(client, make, clients, seconds=seconds, first=first)
    finally:
        client.close()


@click.command()
@report.options
@click.option("--variant", "variants", multiple=True, metavar="NAME:VQA_X=1,…", help="A server to compare; repeatable.")
@click.option("--rounds", type=click.IntRange(1), help=f"Default {ROUNDS}.")
@click.option("--seconds", type=click.FloatRange(min=0, min_open=True), help=f"Of one run; default {SECONDS:g}.")
def main(
    model: str,
    quick: bool,
    settings: tuple[str, ...],
    results: Path,
    variants: tuple[str, ...],
    rounds: int | None,
    seconds: float | None,
) -> None:
    """Measure throughput and latency of several settings side by side."""
    machine = report.Machine()
    common = parse_settings(settings)
    with ExitStack() as stack:
        servers = {}
        for text in variants or DEFAULT_VARIANTS:
            name, own = parse_variant(text)
            servers[name] = stack.enter_context(running(model, common | own))
        counts, turns, length, pictures = ((1, 4), 1, 0.5, 10) if quick else (CLIENTS, ROUNDS, SECONDS, 100)
        rows = measure(servers, counts, rounds or turns, seconds or length, pictures)
    report.write("layouts", model, results, machine=machine, summary=medians(rows), rows=rows, quick=quick)


if __name__ == "__main__":
    main()
