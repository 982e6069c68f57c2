"""A run to its report: other runs are kept out until all is written."""

from __future__ import annotations

import json
import os
import signal
import tempfile
from pathlib import Path

import pytest

from service.evaluation import complete as module
from service.evaluation.complete import complete
from service.evaluation.reporting.report import write_report
from service.evaluation.running import evaluate
from service.evaluation.running.asker import RunError
from service.evaluation.running.datasets import DataSet, first_questions, load
from service.evaluation.running.evaluate import Plan, Stopped
from service.evaluation.running.formats.base import Sources
from service.evaluation.running.remote import ServerAsker
from service.evaluation.running.run_files import RunFiles
from service.evaluation.running.runner import Pace
from service.evaluation.running.stopping import SignalError
from service.evaluation.running.views import Sighted
from service.files import read_json
from tests.support.pictures import drawn_circle
from tests.support.stub_service import Reply, answered, stub_service


class Watched:
    """Notes what a run says of itself."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def begin(self, view: str, total: int, done: int) -> None:
        self.told.append(f"{view} {done}/{total}")

    def advance(self, prediction: object) -> None:
        pass

    def end(self) -> None:
        self.told.append("end")


def reply(_: int, questions: list[str]) -> Reply:
    return 200, {}, {"results": [answered("x")] * len(questions)}


def annotations(folder: Path, count: int = 3) -> Path:
    (folder / "a.png").write_bytes(drawn_circle())
    row = {"image": "a.png", "question": "what?", "answers": ["x"]}
    path = folder / "questions.jsonl"
    path.write_text((json.dumps(row) + "\n") * count)
    return path


def test_the_report_comes_last_and_within_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, watched = tmp_path / "run", Watched()

    def written(folder: Path) -> None:
        watched.told.append("report")
        with pytest.raises(RunError, match="another run is at work"), RunFiles(folder).locked():
            pass
        write_report(folder)

    monkeypatch.setattr(module, "write_report", written)
    data = load("jsonl", Sources(annotations=annotations(tmp_path))).settled()
    with stub_service(reply) as stub:
        plan = Plan(data, [Sighted()], RunFiles(out), Pace(1))
        outcome = complete(plan, lambda: ServerAsker(stub.url), watched, watched.told.append)
    assert watched.told == ["sighted 0/3", "end", "writing the report", "report"]
    assert outcome == read_json(out / "evaluation.json")
    assert (out / "report.html").exists()


def test_the_files_of_a_part_are_read_once(tmp_path: Path) -> None:
    """They may be large, and gone by then."""
    path = annotations(tmp_path)
    data = first_questions(load("jsonl", Sources(annotations=path)), 2).settled()
    path.write_bytes(b"no rows")
    with stub_service(reply) as stub:
        plan = Plan(data, [Sighted()], RunFiles(tmp_path / "run"), Pace(1))
        outcome = complete(plan, lambda: ServerAsker(stub.url), Watched(), lambda _: None)
    assert isinstance(outcome, dict)
    assert outcome["views"]["sighted"]["scores"]["questions"] == 2
    assert [row["question_id"] for row in read_rows(tmp_path / "run" / "selection" / "annotations.jsonl")] == [1, 2]


@pytest.mark.parametrize("at", ["outcome", "report"])
def test_a_signal_while_files_are_written_leaves_no_half_and_is_gone_on_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    data = load("jsonl", Sources(annotations=annotations(tmp_path))).settled()
    out = tmp_path / "run"

    def signalled(*_: object, **__: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    with stub_service(reply) as stub:
        plan = Plan(data, [Sighted()], RunFiles(out), Pace(1))
        where, name = {"outcome": (evaluate, "write_outcome"), "report": (module, "write_report")}[at]
        with monkeypatch.context() as patched:
            patched.setattr(where, name, signalled)
            stopped = complete(plan, lambda: ServerAsker(stub.url), Watched(), lambda _: None)
        assert stopped == Stopped(signal.SIGTERM, 3, 3)
        outcome = complete(plan, lambda: ServerAsker(stub.url), Watched(), lambda _: None)
    assert outcome == read_json(out / "evaluation.json")
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_a_signal_during_the_rehearsal_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    data = load("jsonl", Sources(annotations=annotations(tmp_path))).settled()
    monkeypatch.setattr(DataSet, "score", lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    plan = Plan(data, [Sighted()], RunFiles(tmp_path / "run"), Pace(1))
    with pytest.raises(SignalError):
        complete(plan, lambda: ServerAsker("http://127.0.0.1:9"), Watched(), lambda _: None)
    assert list((tmp_path / "temporary").iterdir()) == []


def read_rows(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]
