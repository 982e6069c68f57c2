"""The two ways to ask give the same; and what a server's bad moments mean for a run."""

from __future__ import annotations

import asyncio
import dataclasses
import socket
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from service.evaluation.records import Example, Prediction
from service.evaluation.running import runner
from service.evaluation.running.asker import Asker, Later, Outcome, RunError
from service.evaluation.running.journal import Journal
from service.evaluation.running.local import LocalAsker
from service.evaluation.running.remote import ServerAsker
from service.evaluation.running.runner import Pace, ask_view
from service.evaluation.running.views import Sighted
from service.scoring.scores import QuestionId
from service.settings import load_settings
from tests.support.pictures import drawn_circle
from tests.support.serving import Running, serving
from tests.support.stub_service import Reply, answered, problem, stub_service

QUESTIONS = [(1, "what color is the circle?"), (2, ""), (3, "is there a circle?"), (4, "x" * 2000)]


async def outcomes(asker: Asker, picture: bytes, questions: list[tuple[int, str]]) -> list[Prediction | Later]:
    try:
        await asker.start()
        return list(await asker.ask(picture, questions))
    finally:
        await asker.close()


def without_times(prediction: Prediction | Later) -> Prediction:
    assert isinstance(prediction, Prediction)
    return dataclasses.replace(
        prediction, cached=False, decode_ms=None, queue_ms=None, inference_ms=None, total_ms=None
    )


async def test_both_ways_give_the_same(served: Running) -> None:
    picture = drawn_circle("blue")
    here = await outcomes(LocalAsker(load_settings(), 1), picture, QUESTIONS)
    there = await outcomes(ServerAsker(served.url), picture, QUESTIONS)
    assert [without_times(each) for each in here] == [without_times(each) for each in there]
    assert [each.answer for each in here] == ["blue", None, "yes", None]
    assert [each.error for each in here] == [None, "question_empty", None, "question_too_long"]
    first = here[0]
    assert isinstance(first, Prediction)
    assert first.confidence is not None
    assert first.confidence > 0.9
    assert first.total_ms
    assert len(first.candidates) == 10
    assert (first.width, first.height, first.model) == (64, 64, "vilt-shapes")


@pytest.mark.parametrize("picture", [b"", b"no picture", drawn_circle()[:-30]], ids=["empty", "text", "cut"])
async def test_a_bad_picture_is_each_questions_error_either_way(served: Running, picture: bytes) -> None:
    here = await outcomes(LocalAsker(load_settings(), 1), picture, QUESTIONS[::2])
    there = await outcomes(ServerAsker(served.url), picture, QUESTIONS[::2])
    assert here == there
    assert all(isinstance(each, Prediction) and each.error for each in here)


async def test_a_server_with_lower_limits_is_asked_within_them() -> None:
    with serving(max_questions=3, max_timeout_ms=5000, default_timeout_ms=5000) as running:
        asker = ServerAsker(running.url)
        questions = [(number, "is there a circle?") for number in range(8)]
        got = await outcomes(asker, drawn_circle(), questions)
    assert [each.question_id for each in got] == list(range(8))
    assert {each.answer for each in got if isinstance(each, Prediction)} == {"yes"}


@pytest.mark.parametrize("limits", [{"timeout_ms": 5000}, {"questions": 2}, {"timeout_ms": 5000, "questions": 2}])
async def test_a_server_that_refuses_what_it_asked_for_stops_the_run(limits: dict[str, int]) -> None:
    """It names its limits in turn, and lower ones each time."""
    names = list(limits)

    def reply(number: int, _: list[str]) -> Reply:
        name = names[number % len(names)]
        return 422, {}, problem(422, "invalid_field", field=name, limit=max(1, limits[name] - number))

    with stub_service(reply) as stub:
        with pytest.raises(RunError, match="invalid_field"):
            await outcomes(ServerAsker(stub.url), drawn_circle(), QUESTIONS)
        assert len(stub.requests) <= 1 + len(limits)


