"""A lean HTTP/1.1 client for measuring: it shares the machine with the server, so it costs next to nothing.

Requests are bytes made beforehand; replies are parsed by httptools and not decoded. Every moment is in seconds on
`time.perf_counter` (uvloop's own clock counts whole milliseconds only). Meant to run on uvloop: `run`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

import httptools
import uvloop

T = TypeVar("T")
now = time.perf_counter

TIMEOUT_S = 60.0
LEFT = "left"
TIMED_OUT = "timed out"


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on uvloop."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)


@dataclass(slots=True)
class Exchange:
    """One request and what came of it. Moments are seconds on `perf_counter`, None where it did not come so far."""

    planned: float
    """When it was due, which is when a user would have begun to wait."""
    first_byte: float | None = None
    """When its first byte was written."""
    handed_over: float | None = None
    """When the kernel had taken its last byte."""
    ended: float | None = None
    """When the reply was whole, or when there was known to be none."""
    status: int = 0
    """0 where there was no reply."""
    retry_after: str | None = None
    body: bytes = b""
    error: str = ""

    @property
    def latency_s(self) -> float:
        """Seconds from the planned moment to the end."""
        return (self.ended or now()) - self.planned

    @property
    def reply_s(self) -> float:
        """Seconds from the last byte's handing over to the reply; 0 where the reply came before that."""
        return 0.0 if self.handed_over is None else (self.ended or now()) - self.handed_over

    @property
    def late_s(self) -> float:
        """Seconds from the planned moment to the first byte."""
        return (self.first_byte or self.ended or now()) - self.planned


class _Connection(asyncio.Protocol):
    """One connection, one exchange at a time."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.used = False
        self.lost = False
        self._exchange: Exchange | None = None
        self._done: asyncio.Future[None] | None = None
        self._parser: Any = None
        self._body: list[bytes] = []
        self._framed = False
        self._headers_complete = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        # Paused as soon as a byte waits, resumed when the kernel has taken all: this tells when the last byte went.
        self.transport.set_write_buffer_limits(high=0)

    def begin(self, request: bytes, exchange: Exchange) -> asyncio.Future[None]:
        """Write a request; the future is done when the exchange has ended."""
        assert self.transport is not None
        self._exchange = exchange
        self._done = asyncio.get_running_loop().create_future()
        self._parser = httptools.HttpResponseParser(self)
        self._body = []
        self._framed = self._headers_complete = False
        exchange.first_byte = now()
        self.transport.write(request)
        if self.transport.get_write_buffer_size() == 0:
            exchange.handed_over = now()
        return self._done

    def resume_writing(self) -> None:
        if self._exchange is not None and self._exchange.handed_over is None:
            self._exchange.handed_over = now()

    def data_received(self, data: bytes) -> None:
        if self._exchange is None:
            self.abort()  # a server that speaks unasked
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self.end(f"bad reply: {type(error).__name__}")
            self.abort()

    def eof_received(self) -> None:
        # A body with no length ends with the connection, as from HTTP/1.0.
        if self._headers_complete and not self._framed:
            self.on_message_complete()

    def connection_lost(self, error: Exception | None) -> None:
        self.lost = True
        self.end(f"connection lost: {type(error).__name__ if error else 'closed'}")

    def on_header(self, name: bytes, value: bytes) -> None:
        lower = name.lower()
        if lower == b"retry-after" and self._exchange is not None:
            self._exchange.retry_after = value.decode("latin-1")
        elif lower in (b"content-length", b"transfer-encoding"):
            self._framed = True

    def on_headers_complete(self) -> None:
        self._headers_complete = True

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        exchange = self._exchange
        status = self._parser.get_status_code()
        if exchange is None or status < 200:  # 1xx: the reply is still to come
            return
        exchange.status = status
        exchange.body = b"".join(self._body)
        whole = exchange.handed_over is not None
        self.end("")
        # A reply before the body was read ends the connection, whatever the server says.
        if not (whole and self._framed and self._parser.should_keep_alive()):
            self.abort()

    def end(self, error: str) -> None:
        """The exchange has ended, with `error` where there is no reply."""
        exchange, done = self._exchange, self._done
        if exchange is None or done is None:
            return
        self._exchange = self._done = None
        exchange.ended = now()
        exchange.error = error
        if not done.done():
            done.set_result(None)

    def abort(self) -> None:
        """Close at once; what waits to be written is dropped, and what comes of it is told to nobody."""
        self.lost = True
        self._exchange = self._done = None
        if self.transport is not None:
            self.transport.abort()


class Client:
    """Connections to one server, kept alive and used again.

    Args:
        url: `http://host:port`; a path is ignored, since requests are whole.
        timeout_s: seconds after which an exchange is given up.
    """

    def __init__(self, url: str, *, timeout_s: float = TIMEOUT_S) -> None:
        parts = urlsplit(url)
        if parts.scheme != "http" or parts.hostname is None:
            raise ValueError(f"{url!r} is no http:// address")
        self.host, self.port = parts.hostname, parts.port or 80
        self._timeout_s = timeout_s
        self._idle: list[_Connection] = []
        self._open: set[_Connection] = set()

    async def send(self, request: bytes, *, planned: float | None = None, fresh: bool = False) -> Exchange:
        """Send a request and wait for its reply; a failure is told in the exchange, never raised.

        Args:
            request: the whole request.
            planned: when it was due; None is now.
            fresh: on a new connection, which is closed afterwards.
        """
        return await self._within(self._timeout_s, TIMED_OUT, request, planned, fresh)

    async def leave(self, request: bytes, after_s: float, *, planned: float | None = None) -> Exchange:
        """Send a request on a new connection and hang up `after_s` seconds later, unless the reply came before."""
        return await self._within(after_s, LEFT, request, planned, True)

    async def _within(
        self, seconds: float | None, too_late: str, request: bytes, planned: float | None, fresh: bool
    ) -> Exchange:
        """One exchange, whose connection is given up after `seconds`."""
        exchange = Exchange(now() if planned is None else planned)
        try:
            async with asyncio.timeout(seconds):
                await self._exchange(request, exchange, fresh)
        except TimeoutError:
            if not exchange.status:  # else the reply came in the very same moment
                exchange.ended, exchange.error = now(), too_late
        except OSError as error:
            exchange.ended, exchange.error = now(), f"cannot connect: {type(error).__name__}"
        return exchange

    async def open(self, count: int) -> None:
        """Have `count` idle connections, so that as many requests can be sent in one go."""
        missing = count - len(self._idle)
        self._idle += await asyncio.gather(*(self._connect() for _ in range(missing)))

    def close(self) -> None:
        """Close all connections."""
        for connection in self._open:
            connection.abort()
        self._open.clear()
        self._idle.clear()

    async def _exchange(self, request: bytes, exchange: Exchange, fresh: bool) -> None:
        connection = await self._connect() if fresh else self._take() or await self._connect()
        try:
            await connection.begin(request, exchange)
            if connection.used and connection.lost and not exchange.status:
                # The server had closed the idle connection already. That says nothing of this request.
                self._open.discard(connection)
                exchange.handed_over = None
                connection = await self._connect()
                await connection.begin(request, exchange)
            connection.used = True
        except BaseException:
            connection.abort()
            raise
        finally:
            if connection.lost or fresh:
                connection.abort()
                self._open.discard(connection)
            else:
                self._idle.append(connection)

    def _take(self) -> _Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if not connection.lost:
                return connection
            self._open.discard(connection)
        return None

    async def _connect(self) -> _Connection:
        _, connection = await asyncio.get_running_loop().create_connection(_Connection, self.host, self.port)
        self._open.add(connection)
        return connection
