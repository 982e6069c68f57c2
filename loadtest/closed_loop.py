"""Closed-loop load: so many clients, each asks again as soon as it has its reply. For capacity, not for latency."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count, islice

from loadtest.pictures import stamped
from loadtest.questions import post, question
from loadtest.wire import Client, Exchange, now

Make = Callable[[int], bytes]
"""Request number n."""


@dataclass(frozen=True)
class ClosedLoop:
    """What became of the requests, and the seconds in which."""

    exchanges: list[Exchange]
    seconds: float

    @property
    def succeeded(self) -> list[Exchange]:
        """Those with a 200."""
        return [exchange for exchange in self.exchanges if exchange.status == 200]

    @property
    def per_second(self) -> float:
        """Successes a second."""
        return len(self.succeeded) / self.seconds


async def closed_loop(
    client: Client,
    make: Make,
    clients: int,
    *,
    seconds: float | None = None,
    requests: int | None = None,
    first: int = 0,
) -> ClosedLoop:
    """Ask with `clients` at once for so many seconds, or so many requests in all; numbers go on from `first`."""
    numbers: Iterable[int] = count(first) if requests is None else islice(count(first), requests)
    source = iter(numbers)
    started = now()
    end = float("inf") if seconds is None else started + seconds
    done: list[Exchange] = []

    async def ask_again_and_again() -> None:
        for number in source:
            if now() >= end:
                return
            done.append(await client.send(make(number)))

    await asyncio.gather(*(ask_again_and_again() for _ in range(clients)))
    if seconds is None:
        return ClosedLoop(done, now() - started)
    # Replies behind the end are of no second that was counted.
    return ClosedLoop([exchange for exchange in done if (exchange.ended or end) <= end], seconds)


def asking(host: str, pictures: Sequence[bytes], **fields: object) -> Make:
    """Request n: a picture in a file of its own and a question of its own, so that nothing repeats."""

    def make(number: int) -> bytes:
        picture = stamped(pictures[number % len(pictures)], number)
        return post(host, picture, question=question(number), **fields)

    return make


def statuses(exchanges: Iterable[Exchange]) -> dict[str, int]:
    """How often each status came; a failure without one under its reason."""
    found = Counter(str(exchange.status) if exchange.status else exchange.error for exchange in exchanges)
    return dict(sorted(found.items()))
