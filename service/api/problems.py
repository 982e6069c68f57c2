"""Errors on the wire: one envelope, RFC 9457 `application/problem+json`, for everything that goes wrong."""

from __future__ import annotations

import asyncio
import json
import math
from typing import Any

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from service.errors import Code, VQAError
from service.telemetry.logs import request_id

PROBLEM_TYPE = "application/problem+json"
# Where a response leaves its code for the middleware, which logs and counts it.
PROBLEM_CODE = "vqa.problem_code"

# Set once a request's body has been read to its end.
BODY_READ = "vqa.body_read"

# The rest of a body that nobody wants is read and thrown away up to here; up to the first, the connection lives on.
_SMALL_BODY = 64 * 1024
_LINGER_BYTES = 64 * 1024 * 1024
_LINGER_S = 2.0


def problem_document(error: VQAError) -> dict[str, Any]:
    """The problem document of an error (RFC 9457 plus `code`, `field` and `request_id`)."""
    document: dict[str, Any] = {
        "type": f"urn:vqa:problem:{error.code.value}",
        "title": error.title,
        "status": error.status,
        "detail": printable(error.detail),
        "code": error.code.value,
        "request_id": request_id.get(),
    }
    if error.field is not None:
        document["field"] = printable(error.field)
    if error.retry_after_s is not None:
        document["retry_after_s"] = error.retry_after_s
    return document | error.extra


def problem_bytes(error: VQAError) -> bytes:
    """The problem document as strict JSON in UTF-8."""
    return json.dumps(problem_document(error), ensure_ascii=False, allow_nan=False).encode("utf-8")


def printable(text: str) -> str:
    """Text that any strict JSON reader takes: an unpaired surrogate becomes a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")


class ProblemResponse(Response):
    """An error as an HTTP response.

    With `Retry-After` (whole seconds) where the error says when to come back, and `WWW-Authenticate` where a key is
    missing.
    """

    media_type = PROBLEM_TYPE

    def __init__(self, error: VQAError, headers: dict[str, str] | None = None) -> None:
        headers = dict(headers or {})
        if error.retry_after_s is not None:
            headers["Retry-After"] = str(max(1, math.ceil(error.retry_after_s)))
        if error.code is Code.UNAUTHORIZED:
            headers["WWW-Authenticate"] = "Bearer"
        self._code = error.code
        super().__init__(problem_bytes(error), status_code=error.status, headers=headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send; where the client is still sending a large body, throw that away for a while and close.

        Reading it all would cost as much as the client likes. Closing at once would reset the connection, and many
        clients then report the reset and never show the reply.
        """
        scope[PROBLEM_CODE] = self._code
        if not _has_unread_body(scope):
            await super().__call__(scope, receive, send)
            return
        self.headers["Connection"] = "close"
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": True})
        try:
            async with asyncio.timeout(_LINGER_S):
                await _discard(receive, _LINGER_BYTES)
        except TimeoutError:
            pass  # the client had its chance to read the reply
        await send({"type": "http.response.body", "body": b"", "more_body": False})


class NobodyThere(Response):
    """The end of a request whose client has hung up: sends nothing, and leaves its code for the middleware."""

    async def __call__(self, scope: Scope, _receive: Receive, _send: Send) -> None:
        """Send nothing."""
        scope[PROBLEM_CODE] = Code.CLIENT_CLOSED_REQUEST


def _has_unread_body(scope: Scope) -> bool:
    """Whether a body is still to come that is large, or of a size that nobody knows."""
    if scope.get(BODY_READ):
        return False
    headers = Headers(scope=scope)
    length = headers.get("content-length", "0")
    return "transfer-encoding" in headers or not length.isdigit() or int(length) > _SMALL_BODY


async def _discard(receive: Receive, limit: int) -> None:
    seen = 0
    while seen < limit:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        seen += len(message.get("body", b""))
        if not message.get("more_body", False):
            return
