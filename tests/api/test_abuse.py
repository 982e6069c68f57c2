"""Requests made to hurt: structures that swell, heads without end, clients that say nothing."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import psutil
import pytest

from service.api import protocol
from tests.support.backends import ScriptedBackend
from tests.support.pictures import drawn_circle
from tests.support.serving import Running, serving

MIB = 2**20
HEADERS = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with serving({"classifier": ScriptedBackend()}) as server:
        yield server


def many_keys() -> bytes:
    return ('{"question": "x", ' + ", ".join(f'"{i:07}": 0' for i in range(1_500_000)) + "}").encode()


BOMBS: dict[str, Callable[[], bytes]] = {
    "unknown keys": many_keys,
    "empty lists": lambda: b'{"questions": [' + b"[]," * (9 * MIB) + b"[]]}",
    "empty objects": lambda: b'{"choices": [' + b"{}," * (9 * MIB) + b"{}]}",
    "deep": lambda: b'{"image":' * (3 * MIB),
    "one long key": lambda: b'{"' + b"k" * (26 * MIB) + b'": 0}',
    "one long value": lambda: b'{"model": "' + b"v" * (26 * MIB) + b'"}',
    "long data URL of escapes": lambda: b'{"question": "x", "image": "data:image/png,' + b"%41" * (8 * MIB) + b'"}',
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_body_that_swells_is_refused_cheaply(running: Running, name: str) -> None:
    """Everybody else's requests go on, and memory stays near what was sent."""
    body = BOMBS[name]()
    process = psutil.Process()
    before = process.memory_info().rss
    peak, slowest, done = before, 0.0, threading.Event()

    def watch() -> None:
        nonlocal peak, slowest
        with socket.create_connection(("127.0.0.1", running.port)) as connection:
            while not done.is_set():
                started = time.perf_counter()
                connection.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
                connection.recv(4096)
                slowest = max(slowest, time.perf_counter() - started)
                peak = max(peak, process.memory_info().rss)
                time.sleep(0.005)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        reply = running.client.post("/answer", content=body, headers=HEADERS)
    finally:
        done.set()
        watcher.join()
    assert 400 <= reply.status_code < 500
    assert len(reply.content) < 4096
    assert peak - before < 8 * len(body) + 64 * MIB
    assert slowest < 2


def exchange(port: int, data: bytes, *, wait_s: float = 10) -> bytes:
    """Send bytes and read until the server closes or the reply is whole."""
    with socket.create_connection(("127.0.0.1", port), timeout=wait_s) as connection:
        received = bytearray()
        with suppress(OSError):  # the server may hang up before it has read all
            connection.sendall(data)
        with suppress(ConnectionResetError):
            while chunk := connection.recv(65536):
                received += chunk
                head, end, body = received.partition(b"\r\n\r\n")
                if end and f"content-length: {len(body)}\r\n".encode() in head.lower() + b"\r\n":
                    break
        return bytes(received)


@pytest.mark.parametrize(
    "head",
    [
        b"GET /livez HTTP/1.1\r\n" + b"x-pad: " + b"a" * (2 * MIB),
        b"GET /livez HTTP/1.1\r\n" + b"".join(b"x-%d: a\r\n" % i for i in range(20_000)),
        b"GET /" + b"a" * (2 * MIB) + b" HTTP/1.1\r\n",
    ],
    ids=["one header", "many headers", "path"],
)
def test_a_head_without_end_is_431(running: Running, head: bytes) -> None:
    reply = exchange(running.port, head)
    assert reply.startswith((b"HTTP/1.1 431", b"HTTP/1.1 400")) or reply == b""
    assert running.client.get("/livez").status_code == 200


def test_a_head_of_ordinary_size_passes(running: Running) -> None:
    headers = {f"x-{i}": "a" * 1000 for i in range(30)}
    assert running.client.get("/livez", headers=headers).status_code == 200


@pytest.mark.parametrize("start", [b"", b"GET /livez HTT", b"GET /livez HTTP/1.1\r\nHost: x\r\n"])
def test_a_client_that_never_finishes_its_head_is_hung_up_on(
    running: Running, monkeypatch: pytest.MonkeyPatch, start: bytes
) -> None:
    monkeypatch.setattr(protocol, "HEAD_TIMEOUT_S", 0.3)
    with socket.create_connection(("127.0.0.1", running.port), timeout=10) as connection:
        connection.sendall(start)
        assert connection.recv(4096) == b""


