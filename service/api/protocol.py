"""uvicorn's HTTP/1.1 protocol with a bound on a request's line and headers, in bytes and in time.

uvicorn bounds neither: a client could send headers without end, or none at all, and hold memory and a connection.
"""

from __future__ import annotations

import asyncio
import logging
import re
import uuid

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from service.api.disconnect import LINE, Line
from service.api.problems import PROBLEM_TYPE, problem_bytes
from service.errors import Code, VQAError
from service.telemetry.logs import request_id

log = logging.getLogger(__name__)

MAX_HEAD_BYTES = 64 * 1024
HEAD_TIMEOUT_S = 15.0

_HEAD_END = re.compile(rb"\r?\n\r?\n")
# A client that would rather speak HTTP/2 (Java's, by default) offers to switch. The parser takes the offer for a switch
# that is made and drops the body, so the offer is taken out: a server may ignore it (RFC 9110, section 7.8).
_OFFERS_SWITCH = re.compile(rb"\r\nupgrade[ \t]*:", re.IGNORECASE)
_OFFER = re.compile(rb"\r\n(?:upgrade|http2-settings)[ \t]*:[^\r\n]*", re.IGNORECASE)
_CONNECTION = re.compile(rb"\r\nconnection[ \t]*:([^\r\n]*)", re.IGNORECASE)


class BoundedProtocol(HttpToolsProtocol):
    """Refuses a head of more than `MAX_HEAD_BYTES` with 431, and hangs up on one that takes over `HEAD_TIMEOUT_S`."""

    _head = b""
    """What has come of the head that is being received, until it is whole."""
    _in_head = True
    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client has connected; its first head is due."""
        super().connection_made(transport)
        # One for all requests of the connection: of several that were sent in one go each must be told.
        self._line = Line()
        self._cycles: list[RequestResponseCycle] = []
        self._expect_head()

    def on_message_begin(self) -> None:
        """A request begins; whoever serves it may say what is to be called when its client has gone."""
        super().on_message_begin()
        self.scope["extensions"] = {LINE: {LINE: self._line}}

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has gone."""
        self._stop_timer()
        self._line.lose()
        # Of several requests that were sent in one go uvicorn tells the last one only.
        for cycle in self._cycles:
            cycle.disconnected = True
            cycle.message_event.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Bytes have come: of a head, of a body, or both. A head is collected until it is whole."""
        if not self._in_head:
            super().data_received(data)
            return
        seen = len(self._head)
        self._head += data
        end = _HEAD_END.search(self._head, max(0, seen - 3))
        if (end.start() if end else len(self._head)) > MAX_HEAD_BYTES:
            self._refuse(
                VQAError(Code.HEAD_TOO_LARGE, f"The request's line and headers exceed {MAX_HEAD_BYTES} bytes.")
            )
        elif end or not self._head[:1].isalpha():
            # What begins with no method is no HTTP: the parser says so at once.
            whole, self._head = self._head, b""
            super().data_received(_without_offer(whole))
        else:
            self._unset_keepalive_if_required()
            if self._head_timer is None:
                self._expect_head()

    def on_headers_complete(self) -> None:
        """The head is whole."""
        self._in_head = False
        self._stop_timer()
        super().on_headers_complete()
        self._cycles = [cycle for cycle in self._cycles if not cycle.response_complete]
        self._cycles.append(self.cycle)

    def on_message_complete(self) -> None:
        """The body is whole; what comes next is a head."""
        super().on_message_complete()
        self._in_head = True
        # Reading was stopped if the body came faster than it was taken. Nobody takes more of it now, and a connection
        # that is not read from does not tell that the client has gone.
        if not (self.pipeline or self.transport.is_closing()):
            self.flow.resume_reading()

    def send_400_response(self, msg: str) -> None:
        """What is no HTTP is told so in the same envelope as every other error."""
        self._refuse(VQAError(Code.BAD_REQUEST, msg))

    def _expect_head(self) -> None:
        self._head_timer = self.loop.call_later(HEAD_TIMEOUT_S, self.transport.close)

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _refuse(self, error: VQAError) -> None:
        self._head = b""
        token = request_id.set(uuid.uuid4().hex)
        body = problem_bytes(error)
        head = (
            f"content-type: {PROBLEM_TYPE}\r\ncontent-length: {len(body)}\r\nx-request-id: {request_id.get()}\r\n"
            "connection: close\r\n\r\n"
        )
        log.info("refused before any route: %s", error.detail, extra={"status": error.status, "code": error.code.value})
        request_id.reset(token)
        self.transport.write(STATUS_LINE[error.status] + head.encode("ascii") + body)
        self.transport.close()


def _without_offer(data: bytes) -> bytes:
    """The request without its offer to switch protocols; all else stays."""
    head, end, rest = data.partition(b"\r\n\r\n")
    if not _OFFERS_SWITCH.search(head):
        return data
    head = _OFFER.sub(b"", head)
    return _CONNECTION.sub(_without_upgrade_option, head) + end + rest


def _without_upgrade_option(connection: re.Match[bytes]) -> bytes:
    options = [option.strip() for option in connection[1].split(b",")]
    kept = [option for option in options if option.lower() not in (b"upgrade", b"http2-settings")]
    return b"\r\nConnection: " + b", ".join(kept) if kept else b""
