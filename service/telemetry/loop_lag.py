"""How late the event loop runs its timers: the first sign that something blocks it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable


async def watch_loop_lag(observe: Callable[[float], None], *, interval_s: float = 0.25) -> None:
    """Report, every `interval_s` seconds until cancelled, by how many seconds the timer came too late."""
    while True:
        planned = time.perf_counter() + interval_s
        await asyncio.sleep(interval_s)
        observe(max(0.0, time.perf_counter() - planned))
