"""uvicorn's HTTP/1.1 protocol with a bound on a request's line and headers, in bytes and in time.

uvicorn bounds neither: a client could send headers without end, or none at all, and hold memory and a connection.
"""

from __future__ import annotations

import asyncio
import re

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from service.api.problems import PROBLEM_TYPE, problem_bytes
from service.errors import Code, VQAError

MAX_HEAD_BYTES = 64 * 1024
HEAD_TIMEOUT_S = 15.0

_HEAD_END = b"\r\n\r\n"
# A client that would rather speak HTTP/2 (Java's, by default) offers to switch. The parser takes the offer for a switch
# that is made and drops the body, so the offer is taken out: a server may ignore it (RFC 9110, section 7.8).
_OFFERS_H2C = re.compile(rb"\r\nupgrade:[ \t]*h2c[ \t]*(?=\r\n)", re.IGNORECASE)
_OFFER = re.compile(rb"\r\n(?:upgrade|http2-settings|connection):[^\r\n]*", re.IGNORECASE)


class BoundedProtocol(HttpToolsProtocol):
    """Refuses a head of more than `MAX_HEAD_BYTES` with 431, and hangs up on one that takes over `HEAD_TIMEOUT_S`."""

    _head_bytes = 0
    _in_head = True
    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client has connected; its first head is due."""
        super().connection_made(transport)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has gone."""
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Bytes have come: of a head, of a body, or both."""
        if self._in_head:
            if self._head_bytes == 0:
                data = _without_h2c_offer(data)
            self._head_bytes += len(data)
        super().data_received(data)
        if self._in_head and self._head_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
            self._refuse(
                VQAError(Code.HEAD_TOO_LARGE, f"The request's line and headers exceed {MAX_HEAD_BYTES} bytes.")
            )

    def on_message_begin(self) -> None:
        """The first byte of a head has come."""
        super().on_message_begin()
        if not self._in_head:
            self._expect_head()

    def on_headers_complete(self) -> None:
        """The head is whole."""
        self._in_head = False
        self._stop_timer()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The body is whole; what comes next is a head."""
        super().on_message_complete()
        self._in_head, self._head_bytes = True, 0

    def send_400_response(self, msg: str) -> None:
        """What is no HTTP is told so in the same envelope as every other error."""
        self._refuse(VQAError(Code.BAD_REQUEST, msg))

    def _expect_head(self) -> None:
        self._stop_timer()
        self._head_timer = self.loop.call_later(HEAD_TIMEOUT_S, self.transport.close)

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _refuse(self, error: VQAError) -> None:
        body = problem_bytes(error)
        head = f"content-type: {PROBLEM_TYPE}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
        self.transport.write(STATUS_LINE[error.status] + head.encode("ascii") + body)
        self.transport.close()


def _without_h2c_offer(data: bytes) -> bytes:
    head, end, rest = data.partition(_HEAD_END)
    if not end or not _OFFERS_H2C.search(head + b"\r\n"):
        return data
    return _OFFER.sub(b"", head) + end + rest
