"""The cache as a caller sees it: the same question again is answered without the model, unless told otherwise."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import httpx
import pytest

from tests.support.backends import ScriptedBackend
from tests.support.cases import cases
from tests.support.pictures import drawn_circle
from tests.support.serving import Running, serving

SAME = ("answer", "confidence", "candidates", "answerable", "answerability", "raw_answer", "warnings", "image", "model")


def ask(running: Running, question: str = "what color is the shape?", **given: object) -> httpx.Response:
    headers = given.pop("headers", None)
    picture = given.pop("picture", None) or drawn_circle()
    return running.client.post(
        "/answer", files={"image": picture}, data={"question": question, **given}, headers=headers
    )


@pytest.fixture(scope="module")
def running():
    with serving() as server:
        yield server


def test_the_second_reply_is_the_first_one_again(running: Running) -> None:
    before = running.metric("vqa_batch_size_sum")
    first, second = ask(running).json(), ask(running, question="  what color is\tthe shape? ").json()
    assert (first["cached"], second["cached"]) == (False, True)
    assert {key: first[key] for key in SAME} == {key: second[key] for key in SAME}
    assert second["timings_ms"]["inference"] == second["timings_ms"]["decode"] == 0
    assert running.metric("vqa_batch_size_sum") == before + 1
    assert running.metric("vqa_cache_lookups_total", result="hit") >= 1
    assert running.metric("vqa_cache_bytes") > 0


def test_top_k_risk_and_spelling_stay_each_callers_own(running: Running) -> None:
    question = "is it a circle or a triangle, my friend?"
    first = ask(running, question, choices="Circle, triangle").json()
    second = ask(running, question, choices="CIRCLE, Triangle", top_k=1).json()
    assert second["cached"]
    assert len(second["candidates"]) == 1
    assert second["answer"].lower() == first["answer"].lower()
    assert second["answer"] in ("CIRCLE", "Triangle", "unanswerable")
    assert not ask(running, question, choices="circle, rectangle").json()["cached"]


@pytest.mark.parametrize(
    "pair",
    [
        ("same_bytes_150x30.png", "same_bytes_30x150.png"),
        ("shared_prefix_blue_tail.png", "shared_prefix_red_tail.png"),
    ],
)
def test_pictures_that_look_alike_to_a_lazy_key_are_two_pictures(running: Running, pair: tuple[str, str]) -> None:
    """VLLM-03: equal pixel buffers in another shape, and files that begin with the same 8 KiB."""
    pictures = {case.name: case for case in cases("image") if case.case == "VLLM-03"}
    replies = [ask(running, picture=pictures[name].data).json() for name in pair]
    assert [reply["cached"] for reply in replies] == [False, False]
    for name, reply in zip(pair, replies, strict=True):
        assert [reply["image"]["width"], reply["image"]["height"]] == pictures[name].expected["decoded_size"]
        again = ask(running, picture=pictures[name].data).json()
        assert again["cached"]
        assert again["image"] == reply["image"]
        assert again["candidates"] == reply["candidates"]


def test_other_pictures_and_questions_are_other_answers(running: Running) -> None:
    ask(running)
    assert not ask(running, picture=drawn_circle("blue")).json()["cached"]
    assert not ask(running, question="what colour is the shape?").json()["cached"]


def test_no_cache_asks_anew_and_keeps_the_answer(running: Running) -> None:
    question = "is there a red shape?"
    assert not ask(running, question, headers={"Cache-Control": "no-cache"}).json()["cached"]
    assert ask(running, question).json()["cached"]
    assert not ask(running, question, headers={"Cache-Control": "no-cache"}).json()["cached"]


def test_no_store_leaves_nothing_behind(running: Running) -> None:
    question = "is there a green shape?"
    assert not ask(running, question, headers={"Cache-Control": "no-store"}).json()["cached"]
    assert not ask(running, question).json()["cached"]


def test_a_thousand_identical_questions_are_one_inference() -> None:
    backend, gate = ScriptedBackend(), threading.Event()
    prepare = backend.prepare
    # Held until all have come, so that they are under way together.
    backend.prepare = lambda image: (gate.wait(60), prepare(image))[1]
    with serving({"classifier": backend}, max_in_flight=8, max_questions=8) as server:
        limits = httpx.Limits(max_connections=1000)
        with httpx.Client(base_url=server.url, timeout=60, limits=limits) as client, ThreadPoolExecutor(200) as pool:
            body = {"question": "is it red?"}
            one = partial(client.post, "/answers", files={"image": drawn_circle()})
            # Five in each request: those of one request are the same question as well.
            replies = [
                pool.submit(one, data={"questions": str([body["question"]] * 5).replace("'", '"')}) for _ in range(200)
            ]
            until = time.monotonic() + 60
            while server.metric("vqa_cache_lookups_total", result="coalesced") < 999:
                assert time.monotonic() < until, "they did not come together"
                time.sleep(0.05)
            gate.set()
            results = [item["result"]["answer"] for reply in replies for item in reply.result().json()["results"]]
    assert results == ["yes"] * 1000
    assert len(backend.asked) == len(backend.prepared) == 1
