"""Starting, failing, draining, saturation, deadlines, and clients that leave (OPS-03, API-11, API-14)."""

from __future__ import annotations

import base64
import json
import socket
import threading
import time
from functools import partial

import httpx
import pytest

from service.errors import Code, VQAError
from tests.support.backends import ScriptedBackend
from tests.support.cases import CASES
from tests.support.pictures import drawn_circle
from tests.support.serving import Running, serving

QUESTION = {"question": "is it red?"}


def ask(running: Running, **data: object) -> httpx.Response:
    return running.client.post("/answer", files={"image": drawn_circle()}, data=QUESTION | data)


def wait_until(condition, seconds: float = 5) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.01)


def test_alive_but_not_ready_until_the_model_is_warm() -> None:
    gate = threading.Event()
    with serving({"classifier": ScriptedBackend(start_gate=gate)}, wait_ready=False) as running:
        assert running.client.get("/livez").status_code == 200
        not_ready = running.client.get("/readyz")
        assert not_ready.status_code == 503
        assert not_ready.json()["backends"]["classifier"]["state"] == "starting"
        refused = ask(running)
        assert (refused.status_code, refused.json()["code"]) == (503, "not_ready")
        assert int(refused.headers["Retry-After"]) >= 1
        gate.set()
        wait_until(lambda: running.client.get("/readyz").status_code == 200)
        assert ask(running).status_code == 200


def test_not_ready_again_when_the_only_backend_fails() -> None:
    backend = ScriptedBackend()
    with serving({"classifier": backend}) as running:
        assert running.metric("vqa_backend_up", backend="classifier") == 1
        backend.fail()
        assert running.client.get("/readyz").status_code == 503
        assert running.metric("vqa_backend_up", backend="classifier") == 0
        assert ask(running).status_code == 503
        assert running.client.get("/livez").status_code == 200


def test_one_backend_that_fails_to_start_does_not_stop_the_other() -> None:
    broken = ScriptedBackend(name="generator", start_error=RuntimeError("no engine"))
    with serving({"classifier": ScriptedBackend(), "generator": broken}, policy="classifier") as running:
        state = running.client.get("/readyz").json()["backends"]
        assert state["generator"] == {"state": "failed", "detail": "no engine"}
        assert ask(running).status_code == 200


def test_draining_refuses_new_questions_and_says_so() -> None:
    with serving({"classifier": ScriptedBackend()}) as running:
        running.gateway.drain()
        assert running.client.get("/readyz").json()["status"] == "draining"
        refused = ask(running)
        assert (refused.status_code, refused.json()["code"]) == (503, "draining")
        assert "Retry-After" in refused.headers


def test_a_passed_deadline_is_504() -> None:
    backend = ScriptedBackend(sleep_s=30)
    with serving({"classifier": backend}) as running:
        started = time.perf_counter()
        late = ask(running, timeout_ms=200)
        assert (late.status_code, late.json()["code"]) == (504, "deadline_exceeded")
        assert time.perf_counter() - started < 5
        wait_until(lambda: backend.cancelled == 1)
        assert running.metric("vqa_questions_in_flight") == 0


def test_more_questions_than_permits_are_refused_at_once() -> None:
    with serving({"classifier": ScriptedBackend(sleep_s=1.0)}, max_in_flight=2, max_questions=2) as running:
        # Different questions: who asks the same joins, and takes no place.
        threads = [threading.Thread(target=partial(ask, running, question=f"is it {i}?")) for i in range(2)]
        for thread in threads:
            thread.start()
        wait_until(lambda: running.metric("vqa_questions_in_flight") == 2)
        started = time.perf_counter()
        refused = ask(running)
        assert (refused.status_code, refused.json()["code"]) == (503, "saturated")
        assert "Retry-After" in refused.headers
        assert time.perf_counter() - started < 0.5
        for thread in threads:
            thread.join()
        assert ask(running).status_code == 200


def test_a_client_that_hangs_up_takes_its_question_along() -> None:
    """API-14: within a second the work is cancelled, the gauge is back, and no fault is counted."""
    backend = ScriptedBackend(sleep_s=30)
    with serving({"classifier": backend}) as running:
        body = json.dumps({"image": data_url(), "question": "is it red?"}).encode()
        head = (
            f"POST /answer HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        with socket.create_connection(("127.0.0.1", running.port)) as connection:
            connection.sendall(head.encode() + body)
            wait_until(lambda: backend.asked == ["is it red?"])
        wait_until(lambda: backend.cancelled == 1, seconds=1)
        wait_until(lambda: running.metric("vqa_questions_in_flight") == 0, seconds=1)
        assert running.metric("vqa_http_requests_total", route="/answer", status="499") == 1
        assert running.metric("vqa_questions_total", outcome="client_closed_request") == 1


def data_url() -> str:
    return "data:image/png;base64," + base64.b64encode(drawn_circle()).decode()


def test_scores_that_are_not_numbers_are_the_backends_fault() -> None:
    logits = json.loads((CASES / "metrics" / "nan_logits.json").read_text())["logits"]
    assert logits[0] != logits[0]
    with serving({"classifier": ScriptedBackend(logits=logits)}) as running:
        reply = ask(running)
        assert (reply.status_code, reply.json()["code"]) == (502, "backend_invalid_scores")
        assert running.metric("vqa_problems_total", code="backend_invalid_scores") == 1


def test_minus_infinity_is_probability_zero() -> None:
    with serving({"classifier": ScriptedBackend(logits=(2.0, float("-inf"), 0.0))}) as running:
        reply = ask(running)
        assert reply.status_code == 200
        body = json.loads(reply.text, parse_constant=lambda name: pytest.fail(name))
        assert {c["answer"]: c["probability"] for c in body["candidates"]}["no"] == 0.0


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (RuntimeError("secret detail"), 502, "backend_failed"),
        (VQAError(Code.BACKEND_FAILED, "It failed."), 502, "backend_failed"),
    ],
)
def test_a_backend_that_throws_is_502_and_tells_nothing_of_its_inside(error: Exception, status: int, code: str) -> None:
    with serving({"classifier": ScriptedBackend(error=error)}) as running:
        reply = ask(running)
        assert (reply.status_code, reply.json()["code"]) == (status, code)
        assert "secret" not in reply.text


def test_sigmoid_scores_are_what_they_are_called() -> None:
    """VILT-04: the head's own score is the sigmoid, and it has no mass outside the set."""
    fixture = json.loads((CASES / "metrics" / "vilt_head_scores.json").read_text())
    labels, logits = zip(*fixture["logits"].items(), strict=True)
    with serving({"classifier": ScriptedBackend(labels, logits, score_kind="sigmoid")}) as running:
        body = ask(running).json()
        assert body["answer"] == "yes"
        assert body["off_set"] is None
        got = {c["answer"]: c["probability"] for c in body["candidates"]}
        for label, score in fixture["sigmoid"].items():
            assert got[label] == pytest.approx(score, abs=1e-6)
