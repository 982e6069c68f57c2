"""easy-VQA: exact matches by kind of question."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import easy_vqa
import pytest

from service.errors import DataError
from service.scoring.easyvqa import question_type, read_questions, score
from service.scoring.scores import Inputs, Scores
from tests.support.golden import write

OFFICIAL = Path(easy_vqa.__file__).parent / "data" / "test" / "questions.json"
QUESTIONS = [
    ["what is the red shape?", "triangle", 0],
    ["what color is the triangle?", "red", 0],
    ["does the image contain a circle?", "no", 0],
    ["is there not a black shape in the image?", "yes", 1],
    ["is there no teal shape?", "no", 1],
]


def scored(folder: Path, answers: Any, questions: Any = QUESTIONS) -> Scores:
    return score(Inputs(annotations=write(folder / "q.json", questions), results=write(folder / "r.json", answers)))


def rows(*answers: str) -> list[dict[str, Any]]:
    return [{"question_id": index, "answer": answer} for index, answer in enumerate(answers)]


def test_reads_the_official_file_as_the_package_does() -> None:
    texts, answers, images = easy_vqa.get_test_questions()
    read = read_questions(OFFICIAL)
    assert [(one.question, one.answer, one.image_id) for one in read] == list(zip(texts, answers, images, strict=True))
    assert len(read) == 9673


def test_the_majority_answer_scores_its_share(tmp_path: Path) -> None:
    _, answers, _ = easy_vqa.get_test_questions()
    scores = score(Inputs(annotations=OFFICIAL, results=write(tmp_path / "r.json", rows(*["no"] * len(answers)))))
    assert scores.metrics["scores"]["accuracy"] == answers.count("no") / 9673
    assert (
        scores.per_question_type["colour"]
        == scores.per_question_type["shape"]
        == scores.per_answer_type["other"]
        == 0.0
    )


def test_exact_matches_by_kind(tmp_path: Path) -> None:
    scores = scored(tmp_path, list(reversed(rows("triangle", "Red", "no", "no", "no"))))
    assert scores.accuracy == 60.0
    assert scores.per_question == {0: 1.0, 1: 0.0, 2: 1.0, 3: 0.0, 4: 1.0}
    assert scores.per_question_type == {"colour": 0.0, "shape": 100.0, "yes/no": 100.0, "yes/no negated": 50.0}
    assert scores.per_answer_type == {"other": 50.0, "yes/no": 66.67}


def test_kinds_of_questions() -> None:
    kinds = [question_type(row[0]) for row in QUESTIONS]
    assert kinds == ["shape", "colour", "yes/no", "yes/no negated", "yes/no negated"]


@pytest.mark.parametrize(
    ("answers", "match"),
    [
        (rows("a", "b", "c", "d"), "1 of 5 have no answer"),
        (rows("a", "b", "c", "d", "e", "f"), "1 answered are not in"),
        ([*rows("a", "b", "c", "d", "e"), {"question_id": 4, "answer": "f"}], r"\[5\]: question 4 is answered twice"),
        ([{"question_id": "0", "answer": "a"}, *rows("a", "b", "c", "d", "e")[1:]], "texts in one file and numbers"),
        ([{"question_id": 0}], r"\[0\]: the key 'answer' is missing"),
        ([{"answer": "a"}], r"\[0\]: the key 'question_id' is missing"),
        ([{"question_id": 0, "answer": 3}], r"\[0\].answer: expected a text"),
    ],
)
def test_results_that_do_not_fit_are_refused(tmp_path: Path, answers: Any, match: str) -> None:
    with pytest.raises(DataError, match=match):
        scored(tmp_path, answers)


@pytest.mark.parametrize("questions", [{"questions": []}, [], [["what?", "red"]], [["what?", "red", "0"]]])
def test_questions_that_are_none_are_refused(tmp_path: Path, questions: Any) -> None:
    with pytest.raises(DataError):
        scored(tmp_path, rows(), questions)