async def test_a_picture_beyond_the_servers_limit_is_each_questions_error() -> None:
    with serving(max_body_bytes=1 << 20) as running:
        got = await outcomes(ServerAsker(running.url), bytes(8 << 20), QUESTIONS[:2])
    assert [each.error for each in got if isinstance(each, Prediction)] == ["body_too_large"] * 2


async def test_a_key_is_sent_and_missed(tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text("us:0123456789abcdef\n")
    with serving(api_keys=keys) as running:
        got = await outcomes(ServerAsker(running.url, key="0123456789abcdef"), drawn_circle(), QUESTIONS[:1])
        assert isinstance(got[0], Prediction)
        with pytest.raises(RunError, match="unauthorized"):
            await outcomes(ServerAsker(running.url), drawn_circle(), QUESTIONS[:1])


@pytest.mark.parametrize(
    ("options", "says"), [({"model": "nope"}, "unknown_model"), ({"policy": "generator"}, "generator_unavailable")]
)
async def test_what_is_wrong_for_all_stops_the_run(served: Running, options: dict[str, str], says: str) -> None:
    with pytest.raises(RunError, match=says):
        await outcomes(ServerAsker(served.url, **options), drawn_circle(), QUESTIONS[:1])


@pytest.mark.parametrize("reply", [b"<html>", {}, [], {"results": []}, {"results": [{"result": {}}]}, {"models": 3}])
async def test_what_is_no_vqa_service_stops_the_run(reply: object) -> None:
    with stub_service(lambda *_: (200, {}, reply)) as stub, pytest.raises(RunError, match="no VQA service"):
        await outcomes(ServerAsker(stub.url), b"x", QUESTIONS[:1])


class Asked:
    """A run over a stub server: one picture with questions a, b and c."""

    def __init__(self, folder: Path) -> None:
        picture = folder / "a.png"
        picture.write_bytes(b"x")
        self.examples = [Example(name, picture, name, ("x",)) for name in "abc"]
        self.journal = Journal(folder / "predictions.jsonl")
        self.stopping = asyncio.Event()

    async def run(self, url: str, patience_s: float = 30.0) -> list[Prediction | None]:
        asker = ServerAsker(url)
        try:
            with self.journal:
                await ask_view(
                    asker,
                    Sighted(),
                    self.examples,
                    self.journal,
                    pace=Pace(2, patience_s),
                    stopping=self.stopping,
                )
                return [self.journal.get(example.question_id) for example in self.examples]
        finally:
            await asker.close()


@pytest.fixture
def asked(tmp_path: Path) -> Asked:
    return Asked(tmp_path)


def all_answered(questions: list[str]) -> Reply:
    return 200, {}, {"id": "x", "results": [answered(question.upper()) for question in questions]}


def said(predictions: list[Prediction | None]) -> list[str | None]:
    return [None if each is None else each.answer or each.error for each in predictions]


@pytest.mark.parametrize(
    "refusal",
    [
        (503, {"Retry-After": "1"}, problem(503, "saturated")),
        (429, {"Retry-After": "1"}, problem(429, "quota_exceeded")),
        (503, {"Retry-After": "1"}, b"<html>a proxy's</html>"),
    ],
)
async def test_a_refusal_is_asked_again_when_the_server_says(asked: Asked, refusal: Reply) -> None:
    began = time.monotonic()
    with stub_service(lambda number, questions: all_answered(questions) if number else refusal) as stub:
        assert said(await asked.run(stub.url)) == ["A", "B", "C"]
    assert time.monotonic() - began >= 1
    assert stub.requests == [["a", "b", "c"]] * 2


async def test_only_what_was_refused_is_asked_again(asked: Asked) -> None:
    def reply(number: int, questions: list[str]) -> Reply:
        if number:
            return all_answered(questions)
        saturated = {"problem": problem(503, "saturated", retry_after_s=0.1)}
        bad = {"problem": problem(422, "question_too_long")}
        return 200, {}, {"id": "x", "results": [answered("A"), saturated, bad]}

    with stub_service(reply) as stub:
        assert said(await asked.run(stub.url)) == ["A", "B", "question_too_long"]
    assert stub.requests == [["a", "b", "c"], ["b"]]


async def test_a_deadline_that_passes_three_times_is_an_error(asked: Asked) -> None:
    late = (504, {}, problem(504, "deadline_exceeded"))
    with stub_service(lambda *_: late) as stub:
        assert said(await asked.run(stub.url)) == ["deadline_exceeded"] * 3
    assert len(stub.requests) == 3


async def test_a_server_that_stays_away_stops_the_run_and_what_came_is_kept(asked: Asked) -> None:
    def reply(number: int, questions: list[str]) -> Reply:
        saturated = {"problem": problem(503, "saturated", retry_after_s=0.1)}
        return 200, {}, {"id": "x", "results": [answered("A") if name == "a" else saturated for name in questions]}

    with stub_service(reply) as stub, pytest.raises(RunError, match=r"no answer for 0\.5 s \(saturated"):
        await asked.run(stub.url, patience_s=0.5)
    with Journal(asked.journal.path) as journal:
        assert [name in journal for name in "abc"] == [True, False, False]


async def test_a_server_that_is_not_there_is_tried_for_a_while(asked: Asked) -> None:
    with pytest.raises(RunError, match=r"no answer for 0\.3 s \(unreachable"):
        await asked.run("http://127.0.0.1:9", patience_s=0.3)


async def test_a_server_that_comes_back_is_asked_again(asked: Asked) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    running = asyncio.create_task(asked.run(f"http://127.0.0.1:{port}"))
    await asyncio.sleep(0.3)
    with stub_service(lambda _, questions: all_answered(questions), port=port):
        assert said(await running) == ["A", "B", "C"]


async def test_a_picture_that_breaks_the_connection_fails_alone(asked: Asked) -> None:
    """The server answers others all the while."""
    with stub_service(lambda *_: None) as stub:
        assert said(await asked.run(stub.url, patience_s=0.3)) == ["unreachable"] * 3


async def test_stopping_ends_the_waiting(asked: Asked) -> None:
    began = time.monotonic()
    refusal = (503, {"Retry-After": "30"}, problem(503, "saturated"))
    with stub_service(lambda *_: refusal) as stub:
        asyncio.get_running_loop().call_later(0.3, asked.stopping.set)
        assert said(await asked.run(stub.url)) == [None] * 3
    assert time.monotonic() - began < 20


class Slow:
    """Takes a while for each picture, the longer the later it comes."""

    place = "here"

    def __init__(self, seconds: list[float]) -> None:
        self._seconds = iter(seconds)

    async def start(self) -> None:
        pass

    async def models(self) -> list[dict[str, Any]]:
        return []

    async def ask(self, picture: bytes, questions: Sequence[tuple[QuestionId, str]]) -> list[Outcome]:
        await asyncio.sleep(next(self._seconds))
        return [Prediction(question_id, answer="x") for question_id, _ in questions]

    async def close(self) -> None:
        pass


async def test_all_that_is_under_way_shares_one_grace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "GRACE_S", 1.0)
    examples = []
    for number in range(4):
        (tmp_path / f"{number}.png").write_bytes(b"x")
        examples.append(Example(number, tmp_path / f"{number}.png", "q?", ("x",)))
    stopping = asyncio.Event()
    asyncio.get_running_loop().call_later(0.2, stopping.set)
    with Journal(tmp_path / "predictions.jsonl") as journal:
        # Each ends within a second of the one before; only the first within a second of the stop.
        await ask_view(Slow([0.8, 1.6, 2.4, 3.2]), Sighted(), examples, journal, pace=Pace(4), stopping=stopping)
        assert [number in journal for number in range(4)].count(True) == 1
