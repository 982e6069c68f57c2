"""Open-loop load: requests are sent when they are due, whatever became of those before.

    python -m loadtest.open_loop --url http://127.0.0.1:8000 --rate 50 --seconds 10 --out results.json

Latency counts from the planned moment. A client that waits for each reply sends nothing while the server hangs, and
its percentiles look fine (coordinated omission); here every request that fell due meanwhile shows the wait. Asks
`POST /answer` with pictures and questions that never repeat; a URL with another path is fetched with GET.
The exit code is 1 where nothing succeeded.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import click
import numpy as np

from loadtest.pictures import camera_mixed, drawing, stamped
from loadtest.questions import get, post, question
from loadtest.stats import milliseconds
from loadtest.wire import Client, Exchange, now, run

Arrivals = Literal["poisson", "constant"]
Send = Callable[[int, float], Awaitable[Exchange]]
"""Sends request number n, due at a moment; tells what became of it."""

MOST_OUTSTANDING = 10_000
# A send that begins later than this after its moment is reported: the generator itself was behind.
LATE_S = 0.010
POOL = 200


def schedule(rate: float, seconds: float, arrivals: Arrivals = "poisson", seed: int = 0) -> list[float]:
    """When requests are due, in seconds from the start: `rate` a second, for `seconds`."""
    count = round(rate * seconds)
    if arrivals == "constant":
        return [n / rate for n in range(count)]
    # A Poisson process with a known number of arrivals is that many independent uniform moments, sorted.
    return [float(moment) for moment in np.sort(np.random.default_rng(seed).uniform(0, seconds, count))]


@dataclass
class OpenLoop:
    """What became of a schedule."""

    started: float
    seconds: float
    exchanges: list[Exchange] = field(default_factory=list)
    dropped: list[float] = field(default_factory=list)
    """Planned moments of requests that were never sent, because too many were outstanding."""

    def summary(self) -> dict[str, Any]:
        """Figures. A request without a reply counts as long as it was waited for; a dropped one is in no quantile."""
        statuses = Counter(str(e.status) if e.status else e.error for e in self.exchanges)
        sent = len(self.exchanges)
        succeeded = sum(e.status == 200 for e in self.exchanges)
        return {
            "planned": sent + len(self.dropped),
            "sent": sent,
            "succeeded": succeeded,
            "dropped": len(self.dropped),
            "late": sum(e.late_s > LATE_S for e in self.exchanges),
            "latency_ms": milliseconds([e.latency_s for e in self.exchanges]),
            "success_latency_ms": milliseconds([e.latency_s for e in self.exchanges if e.status == 200]),
            "send_delay_ms": milliseconds([e.late_s for e in self.exchanges]),
            "statuses": dict(sorted(statuses.items())),
        }


async def open_loop(
    send: Send, due: Sequence[float], seconds: float, *, most_outstanding: int = MOST_OUTSTANDING
) -> OpenLoop:
    """Send each request at its moment and wait for all that were sent.

    Args:
        send: sends one.
        due: seconds from the start, ascending.
        seconds: length of the schedule.
        most_outstanding: a request that falls due while so many wait for their reply is dropped, and counted.
    """
    result = OpenLoop(now(), seconds)
    outstanding: set[asyncio.Task[Exchange]] = set()

    def ended(task: asyncio.Task[Exchange]) -> None:
        outstanding.discard(task)
        if not task.cancelled() and task.exception() is None:
            result.exchanges.append(task.result())

    for number, offset in enumerate(due):
        planned = result.started + offset
        if (early := planned - now()) > 0:
            await asyncio.sleep(early)
        elif number % 16 == 0:
            await asyncio.sleep(0)  # behind: replies must still be read
        if len(outstanding) >= most_outstanding:
            result.dropped.append(planned)
            continue
        task = asyncio.ensure_future(send(number, planned))
        outstanding.add(task)
        task.add_done_callback(ended)
    if outstanding:
        await asyncio.gather(*outstanding)
    await asyncio.sleep(0)
    return result


def requests_for(url: str, *, kind: str = "camera", timeout_ms: int | None = None, pool: int = POOL) -> Send:
    """What to send to a URL: GET of its path, or `POST /answer` with a new picture and question each time."""
    client, host, path = Client(url), urlsplit(url).netloc, urlsplit(url).path
    if path not in ("", "/", "/answer"):
        request = get(host, path)
        return lambda _, planned: client.send(request, planned=planned)
    make = drawing if kind == "drawing" else camera_mixed
    pictures = [make(seed) for seed in range(pool)]
    fields: dict[str, object] = {} if timeout_ms is None else {"timeout_ms": timeout_ms}

    def ask(number: int, planned: float) -> Awaitable[Exchange]:
        picture = stamped(pictures[number % pool], number)
        return client.send(post(host, picture, question=question(number), **fields), planned=planned)

    return ask


def table(result: dict[str, Any]) -> str:
    """The figures as lines of text."""
    lines = [
        f"planned {result['planned']}  sent {result['sent']}  succeeded {result['succeeded']}",
        f"dropped {result['dropped']} (never sent: too many outstanding)",
        f"late    {result['late']} (sent over {LATE_S * 1000:g} ms after their moment)",
        f"{'milliseconds':22}" + "".join(f"{name:>12}" for name in ("p50", "p90", "p99", "max")),
    ]
    for name in ("latency_ms", "success_latency_ms", "send_delay_ms"):
        row = result[name]
        label = name.removesuffix("_ms").replace("_", " ")
        lines.append(f"{label:22}" + "".join(f"{row[column]:12.1f}" for column in ("p50", "p90", "p99", "max")))
    lines += [f"{status:>22} {count}" for status, count in result["statuses"].items()]
    return "\n".join(lines)


@click.command()
@click.option("--url", required=True, help="http://host:port, or with a path to GET.")
@click.option("--rate", type=click.FloatRange(min=0, min_open=True), required=True, help="Requests a second.")
@click.option("--seconds", type=click.FloatRange(min=0, min_open=True), required=True, help="Length of the schedule.")
@click.option("--arrivals", type=click.Choice(("poisson", "constant")), default="poisson", show_default=True)
@click.option("--seed", default=0, show_default=True, help="Of the Poisson arrivals.")
@click.option("--pictures", type=click.Choice(("camera", "drawing")), default="camera", show_default=True)
@click.option("--timeout-ms", type=click.IntRange(1), help="Deadline that each question names.")
@click.option("--most-outstanding", type=click.IntRange(1), default=MOST_OUTSTANDING, show_default=True)
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write the figures there as JSON.")
def main(
    url: str,
    rate: float,
    seconds: float,
    arrivals: Arrivals,
    seed: int,
    pictures: str,
    timeout_ms: int | None,
    most_outstanding: int,
    out: Path | None,
) -> None:
    """Send requests when they are due and report latency from that moment."""

    async def measure() -> OpenLoop:
        send = requests_for(url, kind=pictures, timeout_ms=timeout_ms)
        due = schedule(rate, seconds, arrivals, seed)
        return await open_loop(send, due, seconds, most_outstanding=most_outstanding)

    result = run(measure()).summary()
    if out is not None:
        out.write_text(json.dumps({"rate": rate, "seconds": seconds, "arrivals": arrivals, **result}, indent=1) + "\n")
    click.echo(table(result))
    if result["dropped"]:
        click.echo("Requests were dropped: the load was less than planned.", err=True)
    if not result["succeeded"]:
        click.echo("Nothing succeeded.", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
