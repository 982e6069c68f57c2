"""The gateway without HTTP: what concerns all questions is raised, what concerns one is its own outcome."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

import pytest

from service.errors import Code, ImageError, VQAError
from service.gateway import Gateway, Picture, Question, Reply
from service.gateway.cache import MemoryCache
from service.scheduling import WorkerThreads
from service.settings import load_settings
from service.telemetry.metrics import Metrics
from tests.support.backends import ScriptedBackend
from tests.support.pictures import drawn_circle

PICTURE = Picture(drawn_circle)


async def made(*backends: ScriptedBackend, **flags: object) -> tuple[Gateway, Metrics]:
    metrics = Metrics()
    by_name = {backend.name: backend for backend in backends}
    gateway = Gateway(load_settings(**flags), by_name, WorkerThreads(2), MemoryCache(0), metrics)
    await gateway.start()
    return gateway, metrics


def count(metrics: Metrics, **labels: str) -> float:
    return metrics.registry.get_sample_value("vqa_questions_total", labels) or 0.0


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.005)


async def test_one_late_question_does_not_spoil_its_neighbours() -> None:
    backend = ScriptedBackend(sleep_s=30)
    backend.quick = {"first?", "third?"}
    gateway, metrics = await made(backend)
    started = time.monotonic()
    outcomes = await gateway.answer_all(PICTURE, [Question("first?"), Question("late?"), Question("third?")], 300)
    assert time.monotonic() - started < 5
    assert isinstance(outcomes[0], Reply)
    assert isinstance(outcomes[2], Reply)
    assert outcomes[1].code is Code.DEADLINE_EXCEEDED
    assert count(metrics, backend="classifier", outcome="answered") == 2
    assert count(metrics, backend="classifier", outcome="deadline_exceeded") == 1


async def test_where_all_are_late_the_request_is() -> None:
    gateway, _ = await made(ScriptedBackend(sleep_s=30))
    with pytest.raises(VQAError) as refused:
        await gateway.answer_all(PICTURE, [Question("a?"), Question("b?")], 100)
    assert refused.value.code is Code.DEADLINE_EXCEEDED


async def test_the_deadline_covers_decoding() -> None:
    gateway, metrics = await made(ScriptedBackend())

    def slow() -> bytes:
        time.sleep(1)
        return drawn_circle()

    with pytest.raises(VQAError) as refused:
        await gateway.answer(Picture(slow), Question("a?"), 100)
    assert refused.value.code is Code.DEADLINE_EXCEEDED
    assert count(metrics, backend="none", outcome="deadline_exceeded") == 1


async def test_a_time_out_inside_a_backend_is_the_backends_fault() -> None:
    gateway, _ = await made(ScriptedBackend(error=TimeoutError("the engine's own")))
    with pytest.raises(VQAError) as refused:
        await gateway.answer(PICTURE, Question("a?"))
    assert refused.value.code is Code.BACKEND_FAILED


async def test_a_backend_that_cannot_prepare_fails_alone() -> None:
    classifier = ScriptedBackend(prepare_error=RuntimeError("no memory"))
    generator = ScriptedBackend(name="generator", model="g")
    gateway, metrics = await made(classifier, generator)
    outcomes = await gateway.answer_all(PICTURE, [Question("a?"), Question("b?", policy="generator")])
    assert outcomes[0].code is Code.BACKEND_FAILED
    assert isinstance(outcomes[1], Reply)
    assert count(metrics, backend="classifier", outcome="backend_failed") == 1


async def test_a_picture_for_which_memory_is_lacking_is_too_large() -> None:
    gateway, _ = await made(ScriptedBackend(prepare_error=MemoryError()))
    with pytest.raises(VQAError) as refused:
        await gateway.answer(PICTURE, Question("a?"))
    assert (refused.value.code, refused.value.field) == (Code.IMAGE_TOO_LARGE, "image")


async def test_one_error_shared_by_questions_stays_as_it_was() -> None:
    shared = VQAError(Code.BACKEND_FAILED, "It failed.", field="question")
    gateway, _ = await made(ScriptedBackend(error=shared))
    outcomes = await gateway.answer_all(PICTURE, [Question("a?"), Question("b?")])
    assert [outcome.below("questions[1]").field for outcome in outcomes] == ["questions[1].question"] * 2
    assert shared.field == "question"


async def test_bad_questions_keep_their_place_and_a_picture_is_decoded_once() -> None:
    loads = []
    backend = ScriptedBackend()
    gateway, _ = await made(backend)
    refused = VQAError(Code.INVALID_FIELD, "Refused at the door.")
    outcomes = await gateway.answer_all(
        Picture(lambda: loads.append(1) or drawn_circle()), [Question("a?"), refused, Question(" "), Question("d?")]
    )
    assert [getattr(o, "code", "answered") for o in outcomes] == [
        "answered",
        Code.INVALID_FIELD,
        Code.QUESTION_EMPTY,
        "answered",
    ]
    assert len(loads) == len(backend.prepared) == 1


async def test_a_bad_picture_is_everybodys_and_names_its_field() -> None:
    gateway, metrics = await made(ScriptedBackend())
    with pytest.raises(ImageError) as refused:
        await gateway.answer_all(Picture(lambda: b"", "image.base64"), [Question("a?"), Question("b?")])
    assert (refused.value.code, refused.value.field) == (Code.IMAGE_EMPTY, "image.base64")
    assert count(metrics, backend="none", outcome="image_empty") == 2


async def test_a_caller_that_leaves_while_its_picture_is_prepared() -> None:
    backend, gate = ScriptedBackend(), threading.Event()
    prepare = backend.prepare
    backend.prepare = lambda image: (gate.wait(5), prepare(image))[1]
    gateway, metrics = await made(backend)
    task = asyncio.ensure_future(gateway.answer(PICTURE, Question("a?")))
    await until(lambda: metrics.registry.get_sample_value("vqa_questions_in_flight") == 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: metrics.registry.get_sample_value("vqa_questions_in_flight") == 0)
    gate.set()
    assert count(metrics, backend="none", outcome="client_closed_request") == 1
    assert backend.asked == [], "nothing was asked of the model for somebody who had gone"
    assert isinstance(await gateway.answer(PICTURE, Question("b?")), Reply)


async def test_each_question_is_counted_once_though_the_caller_leaves_half_way() -> None:
    backend = ScriptedBackend(sleep_s=30)
    backend.quick = {"quick?"}
    gateway, metrics = await made(backend)
    task = asyncio.ensure_future(gateway.answer_all(PICTURE, [Question("quick?"), Question("slow?"), Question(" ")]))
    async with asyncio.timeout(5):
        while len(backend.asked) < 2:
            await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    counted = [s.value for m in metrics.questions.collect() for s in m.samples if s.name == "vqa_questions_total"]
    assert sum(counted) == 3


async def test_faults_of_ours_are_counted_and_seen() -> None:
    gateway, metrics = await made(ScriptedBackend())

    def broken() -> bytes:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await gateway.answer(Picture(broken), Question("a?"))
    assert count(metrics, backend="none", outcome="internal_error") == 1
    assert metrics.registry.get_sample_value("vqa_questions_in_flight") == 0


async def test_many_choices_do_not_hold_the_event_loop() -> None:
    """64 questions with the same 4,096 choices: one set, made in a thread."""
    gateway, _ = await made(ScriptedBackend(), policy="classifier")
    choices = tuple(f"choice number {i} {'x' * 150}" for i in range(4096))
    lags: list[float] = []

    async def watch() -> None:
        while True:
            planned = time.perf_counter() + 0.01
            await asyncio.sleep(0.01)
            lags.append(time.perf_counter() - planned)

    watcher = asyncio.ensure_future(watch())
    outcomes = await gateway.answer_all(PICTURE, [Question("a?", choices=choices)] * 64)
    watcher.cancel()
    assert {outcome.code for outcome in outcomes} == {Code.CHOICES_OUTSIDE_VOCABULARY}
    assert len(lags) >= 3, "the loop went on meanwhile"


async def test_gateway_stops_with_its_backends() -> None:
    backend = ScriptedBackend()
    gateway, _ = await made(backend)
    assert gateway.ready()
    await gateway.stop()
    assert not gateway.ready()
    assert backend.health().state == "stopped"
