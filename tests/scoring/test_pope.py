"""POPE against the three programs that score it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from service.errors import DataError
from service.scoring.pope import extract_yes_or_no, says_yes, score
from service.scoring.scores import Inputs, Scores
from tests.support.golden import golden, write_lines
from tests.support.shared import shared

SETS = {one["name"]: one for one in golden("pope", "pope_golden.json")}
FRACTIONS = ("accuracy", "precision", "recall", "f1", "yes_ratio")
COUNTS = ("TP", "FP", "TN", "FN")


def scored(folder: Path, labels: list[dict[str, Any]], answers: list[dict[str, Any]], like: str = "official") -> Scores:
    given = Inputs(
        annotations=write_lines(folder / "labels.json", labels),
        results=write_lines(folder / "answers.json", answers),
        like=like,
    )
    return score(given)


def of_set(folder: Path, one: dict[str, Any], like: str = "official") -> Scores:
    return scored(folder, [{"label": x} for x in one["labels"]], [{"answer": x} for x in one["answers"]], like)


@pytest.mark.parametrize("name", SETS)
def test_equals_the_official_program(tmp_path: Path, name: str) -> None:
    one = SETS[name]
    expected = one["expected"]
    assert [int(says_yes(answer)) for answer in one["answers"]] == expected["pred"]
    scores = of_set(tmp_path, one)
    if "error" in expected:
        assert scores.metrics["f1"] is None
        assert scores.official[2:] == ()
        assert "divide by zero" in scores.notes[0]
        return
    assert {key: scores.metrics[key] for key in COUNTS} == {key: expected[key] for key in COUNTS}
    assert scores.metrics["scores"] == {key: expected[key] for key in FRACTIONS}
    assert scores.metrics["yes_ratio"] == expected["yes_ratio"]
    assert "\n".join(scores.official) + "\n" == expected["stdout"]
    assert scores.accuracy == pytest.approx(100 * expected["accuracy"], abs=1e-12)
    assert scores.notes == ()


@pytest.mark.parametrize("name", SETS)
def test_equals_lmms_eval(tmp_path: Path, name: str) -> None:
    assert of_set(tmp_path, SETS[name], "lmms-eval").metrics["scores"] == SETS[name]["lmms_eval"]


@pytest.mark.parametrize("name", SETS)
def test_extracts_as_vlmevalkit(name: str) -> None:
    assert [extract_yes_or_no(answer) for answer in SETS[name]["answers"]] == SETS[name]["vlmevalkit_extracted"]


def test_rates_as_vlmevalkit(tmp_path: Path) -> None:
    """Worked by hand: a question of two splits counts in both, and twice in the overall score."""
    labels = [
        {"label": "yes", "category": "random,popular"},
        {"label": "yes", "category": "random"},
        {"label": "no", "category": "popular"},
        {"label": "no", "category": "random"},
    ]
    answers = [{"answer": text} for text in ("Yes.", "maybe", "yes", "No, none.")]
    metrics = scored(tmp_path, labels, answers, "vlmevalkit").metrics
    assert metrics["scores"]["Overall"] == pytest.approx(
        {"acc": 60.0, "precision": 200 / 3, "recall": 200 / 3, "Overall": 200 / 3}, rel=1e-15
    )
    assert metrics["scores"]["popular"] == pytest.approx(
        {"acc": 50.0, "precision": 50.0, "recall": 100.0, "Overall": 200 / 3}, rel=1e-15
    )
    assert metrics["unknown"] == 1


@pytest.mark.parametrize("kind", ["random", "popular", "adversarial"])
def test_equals_the_official_program_on_the_real_questions(kind: str) -> None:
    expected = json.loads(shared("golden", "real_pope", f"expected_{kind}.json").read_text())
    given = Inputs(
        annotations=shared("golden", "real_pope", f"coco_pope_{kind}.json.gz"),
        results=shared("golden", "real_pope", f"answers_{kind}.json.gz"),
    )
    scores = score(given)
    assert {key: scores.metrics[key] for key in COUNTS} == {key: expected[key] for key in COUNTS}
    assert scores.metrics["scores"] == {key: expected[key] for key in FRACTIONS}
    with gzip.open(given.annotations, "rt") as file:
        assert list(scores.per_question) == [json.loads(line)["question_id"] for line in file]


LABELS = [
    {"question_id": 1, "text": "Is there a dog in the image?", "label": "yes"},
    {"question_id": 2, "text": "Is there a cat in the image?", "label": "no"},
]


@pytest.mark.parametrize(
    ("answers", "match"),
    [
        ([{"answer": "yes"}], "1 answers for the 2 labels"),
        ([{"answer": "yes"}] * 3, "line 3: 3 answers for the 2 labels"),
        ([{"answer": "yes", "question_id": 1}, {"answer": "no", "question_id": 3}], "line 2.question_id: .*order"),
        ([{"answer": "yes"}, {"answer": "no", "question": LABELS[0]["text"]}], "line 2.question: .*order"),
        ([{"answer": "yes"}, {"answer": None}], "line 2.answer: expected a text"),
        ([{"answer": "yes"}, {"text": "no"}], "line 2: the key 'answer' is missing"),
    ],
)
def test_answers_that_do_not_fit_are_refused(tmp_path: Path, answers: list[dict[str, Any]], match: str) -> None:
    with pytest.raises(DataError, match=match):
        scored(tmp_path, LABELS, answers)


def test_a_question_in_another_case_is_the_same(tmp_path: Path) -> None:
    """The project's own example answers are in small letters."""
    answers = [{"answer": "yes", "question": row["text"].lower()} for row in LABELS]
    assert scored(tmp_path, LABELS, answers).accuracy == 50.0


def test_a_label_that_is_neither_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"line 1.label: expected yes or no, and this is 'maybe'"):
        scored(tmp_path, [{"label": "maybe"}], [{"answer": "yes"}])


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="empty"):
        scored(tmp_path, [], [])
