"""A clock that the test sets."""

from __future__ import annotations

import asyncio


class Clock:
    """Seconds that pass when the test says so."""

    def __init__(self, now: float = 100.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


async def settle() -> None:
    """Let everything that can run now run."""
    for _ in range(20):
        await asyncio.sleep(0)
