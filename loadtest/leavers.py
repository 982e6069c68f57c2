"""Clients that give up: does the server still work for those who have left?

    python -m loadtest.leavers [--model vilt-shapes] [--quick]

400 questions at once with a far deadline, whose clients hang up after 0.6 s; right after that one question is asked.
Its time over that of a question to an idle server is the ratio; work that goes on for the leavers shows in it.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click

from loadtest import report
from loadtest.closed_loop import Make, asking, statuses
from loadtest.pictures import camera
from loadtest.server import Server, parse_settings, running
from loadtest.stats import median
from loadtest.wire import LEFT, Client, now, run

QUESTIONS = 400
LEAVE_S = 0.6
ROUNDS = 10
IDLE = 100
PICTURES = 40
# So long that nobody is refused for want of time: all that leave were let in.
PATIENCE_MS = 120_000


async def idle_s(client: Client, make: Make, count: int, first: int) -> list[float]:
    """Seconds of one question to a server at rest, a new connection each."""
    times = []
    for number in range(first, first + count):
        exchange = await client.send(make(number), fresh=True)
        if exchange.status != 200:
            raise click.ClickException(f"a question to the idle server failed: {exchange.status or exchange.error}")
        times.append(exchange.latency_s)
        await asyncio.sleep(0.02)
    return times


async def one_round(client: Client, make: Make, questions: int, first: int) -> dict[str, Any]:
    """The leavers and the question after them."""
    crowd = await asyncio.gather(*(client.leave(make(first + n), LEAVE_S) for n in range(questions)))
    asked = now()
    after = await client.send(make(first + questions), planned=asked, fresh=True)
    return {
        "left": sum(exchange.error == LEFT for exchange in crowd),
        "statuses": statuses(crowd),
        "after_status": after.status or after.error,
        "after_ms": round(after.latency_s * 1000, 2),
    }


def measure(server: Server, quick: bool) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Idle time, rounds of leavers, idle time again."""
    questions, rounds, idle = (40, 1, 5) if quick else (QUESTIONS, ROUNDS, IDLE)
    make = asking(server.host, [camera(seed) for seed in range(4 if quick else PICTURES)], timeout_ms=PATIENCE_MS)
    client = Client(server.url)

    async def idle_times(first: int) -> list[float]:
        return await idle_s(client, make, idle, first)

    run(idle_times(0))  # caches of the processor and the allocator fill
    times = run(idle_times(1_000))
    idle_median = median(times)
    rows = []
    for number in range(rounds):
        row = run(one_round(client, make, questions, 10_000 * (number + 1)))
        ratio = row["after_ms"] / 1000 / idle_median
        rows.append({"round": number + 1, **row, "ratio": round(ratio, 2)})
        server.wait_idle()
    ratios = [row["ratio"] for row in rows]
    summary = {
        "questions": questions,
        "leave_after_s": LEAVE_S,
        "idle_median_ms": round(idle_median * 1000, 2),
        "idle_max_ms": round(max(times) * 1000, 2),
        "idle_median_afterwards_ms": round(median(run(idle_times(2_000))) * 1000, 2),
        "ratio_median": median(ratios),
        "ratio_max": max(ratios),
        "after_all_answered": all(row["after_status"] == 200 for row in rows),
    }
    return summary, rows


@click.command()
@report.options
def main(model: str, quick: bool, settings: tuple[str, ...], results: Path) -> None:
    """Measure what one question waits for those whose clients have left."""
    machine = report.Machine()
    with running(model, {"VQA_MAX_IN_FLIGHT": 1024} | parse_settings(settings)) as server:
        summary, rows = measure(server, quick)
    report.write("leavers", model, results, machine=machine, summary=summary, rows=rows, quick=quick)


if __name__ == "__main__":
    main()
