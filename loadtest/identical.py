"""A thousand people ask the same question at the same moment: how many inferences is that?

    python -m loadtest.identical [--model vilt-shapes] [--quick]

Counted through `vqa_batch_size_sum`: the questions that went through the model. One is enough.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import click

from loadtest import report
from loadtest.closed_loop import statuses
from loadtest.pictures import camera
from loadtest.questions import post, question
from loadtest.server import Server, parse_settings, running
from loadtest.stats import milliseconds
from loadtest.wire import Client, Exchange, run

QUESTIONS = 1_000
ROUNDS = 5


async def ask_at_once(url: str, request: bytes, count: int) -> list[Exchange]:
    """The same request `count` times, on connections that were opened beforehand."""
    client = Client(url)
    try:
        await client.open(count)
        return list(await asyncio.gather(*(client.send(request) for _ in range(count))))
    finally:
        client.close()


def measure(server: Server, questions: int, rounds: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Rounds with a picture of their own each."""
    rows: list[dict[str, Any]] = []
    for number in range(rounds):
        request = post(server.host, camera(number, 320, 240), question=question(number), timeout_ms=60_000)
        before = server.metric("vqa_batch_size_sum"), server.metric("vqa_batch_size_count")
        exchanges = run(ask_at_once(server.url, request, questions))
        server.wait_idle()
        succeeded = [exchange for exchange in exchanges if exchange.status == 200]
        replies = [json.loads(exchange.body) for exchange in succeeded]
        rows.append(
            {
                "round": number + 1,
                "inferences": round(server.metric("vqa_batch_size_sum") - before[0]),
                "batches": round(server.metric("vqa_batch_size_count") - before[1]),
                "statuses": statuses(exchanges),
                "different_answers": len({json.dumps(reply["candidates"]) for reply in replies}),
                "said_cached": sum(bool(reply["cached"]) for reply in replies),
                **{
                    f"{name}_ms": value
                    for name, value in milliseconds([e.latency_s for e in succeeded]).items()
                    if name != "n"
                },
            }
        )
    summary = {
        "questions": questions,
        "inferences_max": max(row["inferences"] for row in rows),
        "all_answered": all(row["statuses"] == {"200": questions} for row in rows),
    }
    return summary, rows


@click.command()
@report.options
def main(model: str, quick: bool, settings: tuple[str, ...], results: Path) -> None:
    """Count the inferences of many identical questions."""
    machine = report.Machine()
    with running(model, {"VQA_MAX_IN_FLIGHT": 2 * QUESTIONS} | parse_settings(settings)) as server:
        summary, rows = measure(server, *((50, 1) if quick else (QUESTIONS, ROUNDS)))
    report.write("identical", model, results, machine=machine, summary=summary, rows=rows, quick=quick)


if __name__ == "__main__":
    main()
