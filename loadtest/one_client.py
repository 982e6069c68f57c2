"""One client alone: what do the gateway and its batching add to a question that meets no other?

    python -m loadtest.one_client [--model vilt-shapes] [--quick]

Questions over HTTP and questions in the bare loop (decode, prepare, model; same pictures, one thread each) take turns.
`timings_ms.queue` of the replies is the wait that batching added.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from loadtest import report
from loadtest.closed_loop import ClosedLoop, closed_loop
from loadtest.peers.work import Work
from loadtest.pictures import camera_mixed, stamped
from loadtest.questions import post, question
from loadtest.server import Server, model_folder, parse_settings, running
from loadtest.stats import median, quantile
from loadtest.wire import Client, now, run

ROUNDS = 20
A_ROUND = 50
PICTURES = 50


def measure(server: Server, work: Work, rounds: int, a_round: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Rounds of both in turn."""
    pictures = [camera_mixed(seed) for seed in range(min(PICTURES, a_round))]
    latencies: list[float] = []
    bare_times: list[float] = []
    stages: dict[str, list[float]] = {}
    rows = []
    for number in range(-1, rounds):
        first = (number + 1) * a_round
        done = run(_over_http(server, pictures, a_round, first))
        if len(done.succeeded) != a_round:
            raise click.ClickException(f"only {len(done.succeeded)} of {a_round} questions succeeded")
        times = [exchange.latency_s for exchange in done.succeeded]
        alone = [
            _timed(work, stamped(pictures[n % len(pictures)], n), question(n)) for n in range(first, first + a_round)
        ]
        if number < 0:
            continue  # both warm up
        for exchange in done.succeeded:
            for stage, milliseconds in json.loads(exchange.body)["timings_ms"].items():
                stages.setdefault(stage, []).append(milliseconds)
        latencies += times
        bare_times += alone
        pair = {"http_ms": round(median(times) * 1000, 3), "bare_ms": round(median(alone) * 1000, 3)}
        rows.append({"round": number + 1, **pair, "ratio": round(pair["http_ms"] / pair["bare_ms"], 3)})
    summary: dict[str, Any] = {
        "questions": len(latencies),
        "http_median_ms": round(median(latencies) * 1000, 3),
        "http_p99_ms": round(quantile(latencies, 0.99) * 1000, 3),
        "bare_median_ms": round(median(bare_times) * 1000, 3),
        "bare_p99_ms": round(quantile(bare_times, 0.99) * 1000, 3),
        "added_median_ms": round((median(latencies) - median(bare_times)) * 1000, 3),
        "ratio_of_medians": round(median(latencies) / median(bare_times), 3),
        "queue_median_ms": median(stages["queue"]),
        "queue_max_ms": max(stages["queue"]),
        "server_stage_medians_ms": {stage: round(median(values), 3) for stage, values in stages.items()},
    }
    return summary, rows


async def _over_http(server: Server, pictures: list[bytes], count: int, first: int) -> ClosedLoop:
    client = Client(server.url)
    # Made beforehand: the bare loop does not put requests together either.
    requests = {
        n: post(server.host, stamped(pictures[n % len(pictures)], n), question=question(n))
        for n in range(first, first + count)
    }
    try:
        return await closed_loop(client, requests.__getitem__, 1, requests=count, first=first)
    finally:
        client.close()


def _timed(work: Work, picture: bytes, text: str) -> float:
    started = now()
    work.ask(picture, text)
    return now() - started


@click.command()
@report.options
def main(model: str, quick: bool, settings: tuple[str, ...], results: Path) -> None:
    """Measure one client's latency beside the bare loop."""
    machine = report.Machine()
    with running(model, {"VQA_THREADS": 1, "VQA_DECODE_THREADS": 1} | parse_settings(settings)) as server:
        summary, rows = measure(server, Work(model_folder(model)), *((2, 5) if quick else (ROUNDS, A_ROUND)))
    report.write("one_client", model, results, machine=machine, summary=summary, rows=rows, quick=quick)


if __name__ == "__main__":
    main()
