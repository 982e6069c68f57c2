"""Plain FastAPI on uvicorn: what is left when nothing but the web framework stands between the client and the model.

`uvicorn.run(workers=…)` and `UploadFile` with `Form` as in FastAPI's guide ("Request Forms and Files", "Server Workers");
uvloop and httptools are uvicorn's own choice where they are installed ("Settings"), and named here so that it fails
where they are not; `access_log=False` ("Settings", logging).
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
    """The model, once a worker ("Lifespan Events"); one thread for endpoints ("Thread Pool" in Starlette's guide)."""
    app.state.model = given.load()
    anyio.to_thread.current_default_thread_limiter().total_tokens = 1
    yield


app = FastAPI(lifespan=lifespan, openapi_url=None)


@app.post("/answer")
def answer(request: Request, image: UploadFile, question: Annotated[str, Form()]) -> dict[str, object]:
    """A plain function, which FastAPI runs in its thread pool: the event loop reads the next bodies meanwhile."""
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
        # "Resource Limits": 503 beyond; of each worker.
        limit_concurrency=given.most_inside and max(2, given.most_inside // given.workers),
    )
