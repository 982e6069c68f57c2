"""One plain ASGI middleware: request ids, counting, logging, and the last net under every fault.

Not `BaseHTTPMiddleware`: that one hides a client's disconnect from the routes.
"""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import time

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.problems import PROBLEM_CODE, ProblemResponse
from service.errors import CLIENT_CLOSED_REQUEST_STATUS, Code, VQAError
from service.telemetry.logs import request_id
from service.telemetry.metrics import UNMATCHED_ROUTE, Metrics

log = logging.getLogger("service.access")

_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
# W3C Trace Context, version 00; all-zero ids are invalid.
_TRACEPARENT = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
# Probes and scrapes come every few seconds; they are logged when they fail.
_QUIET_ROUTES = frozenset(("/livez", "/readyz", "/metrics"))


class RequestMiddleware:
    """Wraps the whole application.

    Args:
        app: the application inside.
        metrics: where requests and problems are counted.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        given = headers.get("x-request-id", "")
        token = request_id.set(given if _REQUEST_ID.fullmatch(given) else secrets.token_hex(16))
        traceparent = headers.get("traceparent", "")
        traceparent = traceparent if _TRACEPARENT.fullmatch(traceparent) else ""
        started = time.perf_counter()
        status = 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                out = MutableHeaders(scope=message)
                out["X-Request-Id"] = request_id.get()
                if traceparent:
                    out["traceparent"] = traceparent
            await send(message)

        try:
            await self._app(scope, receive, send_with_id)
        except asyncio.CancelledError:
            # The server stops and will wait no longer; the client is told so instead of being cut off.
            if status == 0:
                error = VQAError(Code.DRAINING, "The service shut down before the reply. Ask again.", retry_after_s=1)
                await ProblemResponse(error)(scope, receive, send_with_id)
        except Exception:
            log.exception("unhandled fault")
            if status == 0:
                error = VQAError(Code.INTERNAL_ERROR, "The service has a fault; it was logged under this request id.")
                await ProblemResponse(error)(scope, receive, send_with_id)
        finally:
            self._record(scope, status or CLIENT_CLOSED_REQUEST_STATUS, time.perf_counter() - started, traceparent)
            request_id.reset(token)

    def _record(self, scope: Scope, status: int, seconds: float, traceparent: str) -> None:
        route = getattr(scope.get("route"), "path", UNMATCHED_ROUTE)
        method = scope["method"] if scope["method"] in _METHODS else "other"
        code: Code | None = scope.get(PROBLEM_CODE)
        self._metrics.http_requests.labels(route, method, str(status)).inc()
        self._metrics.http_seconds.labels(route).observe(seconds)
        if code is not None:
            self._metrics.problems.labels(code.value).inc()
        if route in _QUIET_ROUTES and status < 400:
            return
        log.info(
            "%s %s",
            method,
            route,
            extra={
                "status": status,
                "seconds": round(seconds, 4),
                "code": code.value if code else None,
                "traceparent": traceparent or None,
            },
        )
