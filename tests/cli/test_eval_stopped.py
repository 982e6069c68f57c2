"""`vqa eval` killed, stopped, left by its server, and resumed."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from tests.support.eval_runs import LONG, lines, of_lines, read_terminal, run
from tests.support.process import VQA
from tests.support.stub_service import Reply, answered, problem, stub_service


@pytest.fixture(scope="module")
def whole(long: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The results of a run that nothing stopped."""
    out = tmp_path_factory.mktemp("whole")
    assert run(*of_lines(long, out), "--quiet").returncode == 0
    return (out / "results.json").read_bytes()


class TestStopped:
    @staticmethod
    def begun(long: Path, out: Path, at_least: int) -> subprocess.Popen[str]:
        command = [VQA, "eval", *of_lines(long, out), "--concurrency", "1"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while lines(out / "predictions.jsonl") < at_least:
            assert process.poll() is None, process.communicate()
            time.sleep(0.002)
        return process

    def test_killed_again_and_again_it_gives_the_same_results(self, long: Path, whole: bytes, tmp_path: Path) -> None:
        for at_least in (1, 200, 500):
            process = self.begun(long, tmp_path, at_least)
            process.kill()
            process.communicate()
            assert at_least <= lines(tmp_path / "predictions.jsonl") < LONG
        assert not (tmp_path / "results.json").exists()
        assert run(*of_lines(long, tmp_path)).returncode == 0
        assert (tmp_path / "results.json").read_bytes() == whole
        assert lines(tmp_path / "predictions.jsonl") == LONG, "nothing was asked twice"

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_a_signal_ends_it_in_order(self, long: Path, whole: bytes, tmp_path: Path, number: signal.Signals) -> None:
        process = self.begun(long, tmp_path, 50)
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
        assert (process.returncode, out) == (128 + number, "")
        stopped = re.fullmatch(r"stopped with (\d+) of 900 questions answered\. .* the same command again .*\n", err)
        assert stopped, err
        assert int(stopped[1]) == lines(tmp_path / "predictions.jsonl")
        resumed = run(*of_lines(long, tmp_path), "--json")
        assert resumed.returncode == 0
        assert (tmp_path / "results.json").read_bytes() == whole
        assert json.loads(resumed.stdout)["views"]["sighted"]["speed"]["questions"] == LONG - int(stopped[1])

    def test_a_second_signal_ends_it_at_once(self, long: Path, tmp_path: Path) -> None:
        came, release = threading.Event(), threading.Event()

        def reply(_: int, questions: list[str]) -> Reply:
            came.set()
            release.wait(60)
            return 200, {}, {"results": [answered("x")] * len(questions)}

        with stub_service(reply) as stub:
            command = [VQA, "eval", *of_lines(long, tmp_path), "--server", stub.url]
            process = subprocess.Popen(command, stderr=subprocess.PIPE)
            assert came.wait(30)
            process.send_signal(signal.SIGTERM)
            time.sleep(0.5)
            assert process.poll() is None, "what is under way may finish"
            process.send_signal(signal.SIGINT)
            assert process.wait(5) == 130
            release.set()
        process.communicate()

    def test_ended_at_once_it_gives_the_terminal_its_cursor_back(self, long: Path, tmp_path: Path) -> None:
        came, release = threading.Event(), threading.Event()

        def reply(_: int, questions: list[str]) -> Reply:
            came.set()
            release.wait(60)
            return 200, {}, {"results": [answered("x")] * len(questions)}

        ours, theirs = pty.openpty()
        with stub_service(reply) as stub:
            command = [VQA, "eval", *of_lines(long, tmp_path), "--server", stub.url]
            process = subprocess.Popen(command, stderr=theirs, env=os.environ | {"TERM": "xterm", "COLUMNS": "100"})
            os.close(theirs)
            assert came.wait(30)
            process.send_signal(signal.SIGTERM)
            time.sleep(0.5)
            process.send_signal(signal.SIGTERM)
            assert process.wait(5) == 128 + signal.SIGTERM
            release.set()
        shown = read_terminal(ours)
        assert shown.rfind(b"\x1b[?25h") > shown.rfind(b"\x1b[?25l") >= 0

    def test_two_runs_in_one_folder_are_refused(self, long: Path, tmp_path: Path) -> None:
        process = self.begun(long, tmp_path, 1)
        second = run(*of_lines(long, tmp_path))
        process.kill()
        process.communicate()
        assert second.returncode == 1
        assert "another run is at work" in second.stderr


class TestServer:
    def test_a_server_that_stays_away_is_one_line_that_says_how_to_go_on(self, long: Path, tmp_path: Path) -> None:
        def reply(number: int, questions: list[str]) -> Reply:
            if number < 5:
                return 200, {}, {"results": [answered("x")] * len(questions)}
            return 503, {"Retry-After": "0"}, problem(503, "draining")

        with stub_service(reply) as stub:
            done = run(*of_lines(long, tmp_path), "--server", stub.url, "--patience", "0.5")
        assert done.returncode == 1
        assert "draining" in done.stderr
        assert "the same command again goes on" in done.stderr
        assert done.stderr.count("\n") == 1
        answers = sum(map(len, stub.requests[:5]))
        assert lines(tmp_path / "predictions.jsonl") == answers
        with stub_service(lambda _, questions: (200, {}, {"results": [answered("x")] * len(questions)})) as stub:
            assert run(*of_lines(long, tmp_path), "--server", stub.url, "--quiet").returncode == 0
        assert sum(map(len, stub.requests)) == LONG - answers

    def test_a_server_that_changes_its_model_half_way_stops_the_run(self, long: Path, tmp_path: Path) -> None:
        def reply(number: int, questions: list[str]) -> Reply:
            items = [answered("x") for _ in questions]
            if number == 3:
                items[-1]["result"]["model"]["revision"] = "2"
            return 200, {}, {"results": items}

        with stub_service(reply) as stub:
            done = run(*of_lines(long, tmp_path), "--server", stub.url, "--concurrency", "1")
        assert done.returncode == 1
        assert "another model than when the run began: stub, revision 2" in done.stderr
        assert lines(tmp_path / "predictions.jsonl") == sum(map(len, stub.requests[:3]))
