"""The application: routes, middleware and error handlers over one gateway."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException

from service.api.middleware import RequestMiddleware
from service.api.openapi import install_openapi
from service.api.problems import NobodyThere, ProblemResponse
from service.api.routes import make_router, straight
from service.errors import Code, VQAError
from service.gateway import Gateway
from service.settings import Settings
from service.telemetry.loop_lag import watch_loop_lag
from service.telemetry.metrics import Metrics, keep_fresh

log = logging.getLogger(__name__)

# More new objects than this are looked through for circles of garbage; Python's 700 are two requests.
_GARBAGE_THRESHOLD = 10_000


def create_app(
    gateway: Gateway,
    settings: Settings,
    metrics: Metrics,
    *,
    on_start_failed: Callable[[], None] = lambda: None,
    ready_first: bool = False,
) -> FastAPI:
    """The ASGI application. It listens at once; the gateway starts in the background and `/readyz` says when.

    Args:
        gateway: started and stopped with the application.
        settings: limits of what a request may hold.
        metrics: where requests are counted.
        on_start_failed: called when no backend came up.
        ready_first: listen once the gateway has started, and not at once; for a worker beside others, who answer
            meanwhile.
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        start = asyncio.create_task(_start(gateway, on_start_failed))
        tasks = {
            asyncio.create_task(watch_loop_lag(metrics.loop_lag_seconds.observe)),
            asyncio.create_task(keep_fresh(metrics)),
            start,
        }
        try:
            if ready_first:
                await asyncio.wait((start,))
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            await gateway.stop()
            log.info("stopped")

    app = FastAPI(
        title="VQA service", lifespan=lifespan, docs_url=None, redoc_url=None, redirect_slashes=False, openapi_url=None
    )
    # Not `include_router`: it puts a layer in front of each request, for prefixes and dependencies that nobody has.
    app.router.routes.extend(straight(make_router(gateway, settings, metrics)))
    app.add_middleware(RequestMiddleware, metrics=metrics)
    install_openapi(app)

    @app.exception_handler(VQAError)
    async def on_vqa_error(_: Request, error: VQAError) -> Response:
        if error.code is Code.CLIENT_CLOSED_REQUEST:
            # Nobody is there to read it, and when many leave at once those who stay should not wait for it.
            return NobodyThere()
        # Its traceback leads to what the request held, and often back to the error: a circle that would keep a picture.
        error.__context__ = error.__cause__ = error.__traceback__ = None
        return ProblemResponse(error)

    @app.exception_handler(HTTPException)
    async def on_http_exception(_: Request, error: HTTPException) -> Response:
        """What the framework refuses itself: unknown paths and methods."""
        code = {404: Code.NOT_FOUND, 405: Code.METHOD_NOT_ALLOWED}.get(error.status_code, Code.BAD_REQUEST)
        detail = {
            Code.NOT_FOUND: "There is nothing at this path. GET / lists the routes.",
            Code.METHOD_NOT_ALLOWED: "This path does not take this method; the Allow header lists those it takes.",
        }.get(code, "The request is malformed.")
        return ProblemResponse(VQAError(code, detail), headers=dict(error.headers or {}))

    return app


async def _start(gateway: Gateway, on_failed: Callable[[], None]) -> None:
    try:
        await gateway.start()
    except Exception as error:
        # What a backend raised was logged where it happened; anything else is a fault of ours, with its traceback.
        fault = None if isinstance(error, ExceptionGroup) else error
        log.error("no backend started, so the service can answer nothing", exc_info=fault)
        on_failed()
    else:
        # Looking for garbage stops the event loop for as long as several answers take. What is there now stays until
        # the end and is never looked through again; requests leave next to none, so that it is looked for less often.
        gc.collect()
        gc.freeze()
        gc.set_threshold(_GARBAGE_THRESHOLD)
        log.info("ready")
