"""Plain FastAPI on uvicorn: what is left when nothing but the web framework stands between the client and the model.

Settings, and where they are documented:

- `workers=2`: FastAPI's guide, "Server Workers - Uvicorn with Workers"; a core each.
- `UploadFile` and `Form`: "Request Forms and Files".
- A plain `def` endpoint, and `total_tokens = 1`: FastAPI's "Concurrency and async / await" runs those in a thread pool,
  Starlette's guide, "Thread Pool", sets its size.
- uvloop and httptools: uvicorn's guide, "Settings"; named, so that it fails where they are not there.
- `access_log=False`, `log_level="warning"`: uvicorn's guide, "Settings".
- `limit_concurrency` (of each worker; 503 beyond): uvicorn's guide, "Server Behavior - Resource Limits"; in `overload`.

Measured to choose, small model, two cores shared with others, CPU per question: `def` with one thread 4.85 ms, `def` with
the default of forty 5.4, `async def` 5.3; the picture as a raw body 4.9 (`def`) and 5.1, and then a worker that was
quick took all sixteen connections more often than not, which left a core idle. No batching: FastAPI has none.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

import anyio.to_thread
import uvicorn
from fastapi import FastAPI, Form, Request, UploadFile

from loadtest.peers.given import HOST, Given

given = Given.read()


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """The model, once a worker ("Lifespan Events"), and one thread for endpoints."""
    app.state.model = given.load()
    anyio.to_thread.current_default_thread_limiter().total_tokens = 1
    yield


app = FastAPI(lifespan=lifespan, openapi_url=None)


@app.post("/answer")
def answer(request: Request, image: UploadFile, question: Annotated[str, Form()]) -> dict[str, object]:
    """A picture and a question to an answer; the event loop reads the next bodies meanwhile."""
    return request.app.state.model.ask(image.file.read(), question).json()


if __name__ == "__main__":
    uvicorn.run(
        "loadtest.peers.servers.fastapi:app",
        host=HOST,
        port=given.port,
        workers=given.workers,
        loop="uvloop",
        http="httptools",
        access_log=False,
        log_level="warning",
        limit_concurrency=given.most_inside and -(-given.most_inside // given.workers) + 1,
    )
