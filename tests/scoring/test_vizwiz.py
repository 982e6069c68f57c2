"""`vqa score --dataset vizwiz` against values of the VizWiz API's code."""

from __future__ import annotations

import pytest

from service.scoring.vizwiz import unanswerability, unanswerability_raw
from tests.support.golden import GOLDEN, read
from tests.support.shared import shared

FOLDER = GOLDEN / "vizwiz_format"


def same(scores, expected) -> None:
    assert scores["accuracy"] == expected["accuracy"]["overall"]
    assert scores["per_answer_type"] == expected["accuracy"]["perAnswerType"]
    assert scores["evalQA"] == expected["evalQA"]


@pytest.mark.parametrize("part", ["a", "b"])
def test_both_tasks_at_once(score, part):
    expected = read(FOLDER / "expected.json")[part]
    scores = score(
        "vizwiz",
        annotations=FOLDER / f"annotations_{part}.json",
        results=FOLDER / f"results_vqa_{part}.json",
        answerability=FOLDER / f"results_answerability_{part}.json",
    )
    same(scores, expected)
    assert scores["unanswerability"] == expected["unanswerability_from_scores"]
    assert scores["unanswerability_from_answer_text"] == expected["unanswerability_from_answer_text"]


@pytest.mark.parametrize("part", ["a", "b"])
def test_answerability_alone(score, part):
    scores = score(
        "vizwiz",
        annotations=FOLDER / f"annotations_{part}.json",
        results=FOLDER / f"results_answerability_{part}.json",
    )
    assert scores["accuracy"] is None
    assert scores["unanswerability"] == read(FOLDER / "expected.json")[part]["unanswerability_from_scores"]


def test_the_official_validation_set(score):
    folder = "real_vizwiz_official3172"
    expected = read(shared("golden", folder, "expected.json.gz"))
    scores = score(
        "vizwiz",
        annotations=shared("golden", folder, "annotations.json.gz"),
        results=shared("golden", folder, "results_vqa.json.gz"),
        answerability=shared("golden", folder, "results_answerability.json.gz"),
    )
    same(scores, expected)
    assert scores["unanswerability"] == expected["unanswerability"]


def test_answerability_vectors_with_ties():
    for row in read(FOLDER / "answerability_vectors.json"):
        precision, f1 = unanswerability_raw(row["answerable"], row["predicted_answerable"])
        assert precision == pytest.approx(row["ap_raw"], abs=1e-15)
        assert f1 == row["f1_raw"]
        rounded = unanswerability(row["answerable"], row["predicted_answerable"])
        assert rounded == {"average_precision": row["average_precision"], "f1_score": row["f1_score"]}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"image": "VizWiz_val_00000000.jpg", "answerable": "yes"}, "must be a number, and is a text"),
        ({"image": "VizWiz_val_00000000.jpg", "answerable": float("nan")}, "must be a number, and is nan"),
        ({"answerable": 1}, r"\[0\]: the key 'image' is missing"),
    ],
)
def test_broken_results_are_refused_with_their_place(score, written, row, message):
    rows = read(FOLDER / "results_answerability_a.json")
    results = written("results.json", [row, *rows[1:]])
    with pytest.raises(ValueError, match=message):
        score("vizwiz", annotations=FOLDER / "annotations_a.json", results=results)


def test_missing_images_are_named(score, written):
    rows = read(FOLDER / "results_vqa_a.json")
    with pytest.raises(
        ValueError, match=r"2 of 400 have no answer \('VizWiz_val_00000000.jpg', 'VizWiz_val_00000001.j"
    ):
        score("vizwiz", annotations=FOLDER / "annotations_a.json", results=written("results.json", rows[2:]))
