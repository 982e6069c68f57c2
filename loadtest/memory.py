"""Twenty thousand pictures of every size and shape: does the process keep what it should have let go?

    python -m loadtest.memory [--model vilt-shapes] [--quick] [--requests N]

Resident memory is read after a warm-up and then every 500 requests; it should stay within 5 %. The cache is so small
that the warm-up fills it, or its filling would look like a leak; give `--setting VQA_CACHE_BYTES=…` for another.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import click

from loadtest import report
from loadtest.closed_loop import ClosedLoop, asking, closed_loop, statuses
from loadtest.pictures import any_shape
from loadtest.server import Server, parse_settings, running
from loadtest.wire import Client, Exchange, run

REQUESTS = 20_000
WARM_UP = 2_000
EVERY = 500
CLIENTS = 8
PICTURES = 600
CACHE_BYTES = 4 * 1024 * 1024


def measure(server: Server, requests: int, warm_up: int, every: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Warm up, then sample memory as requests go by."""
    pictures = [any_shape(seed) for seed in range(min(PICTURES, requests))]
    # Another order each time round, so that sizes never come in the same company.
    shuffled = [picture for seed in range(7) for picture in random.Random(seed).sample(pictures, len(pictures))]
    make = asking(server.host, shuffled, timeout_ms=60_000)

    async def ask(count: int, first: int) -> ClosedLoop:
        client = Client(server.url)
        try:
            return await closed_loop(client, make, CLIENTS, requests=count, first=first)
        finally:
            client.close()

    at_rest = server.rss_mib()
    run(ask(warm_up, 0))
    first = server.rss_mib()
    rows: list[dict[str, Any]] = [{"requests": 0, "rss_mib": round(first, 2), "per_second": None}]
    exchanges: list[Exchange] = []
    for done in range(0, requests, every):
        part = run(ask(min(every, requests - done), warm_up + done))
        exchanges += part.exchanges
        sample = {"requests": len(exchanges), "rss_mib": round(server.rss_mib(), 2)}
        rows.append({**sample, "per_second": round(part.per_second, 1)})
        for exchange in part.exchanges:
            exchange.body = b""
    samples = [row["rss_mib"] for row in rows]
    summary = {
        "requests": requests,
        "warm_up": warm_up,
        "statuses": statuses(exchanges),
        "rss_at_rest_mib": round(at_rest, 2),
        "rss_first_mib": samples[0],
        "rss_max_mib": max(samples),
        "rss_last_mib": samples[-1],
        "growth_last_percent": round((samples[-1] / samples[0] - 1) * 100, 2),
        "growth_max_percent": round((max(samples) / samples[0] - 1) * 100, 2),
        "rss_peak_between_samples_mib": round(server.peak_rss_mib(), 2),
    }
    return summary, rows


@click.command()
@report.options
@click.option("--requests", type=click.IntRange(1), help=f"After the warm-up; default {REQUESTS}.")
@click.option("--warm-up", type=click.IntRange(1), help=f"Requests before the first sample; default {WARM_UP}.")
def main(
    model: str, quick: bool, settings: tuple[str, ...], results: Path, requests: int | None, warm_up: int | None
) -> None:
    """Measure how resident memory grows over many pictures."""
    machine = report.Machine()
    count, warm, every = (600, 100, 100) if quick else (REQUESTS, WARM_UP, EVERY)
    with running(model, {"VQA_CACHE_BYTES": CACHE_BYTES} | parse_settings(settings)) as server:
        summary, rows = measure(server, requests or count, warm_up or warm, every)
    report.write("memory", model, results, machine=machine, summary=summary, rows=rows, quick=quick)


if __name__ == "__main__":
    main()
