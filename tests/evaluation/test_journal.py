"""The journal: what was written whole is kept, whatever stopped the writing."""

from __future__ import annotations

import json
import resource
from pathlib import Path

import pytest

from service.errors import DataError
from service.evaluation.records import Prediction
from service.evaluation.running.journal import Journal

FIRST = Prediction(
    1, answer="blau", confidence=0.5, candidates=(("blau", 0.75), ("rot", 0.25)), warnings=("demo_model",)
)
LAST = Prediction("zwei", answer="grün ☃", width=3, total_ms=1.5)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "predictions.jsonl"


def write(path: Path, *predictions: Prediction) -> bytes:
    with Journal(path) as journal:
        for prediction in predictions:
            journal.append(prediction)
    return path.read_bytes()


def test_what_was_appended_is_read_back(path: Path) -> None:
    odd = Prediction(3, answer="a\nb\ud800", error=None)
    write(path, FIRST, LAST, odd)
    with Journal(path) as journal:
        assert [journal.get(key) for key in (1, "zwei", 3)] == [FIRST, LAST, odd]
        assert journal.get("1") is None
        assert 1 in journal
        assert "1" not in journal


def test_a_line_torn_anywhere_is_dropped_and_written_again(path: Path) -> None:
    whole = write(path, FIRST, LAST)
    start = whole.index(b"\n") + 1
    assert any(byte > 127 for byte in whole[start:])
    for cut in range(start + 1, len(whole) - 1):
        path.write_bytes(whole[:cut])
        with Journal(path) as journal:
            assert "zwei" not in journal, cut
            assert journal.get(1) == FIRST
            journal.append(LAST)
        assert path.read_bytes() == whole


def test_a_whole_last_line_without_its_end_is_kept(path: Path) -> None:
    whole = write(path, FIRST, LAST)
    path.write_bytes(whole[:-1])
    with Journal(path) as journal:
        assert journal.get("zwei") == LAST
        journal.append(Prediction(3, answer="x"))
        assert journal.get(3) == Prediction(3, answer="x")
    assert path.read_bytes().startswith(whole)
    assert path.read_bytes().count(b"\n") == 3


def test_of_several_the_last_counts(path: Path) -> None:
    failed = Prediction(1, error="backend_failed", detail="it failed")
    write(path, failed, FIRST, Prediction(2, answer="x"), Prediction(2, error="backend_failed"))
    with Journal(path) as journal:
        assert journal.get(1) == FIRST
        assert 1 in journal
        assert 2 not in journal, "a failure is asked again"


@pytest.mark.parametrize(
    "line", [b"no JSON\n", b"[]\n", b'{"question_id": 1, "odd": 2}\n', b"\xff\n", b'{"answer": "x"}\n']
)
def test_a_broken_line_before_the_last_is_refused_with_its_place(path: Path, line: bytes) -> None:
    whole = write(path, FIRST, LAST)
    first, last = whole.splitlines(keepends=True)
    path.write_bytes(first + line + last)
    with pytest.raises(DataError, match=r"predictions\.jsonl: line 2: no line of a journal \(.*asked again"):
        Journal(path)
    assert path.read_bytes() == first + line + last


def test_a_line_that_does_not_fit_is_said_and_leaves_nothing_behind(path: Path) -> None:
    whole = write(path, FIRST)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with Journal(path) as journal:
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) + 10, hard))
        try:
            with pytest.raises(DataError, match="cannot be written"):
                journal.append(LAST)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert path.read_bytes() == whole
        journal.append(LAST)
        assert journal.get("zwei") == LAST


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("question_id", True),
        ("answer", 5),
        ("confidence", "high"),
        ("confidence", 7.5),
        ("confidence", float("nan")),
        ("answerability", -3),
        ("abstained", "no"),
        ("candidates", [["a", "b"]]),
        ("candidates", [["a"]]),
        ("candidates", 3),
        ("cached", 1),
        ("model", ["x"]),
        ("backend", {}),
        ("raw_answer", 5),
        ("warnings", "abc"),
        ("total_ms", "q"),
        ("width", -1),
        ("error", 5),
    ],
)
def test_a_value_that_is_none_is_refused_by_line_and_field(path: Path, field: str, value: object) -> None:
    whole = write(path, FIRST, LAST)
    first, last = whole.splitlines(keepends=True)
    path.write_bytes(first + json.dumps(json.loads(last) | {field: value}).encode() + b"\n")
    with pytest.raises(DataError, match=rf"line 2: no line of a journal \({field}: "):
        Journal(path)


def test_blank_lines_are_skipped(path: Path) -> None:
    whole = write(path, FIRST, LAST)
    first, last = whole.splitlines(keepends=True)
    path.write_bytes(b"\n" + first + b"  \n" + last + b"\n")
    with Journal(path) as journal:
        assert [journal.get(each.question_id) for each in (FIRST, LAST)] == [FIRST, LAST]
        journal.append(FIRST)
    with Journal(path) as journal:
        assert journal.get(FIRST.question_id) == FIRST
