"""Clients that hang up: their questions are given up at once, whenever it is that they go."""

from __future__ import annotations

import asyncio

import pytest

from service.api.disconnect import LINE, Departures, Line, until_disconnect
from service.errors import Code, VQAError
from service.gateway import Caller
from service.scheduling import Urgency


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
    line, begun = Line(), []
    line.lose()

    async def work() -> None:
        begun.append(True)
        await asyncio.sleep(60)

    with pytest.raises(VQAError) as left:
        await asyncio.wait_for(until_disconnect(scope(line), work(), Caller(), Departures()), 5)
    assert left.value.code is Code.CLIENT_CLOSED_REQUEST


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
    async with asyncio.timeout(5):
        while len(ended) < 5:
            await asyncio.sleep(0.001)
    assert ended == [0, 1, 2, 3, 4]
