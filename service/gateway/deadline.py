"""When an answer is of no use any more."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from service.errors import Code, VQAError


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment in seconds on the scheduler's clock, `time.perf_counter`, and the milliseconds that led to it."""

    at: float
    timeout_ms: int

    @classmethod
    def after(cls, timeout_ms: int) -> Deadline:
        """The moment `timeout_ms` milliseconds from now."""
        return cls(time.perf_counter() + timeout_ms / 1000, timeout_ms)

    @asynccontextmanager
    async def applied(self) -> AsyncIterator[None]:
        """Stop the block when the moment comes.

        Raises:
            VQAError: `deadline_exceeded`; a `TimeoutError` of the block's own stays what it is.
        """
        try:
            async with asyncio.timeout(self.at - time.perf_counter()) as limit:
                yield
        except TimeoutError:
            if not limit.expired():
                raise
            raise VQAError(
                Code.DEADLINE_EXCEEDED,
                f"There was no answer within {self.timeout_ms} ms.",
                extra={"timeout_ms": self.timeout_ms},
            ) from None