def test_the_time_for_a_head_does_not_run_while_a_body_is_sent(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "HEAD_TIMEOUT_S", 0.3)
    with socket.create_connection(("127.0.0.1", running.port), timeout=10) as connection:
        head = b"POST /answer HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n"
        connection.sendall(head + b"{")
        time.sleep(0.8)
        connection.sendall(b"}")
        assert connection.recv(4096).startswith(b"HTTP/1.1 422")


def test_what_is_no_http_gets_a_problem(running: Running) -> None:
    reply = exchange(running.port, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n")
    assert reply.startswith(b"HTTP/1.1 400")
    head, _, body = reply.partition(b"\r\n\r\n")
    problem = json.loads(body)
    assert problem["code"] == "bad_request"
    assert f"x-request-id: {problem['request_id']}".encode() in head


def test_a_client_that_offers_http_2_is_answered_in_http_1(running: Running) -> None:
    """As Java's HttpClient sends it over plain HTTP; a parser that switches would drop the body."""
    body = json.dumps({"question": "is it red?", "image": "data:,"}).encode()
    head = (
        b"POST /answer HTTP/1.1\r\nConnection: Upgrade, HTTP2-Settings\r\nContent-Length: %d\r\nHost: x\r\n"
        b"HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA\r\nUpgrade: h2c\r\n"
        b"Content-Type: application/json\r\n\r\n" % len(body)
    )
    reply = exchange(running.port, head + body)
    assert reply.startswith(b"HTTP/1.1 400")
    assert b"image_empty" in reply, "the body was read"


def test_another_upgrade_is_ignored_too(running: Running) -> None:
    head = b"POST /answer HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 2\r\n"
    reply = exchange(running.port, head + b"Content-Type: application/json\r\n\r\n{}")
    assert reply.startswith(b"HTTP/1.1 422")
    assert b"missing_field" in reply


def test_a_head_in_pieces_is_one_head(running: Running) -> None:
    """The offer is taken out wherever the network cuts the head, and the connection serves the next request."""
    body = b'{"question": "is it red?"}'
    head = (
        b"POST /answer HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: h2c\r\n"
        b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
    )
    with socket.create_connection(("127.0.0.1", running.port), timeout=10) as connection:
        for data in (head + body, head + body):
            for at in range(0, len(data), 17):
                connection.sendall(data[at : at + 17])
                time.sleep(0.002)
            assert b"missing_field" in connection.recv(65536)


def test_the_time_for_a_head_runs_for_each_head(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "HEAD_TIMEOUT_S", 0.5)
    with socket.create_connection(("127.0.0.1", running.port), timeout=10) as connection:
        connection.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
        assert connection.recv(4096).startswith(b"HTTP/1.1 200")
        connection.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\nX-Slow: ")
        started = time.monotonic()
        with suppress(OSError):
            while time.monotonic() - started < 5 and connection.send(b"a"):
                time.sleep(0.05)
        assert time.monotonic() - started < 4


def test_a_large_body_that_nobody_reads_is_not_read_for_ever(running: Running) -> None:
    """A refusal that comes before the body: the reply arrives, then the connection closes."""
    head = b"POST /answer HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: 100000000000\r\n\r\n"
    with socket.create_connection(("127.0.0.1", running.port), timeout=10) as connection:
        connection.sendall(head)
        assert connection.recv(4096).startswith(b"HTTP/1.1 415")
        started = time.monotonic()
        with suppress(OSError):
            while time.monotonic() - started < 20:
                connection.sendall(b"x" * 65536)
                time.sleep(0.01)
        assert time.monotonic() - started < 15


def test_a_small_body_that_nobody_reads_costs_no_connection(running: Running) -> None:
    with socket.create_connection(("127.0.0.1", running.port), timeout=10) as connection:
        for _ in range(3):
            connection.sendall(b"POST /nope HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello")
            assert connection.recv(65536).startswith(b"HTTP/1.1 404")


def test_many_idle_connections_harm_nobody(running: Running) -> None:
    idle = [socket.create_connection(("127.0.0.1", running.port)) for _ in range(200)]
    try:
        files, data = {"image": drawn_circle()}, {"question": "is it red?"}
        assert running.client.post("/answer", files=files, data=data).status_code == 200
    finally:
        for connection in idle:
            connection.close()
