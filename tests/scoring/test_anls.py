"""ANLS against VLMEvalKit's `anls_compute` (the official task script's rule) and mmf's STVQAANLSEvaluator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from service.errors import DataError
from service.scoring.anls import anls, score
from service.scoring.scores import Inputs, Scores
from tests.support.golden import write

# prediction, answer, what VLMEvalKit e8e78f0 gave, what m4c_evaluator.py gave (None: it divided by zero)
CASES = [
    ("", "", 1.0, None),
    (" ", "", 1.0, None),
    ("", "x", 0.0, 0.0),
    ("ab", "ac", 0.5, 0.5),
    ("abc", "abd", 0.6666666666666667, 0.6666666666666667),
    ("abcd", "wxyd", 0.0, 0.0),
    ("Hello  World", " hello world", 1.0, 0.9166666666666666),
    ("hello world ", "hello world", 1.0, 1.0),
    ("a b", "a  b", 1.0, 0.75),
    ("straße", "strase", 0.8571428571428572, 0.8333333333333334),
    ("12.5", "12,5", 0.75, 0.75),
]


@pytest.mark.parametrize(("prediction", "answer", "official", "m4c"), CASES)
def test_equals_the_originals(prediction: str, answer: str, official: float, m4c: float | None) -> None:
    assert anls(prediction, [answer]) == anls(prediction, [answer], "vlmevalkit") == official
    if m4c is None:
        with pytest.raises(ValueError, match="both empty"):
            anls(prediction, [answer], "m4c")
    else:
        assert anls(prediction, [answer], "m4c") == m4c


def test_the_best_of_several_answers_counts() -> None:
    assert anls("abc", ["xyz", "abd", "zzz"]) == 0.6666666666666667


@pytest.mark.parametrize(("answers", "like"), [([], "official"), (["a"], "other")])
def test_what_cannot_be_asked_is_refused(answers: list[str], like: str) -> None:
    with pytest.raises(ValueError, match=r"must be one of|at least one"):
        anls("a", answers, like)


DATA = {
    "dataset_name": "docvqa",
    "data": [
        {"questionId": 7, "answers": ["abd", "x"], "question_types": ["layout", "table"]},
        {"questionId": 3, "answers": ["12,5"], "question_types": ["table"]},
    ],
}


def scored(folder: Path, annotations: Any, results: Any, like: str = "official") -> Scores:
    given = Inputs(
        annotations=write(folder / "a.json", annotations), results=write(folder / "r.json", results), like=like
    )
    return score(given)


def test_docvqa_files(tmp_path: Path) -> None:
    scores = scored(tmp_path, DATA, [{"questionId": 3, "answer": "12.5"}, {"questionId": 7, "answer": "abc"}])
    assert scores.per_question == {7: 0.6666666666666667, 3: 0.75}
    assert scores.metrics["anls"] == (0.6666666666666667 + 0.75) / 2
    assert scores.accuracy == pytest.approx(70.83, abs=0.005)
    assert scores.per_question_type == {"layout": 66.67, "table": 70.83}


@pytest.mark.parametrize("like", ["official", "m4c", "vlmevalkit"])
def test_st_vqa_files(tmp_path: Path, like: str) -> None:
    rows = [{"question_id": 1, "answers": ["stop"]}, {"question_id": 2, "answers": ["go"]}]
    results = [{"question_id": 1, "answer": "Stop"}, {"question_id": 2, "answer": "halt"}]
    for content in (rows, {"data": rows}):
        assert scored(tmp_path, content, results, like).accuracy == 50.0


def test_m4c_names_the_question_that_it_cannot_score(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="question 5: the answer and the prediction are both empty"):
        scored(tmp_path, [{"question_id": 5, "answers": [""]}], [{"question_id": 5, "answer": ""}], "m4c")


@pytest.mark.parametrize(
    ("results", "match"),
    [
        ([{"questionId": 3, "answer": "a"}], "1 of 2 have no answer"),
        ([{"questionId": 3, "answer": "a"}] * 2, r"\[1\]: question 3 is answered twice"),
        ([{"questionId": "3", "answer": "a"}, {"questionId": 7, "answer": "a"}], "texts in one file"),
        ([{"questionId": 3}], r"\[0\]: the key 'answer' is missing"),
        ([{"questionId": 3, "answer": ["a"]}], r"\[0\].answer: expected a text, and this is an array"),
        ([{"answer": "a"}], r"\[0\]: the key 'question_id' is missing"),
    ],
)
def test_results_that_the_official_script_refuses_are_refused(tmp_path: Path, results: Any, match: str) -> None:
    with pytest.raises(DataError, match=match):
        scored(tmp_path, DATA, results)


@pytest.mark.parametrize(
    ("annotations", "match"),
    [
        ({"questions": []}, "expected an array"),
        ([], "expected an array"),
        ([{"question_id": 1}], r"\[0\]: the key 'answers' is missing"),
        ({"data": [{"question_id": 1, "answers": []}]}, r"data\[0\].answers"),
        ([{"question_id": 1, "answers": ["a"]}] * 2, r"\[1\]: question 1 is there twice"),
    ],
)
def test_annotations_that_are_none_are_refused(tmp_path: Path, annotations: Any, match: str) -> None:
    with pytest.raises(DataError, match=match):
        scored(tmp_path, annotations, [])
