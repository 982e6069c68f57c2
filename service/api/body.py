"""Request bodies as they stream in: bounded one by one and all together, in time, and never on a disk."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager

from starlette.requests import Request

from service.api.problems import BODY_READ
from service.errors import Code, VQAError


class BodyBudget:
    """Bytes of bodies that may be in memory at once, over all requests.

    Args:
        limit: that many bytes.
        observe: told the number held after each change.
    """

    def __init__(self, limit: int, observe: Callable[[int], None] = lambda _: None) -> None:
        self._limit = limit
        self._observe = observe
        self._held = 0

    @contextmanager
    def hold(self) -> Iterator[BodyHold]:
        """A share of the budget that grows as a body arrives and is given back when the block ends."""
        hold = BodyHold(self)
        try:
            yield hold
        finally:
            self._take(-hold.held)

    def _take(self, count: int) -> None:
        if count > 0 and self._held + count > self._limit:
            raise VQAError(
                Code.SATURATED,
                "The service holds as many request bodies as it can. Try again shortly.",
                retry_after_s=1,
            )
        self._held += count
        self._observe(self._held)


class BodyHold:
    """One request's share of a `BodyBudget`."""

    def __init__(self, budget: BodyBudget) -> None:
        self._budget = budget
        self.held = 0

    def add(self, count: int) -> None:
        """Take `count` more bytes.

        Raises:
            VQAError: `saturated`.
        """
        self._budget._take(count)
        self.held += count


async def stream_body(request: Request, hold: BodyHold, *, limit: int, timeout_s: float) -> AsyncIterator[bytes]:
    """The body's chunks.

    Raises:
        VQAError: `body_too_large` (from Content-Length before anything is read, else as soon as the bytes pass
            `limit`), `body_timeout`, `saturated`, or `client_closed_request`.
    """
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("", "identity"):
        raise VQAError(
            Code.UNSUPPORTED_CONTENT_TYPE,
            "A compressed body is not accepted. Send it without Content-Encoding.",
        )
    announced = request.headers.get("content-length", "")
    if announced.isdigit() and int(announced) > limit:
        raise _too_large(limit)
    seen = 0
    deadline = asyncio.get_running_loop().time() + timeout_s
    while True:
        try:
            async with asyncio.timeout_at(deadline):
                message = await request.receive()
        except TimeoutError:
            raise VQAError(Code.BODY_TIMEOUT, f"The body did not arrive within {timeout_s:g} s.") from None
        if message["type"] == "http.disconnect":
            raise VQAError(Code.CLIENT_CLOSED_REQUEST, "The client closed the connection while it sent the body.")
        chunk: bytes = message.get("body", b"")
        seen += len(chunk)
        if seen > limit:
            raise _too_large(limit)
        if chunk:
            hold.add(len(chunk))
            yield chunk
        if not message.get("more_body", False):
            request.scope[BODY_READ] = True
            return


def _too_large(limit: int) -> VQAError:
    return VQAError(Code.BODY_TOO_LARGE, f"The body is larger than {limit:,} bytes.", extra={"limit": limit})
