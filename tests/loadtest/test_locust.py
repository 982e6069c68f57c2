"""The Locust users: without a fault against a real server, and with the right exit code against bad ones."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from loadtest.contract import fault
from loadtest.server import running
from tests.loadtest.stubs import stub
from tests.support.pictures import drawn_circle
from tests.support.serving import Running


def locust(root: Path, url: str, *users: str, count: int = 2, seconds: int = 2) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "locust", "-f", "loadtest/locustfile.py", "--headless", "--only-summary"]
    command += ["--users", str(count), "--spawn-rate", str(count), "--run-time", f"{seconds}s", "--host", url, *users]
    environment = os.environ | {"PYTHONPATH": str(root), "LOADTEST_DEADLINE_MS": "60000"}
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, timeout=60)


def test_users_of_every_kind_are_served(root: Path) -> None:
    users = ("ProductApp", "AssistiveApp", "ManyQuestions", "RepeatedPictures")
    with running() as server:
        done = locust(root, server.url, *users, count=11, seconds=4)
    assert done.returncode == 0, done.stdout + done.stderr
    for row in ("product app", "assistive app", "many questions", "one more question", "repeated pictures"):
        assert row in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("status", "said"), [(503, "product app refused"), (200, "the reply lacks"), (500, "status 500")]
)
def test_a_server_that_answers_nothing_fails(root: Path, status: int, said: str) -> None:
    with stub(status) as (url, _):
        done = locust(root, url, "ProductApp")
    assert done.returncode == 1, done.stdout + done.stderr
    assert said in done.stdout + done.stderr


def test_real_replies_keep_the_contract_and_spoilt_ones_do_not(served: Running) -> None:
    reply = served.client.post(
        "/answer", files={"image": drawn_circle()}, data={"question": "what color is the circle?"}
    )
    good = reply.json()
    assert fault(good) is None
    assert fault(good, may_abstain=False) is None
    spoilt = [
        {key: value for key, value in good.items() if key != "warnings"},
        good | {"answer": None},
        good | {"abstained": True},
        good | {"answerable": False},
        good | {"confidence": None},
        good | {"confidence": 1.5},
        good | {"candidates": []},
        good | {"candidates": good["candidates"][::-1]},
        good | {"candidates": good["candidates"] * 2},
        good | {"timings_ms": {"total": -1.0}},
    ]
    for each in spoilt:
        assert fault(each), each
    assert fault(good | {"answer": None, "abstained": True}) is None
    assert fault(good | {"answer": None, "abstained": True}, may_abstain=False)
