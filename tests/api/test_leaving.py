"""Clients that hang up: their questions are given up at once, whenever it is that they go."""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
import time

import pytest

from service.api.disconnect import LINE, Departures, Line, until_disconnect
from service.errors import Code, VQAError
from service.gateway import Caller
from service.scheduling import Urgency
from tests.support.backends import ScriptedBackend
from tests.support.pictures import drawn_circle
from tests.support.serving import Running, serving


def scope(line: Line) -> dict[str, object]:
    return {"type": "http", "extensions": {LINE: {LINE: line}}}


async def test_work_whose_client_leaves_is_ended_and_its_questions_given_up_at_once() -> None:
    line, caller, urgency, ended = Line(), Caller(), Urgency(), []

    async def work() -> None:
        caller.waits(urgency)
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.append(True)
            raise

    task = asyncio.ensure_future(until_disconnect(scope(line), work(), caller, Departures()))
    await asyncio.sleep(0)
    line.lose()
    assert urgency.abandoned, "before anything else has run"
    with pytest.raises(VQAError) as left:
        await task
    assert left.value.code is Code.CLIENT_CLOSED_REQUEST
    assert ended == [True]


async def test_a_client_that_had_left_before_the_work_began() -> None:
    line = Line()
    line.lose()

    async def work() -> None:
        await asyncio.sleep(60)

    caller = Caller()
    with pytest.raises(VQAError) as left:
        await asyncio.wait_for(until_disconnect(scope(line), work(), caller, Departures()), 5)
    assert left.value.code is Code.CLIENT_CLOSED_REQUEST
    late = Urgency()
    caller.waits(late)
    assert late.abandoned, "whatever it asks for is given up at once"


async def test_a_result_is_given_though_the_line_is_lost_later() -> None:
    line = Line()

    async def work() -> str:
        return "done"

    assert await until_disconnect(scope(line), work(), Caller(), Departures()) == "done"
    line.lose()
    await asyncio.sleep(0.01)


async def test_a_cancellation_of_the_servers_own_is_none_of_the_clients() -> None:
    async def work() -> None:
        await asyncio.sleep(60)

    task = asyncio.ensure_future(until_disconnect(scope(Line()), work(), Caller(), Departures()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_many_who_leave_at_once_are_ended_one_by_one_beside_those_who_stay() -> None:
    departures, ended = Departures(), []
    for i in range(5):
        departures.add(lambda i=i: ended.append(i))
    await asyncio.sleep(0)
    assert len(ended) == 1
    turns = 0
    while len(ended) < 2:
        await asyncio.sleep(0)
        turns += 1
    assert turns > 5, "others have had their turns in between"
    async with asyncio.timeout(5):
        while len(ended) < 5:
            await asyncio.sleep(0.001)
    assert ended == [0, 1, 2, 3, 4]


async def test_thousands_who_leave_do_not_pile_up() -> None:
    departures, ended = Departures(), []
    for i in range(5_000):
        departures.add(lambda i=i: ended.append(i))
    async with asyncio.timeout(5):
        while len(ended) < 5_000:
            await asyncio.sleep(0.01)
    assert ended == list(range(5_000))


def post(padding: int) -> bytes:
    """A question whose body is longer by `padding` bytes that the picture's decoder does not mind."""
    boundary = b"xx-boundary"
    picture = drawn_circle() + bytes(padding)
    body = b"".join(
        b"--%b\r\nContent-Disposition: form-data; %b\r\n\r\n%b\r\n" % (boundary, name, data)
        for name, data in ((b'name="image"; filename="a.png"', picture), (b'name="question"', b"is it red?"))
    )
    body += b"--%b--\r\n" % boundary
    head = f"POST /answer HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"Content-Type: multipart/form-data; boundary=%b\r\n\r\n" % boundary + body


def send_and_leave(running: Running, data: bytes, backend: ScriptedBackend, asked: int) -> None:
    """Send in one go; once the model is asked, reset the connection."""
    with socket.create_connection(("127.0.0.1", running.port)) as client:
        client.sendall(data)
        until = time.monotonic() + 10
        while len(backend.asked) < asked:
            assert time.monotonic() < until, "the question did not arrive"
            time.sleep(0.01)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def left(running: Running) -> float:
    return running.metric("vqa_questions_total", outcome="client_closed_request")


def await_left(running: Running, count: int) -> None:
    until = time.monotonic() + 5
    while left(running) < count and time.monotonic() < until:
        time.sleep(0.02)
    assert left(running) == count


@pytest.mark.parametrize("padding", [0, 70_000, 200_000, 275_000, 315_000, 360_000, 500_000, 640_000, 1_000_000])
def test_leaving_is_noticed_whatever_the_size_of_the_body(padding: int) -> None:
    backend = ScriptedBackend(sleep_s=30)
    with serving({"classifier": backend}) as running:
        send_and_leave(running, post(padding), backend, 1)
        await_left(running, 1)
        assert backend.cancelled == 1


def test_leaving_with_several_requests_under_way_is_no_fault(caplog: pytest.LogCaptureFixture) -> None:
    backend = ScriptedBackend(sleep_s=30)
    with caplog.at_level(logging.ERROR), serving({"classifier": backend}) as running:
        send_and_leave(running, post(0) + post(0), backend, 1)
        await_left(running, 1)
    assert caplog.records == []
