"""Bodies that are too large, too slow or too many (API-12, API-15): refused early, memory flat, connection closed."""

from __future__ import annotations

import base64
import io
import socket
import threading
import time
from collections.abc import Iterator

import numpy as np
import psutil
import pytest
from PIL import Image

from tests.support.backends import ScriptedBackend
from tests.support.pictures import drawn_circle, encoded
from tests.support.serving import Running, serving

LIMIT = 3 * 1024 * 1024


@pytest.fixture(scope="module")
def small() -> Iterator[Running]:
    """A server that takes bodies of 3 MiB and pictures of 2 MiB, for at most a second."""
    with serving(
        {"classifier": ScriptedBackend()},
        max_body_bytes=LIMIT,
        max_image_bytes=2 * 1024 * 1024,
        max_buffered_bytes=2 * LIMIT,
        body_timeout_s=1.0,
    ) as running:
        yield running


def exchange(port: int, head: str, chunks: Iterator[bytes], *, wait_s: float = 10) -> tuple[bytes, int]:
    """Send a raw request while reading; the reply's bytes and how many body bytes were taken."""
    with socket.create_connection(("127.0.0.1", port), timeout=wait_s) as connection:
        connection.sendall(head.encode())
        received, sent, done = bytearray(), 0, threading.Event()

        def read() -> None:
            while data := _recv(connection):
                received.extend(data)
            done.set()

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        try:
            for chunk in chunks:
                if done.is_set():
                    break
                connection.sendall(chunk)
                sent += len(chunk)
        except OSError:
            pass  # the server closed, as it should
        assert done.wait(wait_s), "the connection was not closed"
        return bytes(received), sent


def _recv(connection: socket.socket) -> bytes:
    try:
        return connection.recv(65536)
    except OSError:
        return b""


def post(extra: str) -> str:
    return f"POST /answer HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n{extra}\r\n\r\n"


def test_an_announced_length_above_the_limit_is_refused_before_the_body(small: Running) -> None:
    started = time.perf_counter()
    reply, _ = exchange(small.port, post(f"Content-Length: {LIMIT + 1}"), iter(()))
    assert reply.startswith(b"HTTP/1.1 413")
    assert b"body_too_large" in reply
    assert b"connection: close" in reply.lower()
    assert time.perf_counter() - started < 5


def test_a_client_that_sends_it_all_the_same_still_reads_the_reply(small: Running) -> None:
    body = b"x" * (LIMIT + 1)
    reply, sent = exchange(small.port, post(f"Content-Length: {len(body)}"), iter([body]))
    assert sent == len(body)
    assert reply.startswith(b"HTTP/1.1 413")


def test_an_endless_chunked_body_is_refused_and_memory_stays_flat(small: Running) -> None:
    process = psutil.Process()
    chunk = b"10000\r\n" + b"A" * 65536 + b"\r\n"
    before = process.memory_info().rss
    peak = [before]

    def endless() -> Iterator[bytes]:
        while True:
            peak[0] = max(peak[0], process.memory_info().rss)
            yield chunk

    reply, sent = exchange(small.port, post("Transfer-Encoding: chunked"), endless())
    assert reply.startswith(b"HTTP/1.1 413")
    assert sent > LIMIT
    assert peak[0] - before < 48 * 1024 * 1024


def test_a_body_shorter_than_announced_times_out(small: Running) -> None:
    reply, _ = exchange(small.port, post("Content-Length: 1000"), iter([b'{"question": ']))
    assert reply.startswith(b"HTTP/1.1 408")
    assert b"body_timeout" in reply


def test_a_lying_small_content_length_harms_nobody(small: Running) -> None:
    reply, _ = exchange(small.port, post("Content-Length: 2") + "{}trailing", iter([b"\r\n\r\n"]))
    # What follows the announced bytes is no HTTP request: the server answers that, in whichever order it reads.
    assert reply.startswith(b"HTTP/1.1 4")
    assert small.client.get("/livez").status_code == 200


def test_bodies_together_are_bounded(small: Running) -> None:
    """Two bodies fill the budget; a third is refused with 503 and `Retry-After`, and the budget comes back."""
    body = b"x" * (LIMIT - 1)
    head = post(f"Content-Length: {LIMIT}")
    waiting = [socket.create_connection(("127.0.0.1", small.port)) for _ in range(2)]
    try:
        for connection in waiting:
            connection.sendall(head.encode() + body)
        wait_until(lambda: small.metric("vqa_buffered_bytes") == 2 * len(body))
        refused = small.client.post("/answer", files={"image": drawn_circle()}, data={"question": "is it red?"})
        assert refused.status_code == 503
        assert refused.json()["code"] == "saturated"
        assert int(refused.headers["Retry-After"]) >= 1
    finally:
        for connection in waiting:
            connection.close()
    wait_until(lambda: small.metric("vqa_buffered_bytes") == 0)
    assert small.client.post("/answer", files={"image": drawn_circle()}, data={"question": "red?"}).status_code == 200


def wait_until(condition, seconds: float = 5) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.02)


def test_a_compressed_body_is_refused(small: Running) -> None:
    reply = small.client.post(
        "/answer", content=b"x", headers={"Content-Type": "application/json", "Content-Encoding": "gzip"}
    )
    assert reply.status_code == 415


def noise_png(side: int) -> bytes:
    return encoded(Image.fromarray(np.random.default_rng(0).integers(0, 256, (side, side, 3), dtype=np.uint8)))


@pytest.mark.parametrize("field", ["image", "image_base64"])
def test_base64_in_a_form_field_above_a_mebibyte(small: Running, field: str) -> None:
    """API-15: a text part of 1.5 MB, not a file."""
    data = noise_png(600)
    assert len(data) > 1024 * 1024
    text = base64.b64encode(data).decode()
    reply = small.client.post("/answer", files={field: (None, text), "question": (None, "what is it?")})
    assert reply.status_code == 200, reply.text
    assert [reply.json()["image"]["width"], reply.json()["image"]["height"]] == [600, 600]


def test_a_picture_above_its_limit_is_413_with_the_limit(small: Running) -> None:
    data = noise_png(860)
    assert 2 * 1024 * 1024 < len(data) < LIMIT
    reply = small.client.post("/answer", files={"image": ("a.png", io.BytesIO(data))}, data={"question": "what is it?"})
    assert reply.status_code == 413
    assert reply.json()["code"] == "image_too_large"
    assert reply.json()["field"] == "image"
