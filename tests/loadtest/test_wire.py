"""The measuring client against servers that behave, and that do not."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from loadtest.questions import get, post
from loadtest.wire import LEFT, TIMED_OUT, Client, now, run

T = TypeVar("T")
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


def against(serve: Serve, use: Callable[[Client], Awaitable[T]], timeout_s: float = 10) -> T:
    """What `use` gives with a client of a server whose connections `serve` handles."""

    async def main() -> T:
        async def quietly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                await serve(reader, writer)
            except (ConnectionError, asyncio.IncompleteReadError):
                pass
            finally:
                writer.close()

        server = await asyncio.start_server(quietly, "127.0.0.1", 0)
        client = Client(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", timeout_s=timeout_s)
        try:
            return await use(client)
        finally:
            client.close()
            server.close()

    return run(main())


async def read_request(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = next((int(x.split(b":")[1]) for x in head.split(b"\r\n") if x.lower().startswith(b"content-length")), 0)
    return head + await reader.readexactly(length)


def test_moments_come_in_order_and_the_connection_is_kept() -> None:
    connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        while True:
            await read_request(reader)
            await asyncio.sleep(0.02)
            writer.write(OK)

    async def use(client: Client) -> list:
        request = post("x", b"p" * 2_000_000, question="a?")
        return [await client.send(request, planned=now() - 0.5) for _ in range(3)]

    for exchange in against(serve, use):
        assert (exchange.status, exchange.body, exchange.error) == (200, b"{}", "")
        assert exchange.planned < exchange.first_byte <= exchange.handed_over < exchange.ended
        assert 0.5 < exchange.latency_s < 5
        assert 0.01 < exchange.reply_s < 5
        assert exchange.late_s >= 0.5
    assert connections == 1


def test_a_body_that_is_not_read_is_not_handed_over() -> None:
    """The last byte counts when the kernel has it: here 20 MB are read only after a while."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.3)
        await read_request(reader)
        writer.write(OK)

    exchange = against(serve, lambda client: client.send(post("x", bytes(20_000_000), question="a?")))
    assert exchange.status == 200
    assert exchange.handed_over - exchange.first_byte > 0.2


def test_a_refusal_before_the_body_was_read() -> None:
    """503 and close while most of the body is still to come; the next request finds a new connection."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if head.startswith(b"GET"):
            writer.write(OK)
            return
        writer.write(b"HTTP/1.1 503 X\r\nRetry-After: 7\r\nConnection: close\r\nContent-Length: 4\r\n\r\nbusy")
        await writer.drain()
        await asyncio.sleep(0.2)

    async def use(client: Client) -> tuple:
        refused = await client.send(post("x", bytes(20_000_000), question="a?"))
        return refused, await client.send(get("x", "/livez"))

    refused, after = against(serve, use)
    assert (refused.status, refused.retry_after, refused.body) == (503, "7", b"busy")
    assert refused.handed_over is None
    assert refused.reply_s == 0
    assert after.status == 200


def test_an_idle_connection_that_the_server_closed_is_no_failure() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(OK)  # and closes, though it did not say so

    async def use(client: Client) -> list:
        return [(await client.send(get("x", "/"))).status for _ in range(5)]

    assert against(serve, use) == [200] * 5


def test_a_body_without_a_length_ends_with_the_connection() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(b"HTTP/1.0 200 OK\r\n\r\nall of it")

    exchange = against(serve, lambda client: client.send(get("x", "/")))
    assert (exchange.status, exchange.body) == (200, b"all of it")


def test_leaving_closes_the_connection() -> None:
    closed: list[float] = []
    started: list[float] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        started.append(now())
        await reader.read()
        closed.append(now())

    async def use(client: Client) -> object:
        exchange = await client.leave(get("x", "/"), 0.2)
        await asyncio.sleep(0.1)
        return exchange

    exchange = against(serve, use)
    assert (exchange.status, exchange.error) == (0, LEFT)
    assert closed[0] - started[0] > 0.1


def test_a_reply_that_never_comes_is_given_up() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        await reader.read()

    exchange = against(serve, lambda client: client.send(get("x", "/")), timeout_s=0.2)
    assert (exchange.status, exchange.error) == (0, TIMED_OUT)
    assert exchange.ended is not None


def test_what_is_no_http_is_an_error() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(b"220 mail.example ESMTP\r\n")

    assert against(serve, lambda client: client.send(get("x", "/"))).error.startswith("bad reply")


def test_many_connections_can_be_opened_beforehand() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(OK)

    async def use(client: Client) -> list:
        await client.open(50)
        return [e.status for e in await asyncio.gather(*(client.send(get("x", "/")) for _ in range(50)))]

    assert against(serve, use) == [200] * 50
