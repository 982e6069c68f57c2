"""Those who ask the same thing at the same time share the work, and nobody's fate but their own."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable

import pytest

from service.api.disconnect import LINE, Departures, Line, until_disconnect
from service.errors import Code, VQAError
from service.gateway import Caller, Gateway, Picture, Question, Reply
from service.gateway.cache import MemoryCache
from service.scheduling import WorkerThreads
from service.settings import load_settings
from service.telemetry.metrics import Metrics
from tests.support.backends import ScriptedBackend
from tests.support.pictures import drawn_circle

PICTURE = Picture(drawn_circle, size=100)


async def gateway_of(
    backend: ScriptedBackend, threads: WorkerThreads | None = None, **settings: int
) -> tuple[Gateway, Metrics]:
    metrics = Metrics()
    gateway = Gateway(
        load_settings(**settings), {"classifier": backend}, threads or WorkerThreads(1), MemoryCache(0), metrics
    )
    await gateway.start()
    return gateway, metrics


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.005)


async def fate(reply: Awaitable[Reply]) -> Code | str | None:
    try:
        return (await reply).verdict.answer
    except VQAError as error:
        return error.code


def over_a_line(gateway: Gateway, line: Line, departures: Departures, picture: Picture) -> asyncio.Task[Reply]:
    """A question as the route asks it."""
    caller = Caller()
    work = gateway.answer(picture, Question("is it red?"), None, caller)
    scope = {"extensions": {LINE: {LINE: line}}}
    return asyncio.ensure_future(until_disconnect(scope, work, caller, departures))


async def test_who_joins_with_a_later_deadline_is_not_late_with_the_first() -> None:
    threads, gate = WorkerThreads(1), threading.Event()
    gateway, _ = await gateway_of(ScriptedBackend(), threads)
    busy = asyncio.ensure_future(threads.run(lambda: gate.wait(10)))
    await until(lambda: threads.running == 1)
    first = asyncio.ensure_future(gateway.answer(PICTURE, Question("a?"), 100))
    await until(lambda: threads.queued == 1)
    second = asyncio.ensure_future(gateway.answer(PICTURE, Question("a?"), 20_000))
    assert await fate(first) is Code.DEADLINE_EXCEEDED
    gate.set()
    assert await fate(second) == "yes"
    await busy
    await gateway.stop()


async def test_all_who_leave_together_have_left_and_nobody_failed() -> None:
    backend, departures = ScriptedBackend(sleep_s=30), Departures()
    gateway, metrics = await gateway_of(backend)
    lines = [Line() for _ in range(5)]
    asked = [over_a_line(gateway, line, departures, PICTURE) for line in lines]
    await until(lambda: backend.asked)
    for line in lines:
        line.lose()
    assert [await fate(task) for task in asked] == [Code.CLIENT_CLOSED_REQUEST] * 5
    left = metrics.registry.get_sample_value(
        "vqa_questions_total", {"backend": "none", "outcome": "client_closed_request"}
    )
    assert left == 5
    await gateway.stop()


@pytest.mark.parametrize("when", ["before", "meanwhile"])
async def test_nothing_is_done_for_who_left_before_the_work_began(when: str) -> None:
    backend, departures, line = ScriptedBackend(), Departures(), Line()
    gateway, metrics = await gateway_of(backend)

    def load() -> bytes:
        time.sleep(0.05)
        return drawn_circle()

    if when == "before":
        line.lose()
    else:
        # Many others have left, and their requests are ended first.
        for _ in range(100):
            departures.add(lambda: None)
    asked = over_a_line(gateway, line, departures, Picture(load))
    await asyncio.sleep(0.02)
    if when == "meanwhile":
        line.lose()
    assert await fate(asked) is Code.CLIENT_CLOSED_REQUEST
    assert metrics.registry.get_sample_value("vqa_questions_in_flight") == 0
    await asyncio.sleep(0.1)
    assert (len(backend.prepared), backend.asked) == (0, [])
    await gateway.stop()


async def test_what_has_been_decoded_or_is_being_decoded_anyway_is_counted_once() -> None:
    threads, gate = WorkerThreads(1), threading.Event()
    backend = ScriptedBackend(sleep_s=0.2)
    gateway, _ = await gateway_of(backend, threads)
    tickets = gateway._answering._admission._tickets
    busy = asyncio.ensure_future(threads.run(lambda: gate.wait(10)))
    await until(lambda: threads.running == 1)
    asked = [asyncio.ensure_future(gateway.answer(PICTURE, Question("one?")))]
    await until(lambda: len(tickets) == 1)
    asked.append(asyncio.ensure_future(gateway.answer(PICTURE, Question("another?"))))
    await until(lambda: len(tickets) == 2)
    first, second = tickets
    assert (first.decode_s > 0, second.decode_s) == (True, 0), "the same picture is decoded once"
    gate.set()
    await until(lambda: len(backend.asked) == 2)
    assert (first.decode_s, second.decode_s) == (0, 0), "decoding is behind them"
    assert first.inference_s == second.inference_s == backend.pace.cost_s
    assert [await fate(task) for task in asked] == ["yes", "yes"]
    await busy
    await gateway.stop()
