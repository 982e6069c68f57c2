"""Reliable VQA against the original program.

`tests/golden/reliable_vqa` was made by running facebookresearch/reliable_vqa d9586af once: 30 questions with ties of
confidence, equal annotator records, and questions in both results files, each of which changes the numbers.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from service.errors import DataError
from service.scoring.reliable_vqa import score
from service.scoring.scores import Inputs
from tests.support.golden import GOLDEN, golden, write
from tests.support.shared import shared

FOLDER = GOLDEN / "reliable_vqa"


def inputs(**changed: Any) -> Inputs:
    given: dict[str, Any] = {
        "annotations": FOLDER / "annotations.json",
        "questions": FOLDER / "questions.json",
        "results": FOLDER / "predictions.json",
        "thresholds": FOLDER / "threshold_predictions.json",
    }
    return Inputs(**(given | changed))


def predictions() -> list[dict[str, Any]]:
    return golden("reliable_vqa", "predictions.json")


def test_equals_the_original() -> None:
    expected = golden("reliable_vqa", "expected.json")
    scores = score(inputs())
    assert scores.metrics == expected["accuracy"]
    assert list(scores.official) == expected["stdout"]
    assert scores.accuracy == expected["accuracy"]["vqa_accuracy"]
    assert scores.questions == len(scores.per_question) == len(predictions())


def test_equals_the_original_on_real_annotations() -> None:
    folder, real = shared("golden", "reliable_vqa_2962"), shared("golden", "real_vqav2_2962")
    given = inputs(
        annotations=real / "annotations.json.gz",
        questions=real / "questions.json.gz",
        results=folder / "predictions.json.gz",
        thresholds=folder / "threshold_predictions.json.gz",
    )
    assert score(given).metrics == json.loads((folder / "expected.json").read_text())


def test_without_thresholds_effective_reliability_is_left_out() -> None:
    scores = score(inputs(thresholds=None))
    expected = {
        key: value for key, value in golden("reliable_vqa", "expected.json")["accuracy"].items() if "phi" not in key
    }
    assert scores.metrics == expected
    assert "phi" in scores.notes[0]


@pytest.mark.parametrize(
    ("row", "match"),
    [
        ({"question_id": -1, "answer": "yes", "confidence": 1}, r"1 answered are not in .*a?nnotations.json \(-1\)"),
        ({"answer": "yes"}, r"confidence of question 907757 must be a number, and is null"),
        ({"answer": None, "confidence": 1}, r"answer to question 907757 must be a text, and is null"),
        ({"answer": "yes", "confidence": "sure"}, r"confidence of question 907757 must be a number, and is a text"),
        ({"answer": "yes", "confidence": float("nan")}, r"confidence of question 907757 .*NaN"),
        ({"question_id": [1], "answer": "yes", "confidence": 1}, r"\[1\].question_id: expected a whole number"),
    ],
)
def test_a_result_that_cannot_be_scored_is_refused(tmp_path: Path, row: dict[str, Any], match: str) -> None:
    rows = predictions()
    rows[1] = {"question_id": rows[1]["question_id"]} | row
    with pytest.raises(DataError, match=match):
        score(inputs(results=write(tmp_path / "p.json", rows)))


@pytest.mark.parametrize(
    ("content", "match"),
    [([], "no results"), ({"a": 1}, "not an array of objects"), (predictions()[:1], "two results at least")],
)
def test_results_that_are_too_few_are_refused(tmp_path: Path, content: Any, match: str) -> None:
    with pytest.raises(DataError, match=match):
        score(inputs(results=write(tmp_path / "p.json", content)))


def test_an_answer_outside_the_choices_is_refused(tmp_path: Path) -> None:
    questions = golden("reliable_vqa", "questions.json") | {"task_type": "Multiple Choice"}
    for question in questions["questions"]:
        question["multiple_choices"] = ["no such answer"]
    with pytest.raises(DataError, match="is none of its 1 choices"):
        score(inputs(questions=write(tmp_path / "q.json", questions)))


@pytest.mark.parametrize(
    ("answers", "match"),
    [
        (None, "question_id 907757: its answers must be a list"),
        ([], "question_id 907757: its answers must be a list with one at least"),
        ([{}], r"question_id 907757: answers\[0\] must be an object with a text"),
    ],
)
def test_annotations_without_answers_are_refused(tmp_path: Path, answers: Any, match: str) -> None:
    annotations = golden("reliable_vqa", "annotations.json")
    [row] = [row for row in annotations["annotations"] if row["question_id"] == 907757]
    row["answers"] = answers
    with pytest.raises(DataError, match=match):
        score(inputs(annotations=write(tmp_path / "a.json", annotations)))
