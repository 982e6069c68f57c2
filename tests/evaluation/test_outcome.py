"""What came of a run: a question without an answer is never right, whatever an evaluator makes of an empty text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from service.evaluation.records import Prediction
from service.evaluation.running.datasets import load
from service.evaluation.running.formats.base import Sources
from service.evaluation.running.journal import Journal
from service.evaluation.running.outcome import count, write_outcome
from service.evaluation.running.run_files import RunFiles


def outcome(folder: Path, name: str, rows: list[dict[str, Any]], said: list[Prediction]) -> tuple[dict, dict]:
    """The view's document, and the accuracies of the table by question."""
    path = folder / "annotations.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    data = load(name, Sources(annotations=path))
    files = RunFiles(folder / "run")
    with Journal(files.journal("sighted")) as journal:
        for prediction in said:
            journal.append(prediction)
        document = write_outcome(files, data, {"sighted": journal}, code="2021", facts={}, speed={})
    table = parquet.read_table(files.parquet).to_pylist()
    return document["views"]["sighted"], {row["question_id"]: row["accuracy"] for row in table}


def test_pope_takes_no_answer_for_a_yes_and_the_document_says_so(tmp_path: Path) -> None:
    labels = ["yes", "yes", "no", "yes"]
    rows = [{"question_id": n, "image": "a.jpg", "text": "Is it?", "label": label} for n, label in enumerate(labels, 1)]
    said = [
        Prediction(1, answer="yes"),
        Prediction(2, error="backend_failed"),
        Prediction(3, abstained=True),
        Prediction(4, abstained=True),
    ]
    view, accuracy = outcome(tmp_path, "pope", rows, said)
    assert accuracy == {1: 1.0, 2: 0.0, 3: 0.0, 4: 0.0}
    # The official evaluate.py takes "" for a yes: three of four are right, and all four say yes.
    assert (view["scores"]["accuracy"], view["scores"]["yes_ratio"]) == (75.0, 1.0)
    assert view["scores"]["notes"] == [
        "questions without an answer, each of which is a yes in these numbers, as officially: 3"
    ]


def test_no_answer_is_not_right_where_people_said_nothing(tmp_path: Path) -> None:
    rows = [{"question_id": n, "image": "a.jpg", "question": "What?", "answers": ["", "x"]} for n in (1, 2)]
    view, accuracy = outcome(tmp_path, "jsonl", rows, [Prediction(1, answer="x"), Prediction(2, abstained=True)])
    assert accuracy[1] > 0
    assert accuracy[2] == 0
    assert view["scores"]["notes"][-1].startswith("questions without an answer that these numbers take for right")
    assert view["scores"]["notes"][-1].endswith(": 1")


def test_an_id_beyond_64_bits_is_a_text_in_the_table(tmp_path: Path) -> None:
    rows = [{"question_id": n, "image": "a.jpg", "question": "What?", "answers": ["x"]} for n in (1, 1 << 63)]
    said = [Prediction(row["question_id"], answer="x") for row in rows]
    assert outcome(tmp_path, "jsonl", rows, said)[1] == {"1": 1.0, str(1 << 63): 1.0}


def test_confidence_is_over_answers_that_were_given() -> None:
    given = [
        Prediction(1, answer="x", confidence=0.5),
        Prediction(2, abstained=True, confidence=0.1),
        Prediction(3, error="backend_failed"),
        Prediction(4, answer="unanswerable", answerable=False, confidence=0.7),
    ]
    counts = count(given)
    assert counts.mean_confidence == pytest.approx(0.6)
    assert (counts.answered, counts.abstained, counts.failed, counts.unanswerable) == (2, 1, 1, 1)


def test_pope_says_how_many_answers_are_neither_yes_nor_no(tmp_path: Path) -> None:
    rows = [{"question_id": n, "image": "a.jpg", "text": "Is it?", "label": "yes"} for n in (1, 2)]
    view, _ = outcome(tmp_path, "pope", rows, [Prediction(1, answer="unanswerable"), Prediction(2, answer="Yes.")])
    assert view["scores"]["yes_ratio"] == 1.0
    assert view["scores"]["notes"] == [
        "answers that are neither yes nor no (such as unanswerable), most of which count as a yes: 1"
    ]
