"""Plain FastAPI on uvicorn: what is left when nothing but the web framework stands between the client and the model.

Settings, and where they are documented:

- `workers=2`: FastAPI's guide, "Server Workers - Uvicorn with Workers"; a core each.
- `UploadFile` and `Form`: "Request Forms and Files".
- An `async` endpoint, which hands the model to a thread of its own by `run_in_executor`: FastAPI's "Concurrency and
  async / await", asyncio's "Executing code in thread or process pools".
- uvloop and httptools: uvicorn's guide, "Settings"; named, so that it fails where they are not there.
- `access_log=False`, `log_level="error"`: uvicorn's guide, "Settings".
- `limit_concurrency` (of each worker; 503 beyond): uvicorn's guide, "Server Behavior - Resource Limits"; in
  `overload`.

Measured to choose, CPU a question: this way 4.9 ms; a plain `def` endpoint, which runs in the pool of forty
threads, 5.2 to 5.4, and with a pool of one 4.9, but then replies wait behind other questions, since FastAPI makes
them in the same pool; `async` without a thread 5.3; the picture as a raw body 4.9 to 5.1. No batching: FastAPI has
none.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Annotated

import uvicorn
from fastapi import FastAPI, Form, Request, UploadFile

from loadtest.peers.given import HOST, Given

given = Given.read()


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """The model and its thread, once a worker ("Lifespan Events")."""
    app.state.model = given.load()
    app.state.thread = ThreadPoolExecutor(1)
    yield


app = FastAPI(lifespan=lifespan, openapi_url=None)


@app.post("/answer")
async def answer(request: Request, image: UploadFile, question: Annotated[str, Form()]) -> dict[str, object]:
    """A picture and a question to an answer; the event loop reads the next bodies meanwhile."""
    picture = await image.read()
    state, loop = request.app.state, asyncio.get_running_loop()
    return (await loop.run_in_executor(state.thread, state.model.ask, picture, question)).json()


if __name__ == "__main__":
    uvicorn.run(
        "loadtest.peers.servers.fastapi:app",
        host=HOST,
        port=given.port,
        workers=given.workers,
        loop="uvloop",
        http="httptools",
        access_log=False,
        log_level="error",
        limit_concurrency=given.max_in_flight and -(-given.max_in_flight // given.workers) + 1,
    )
