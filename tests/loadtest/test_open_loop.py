"""The open-loop generator against a stub in a process of its own (OPS-07)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from loadtest.open_loop import LATE_S, OpenLoop, schedule
from loadtest.wire import Exchange
from tests.loadtest.stubs import stub

ROOT = Path(__file__).resolve().parent.parent.parent


def generator(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "loadtest.open_loop", *arguments]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT, env=environment
    )


def test_a_frozen_server_shows_in_the_median(tmp_path: Path) -> None:
    """OPS-07: frozen for 6 s of 10, half of all users waited for over a second; most clients would report 5 ms."""
    out = tmp_path / "results.json"
    with stub(milliseconds=3) as (url, pid):
        load = generator("--url", f"{url}/slow", "--rate", "100", "--seconds", "10", "--out", str(out))
        time.sleep(2.5)  # the generator's start included
        os.kill(pid, signal.SIGSTOP)
        time.sleep(6)
        os.kill(pid, signal.SIGCONT)
        printed, _ = load.communicate(timeout=60)
    assert load.returncode == 0, printed
    result = json.loads(out.read_text())
    assert result["latency_ms"]["p50"] > 1000, result
    assert result["latency_ms"]["max"] > 5000, result
    assert (result["sent"], result["succeeded"], result["dropped"]) == (1000, 1000, 0)


def test_no_success_is_a_failure(tmp_path: Path) -> None:
    out = tmp_path / "results.json"
    with stub(status=503) as (url, _):
        load = generator("--url", f"{url}/x", "--rate", "50", "--seconds", "0.5", "--out", str(out))
        printed, errors = load.communicate(timeout=30)
    assert load.returncode == 1
    assert "Nothing succeeded." in errors
    assert json.loads(out.read_text())["statuses"] == {"503": 25}, printed


def test_nobody_listening_is_a_failure_too() -> None:
    with stub() as (url, _):
        pass
    load = generator("--url", f"{url}/x", "--rate", "20", "--seconds", "0.5")
    printed, _ = load.communicate(timeout=30)
    assert load.returncode == 1
    assert "cannot connect" in printed


def test_what_is_dropped_is_told(tmp_path: Path) -> None:
    """Two outstanding at most, 200 ms each, 50 due a second: most are never sent."""
    out = tmp_path / "results.json"
    with stub(milliseconds=200) as (url, _):
        flags = ("--rate", "50", "--seconds", "1", "--arrivals", "constant", "--most-outstanding", "2")
        load = generator("--url", f"{url}/x", *flags, "--out", str(out))
        printed, errors = load.communicate(timeout=30)
    result = json.loads(out.read_text())
    assert load.returncode == 0
    assert result["dropped"] > 30
    assert result["planned"] == 50 == result["sent"] + result["dropped"]
    assert f"dropped {result['dropped']}" in printed
    assert "were dropped" in errors


def test_late_sends_are_counted() -> None:
    on_time = Exchange(planned=1.0, first_byte=1.001, ended=1.1, status=200)
    late = Exchange(planned=1.0, first_byte=1.0 + 2 * LATE_S, ended=1.2, status=200)
    summary = OpenLoop(0.0, 1.0, [on_time, late]).summary()
    assert summary["late"] == 1
    assert summary["latency_ms"]["max"] == pytest.approx(200)


def test_schedules_keep_to_their_rate() -> None:
    assert schedule(10, 1, "constant") == [n / 10 for n in range(10)]
    moments = schedule(200, 5, "poisson", seed=1)
    assert len(moments) == 1000
    assert moments == sorted(moments) == schedule(200, 5, "poisson", seed=1)
    assert moments != schedule(200, 5, "poisson", seed=2)
    assert 0 <= moments[0] < moments[-1] < 5
