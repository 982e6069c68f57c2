"""Work that stops when nobody waits for it any more."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.types import Receive

from service.errors import Code, VQAError

T = TypeVar("T")


async def until_disconnect(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, which is cancelled if the client hangs up first.

    Args:
        receive: the request's channel, its body already read.
        work: what the client waits for.

    Raises:
        VQAError: `client_closed_request`.
    """
    task = asyncio.ensure_future(work)
    watcher = asyncio.ensure_future(_disconnected(receive))
    try:
        await asyncio.wait({task, watcher}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise VQAError(Code.CLIENT_CLOSED_REQUEST, "The client closed the connection before the reply.")
    finally:
        task.cancel()
        watcher.cancel()
        await asyncio.wait({task, watcher})


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
