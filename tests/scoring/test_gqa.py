"""GQA against the official eval.py, number for number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from service.errors import DataError
from service.scoring.gqa import score
from service.scoring.scores import Inputs
from tests.support.golden import GOLDEN, golden, write

GQA = GOLDEN / "gqa_format"
QUESTIONS = GQA / "a_all_questions.json"
EXPECTED = golden("gqa_format", "a_expected.json")
TABLES = ("accuracyPerStructuralType", "accuracyPerSemanticType", "accuracyPerSteps", "accuracyPerLength")


def inputs(**changed: Any) -> Inputs:
    given: dict[str, Any] = {
        "annotations": QUESTIONS,
        "results": GQA / "a_predictions.json",
        "choices": GQA / "a_choices.json",
    }
    return Inputs(**(given | changed))


def grounded(**changed: Any) -> Inputs:
    return inputs(**({"scenes": GQA / "a_sceneGraphs.json", "attentions": GQA / "a_attentions.json"} | changed))


def questions() -> dict[str, Any]:
    return golden("gqa_format", "a_all_questions.json")


def without(rows: list[dict[str, Any]], qid: str) -> list[dict[str, Any]]:
    return [row for row in rows if row["questionId"] != qid]


def first(balanced: bool) -> str:
    return next(qid for qid, question in questions().items() if question["isBalanced"] == balanced)


def lines(mode: str) -> tuple[str, ...]:
    return tuple(EXPECTED[mode]["stdout"].splitlines())


@pytest.mark.parametrize(
    ("mode", "given"), [("--consistency", inputs()), ("--consistency --grounding", grounded())], ids=["plain", "maps"]
)
def test_equals_the_official_program(mode: str, given: Inputs) -> None:
    scores = score(given)
    expected = EXPECTED[mode]["scores"]
    absent = {"grounding": None} if given.attentions is None else {}
    assert scores.metrics["scores"] == expected | absent
    assert scores.official == lines(mode)
    assert scores.accuracy == 67.23
    assert scores.metrics["consistency"] == round(expected["consistency"], 2)
    assert scores.metrics["accuracyPerSteps"]["2"] == [63.92, 97]
    assert scores.per_question_type["logical"] == 84.62
    assert scores.per_answer_type == {"binary": 70.09, "open": 62.86}
    assert scores.questions == len(scores.per_question) == 177


def test_one_unbalanced_question_without_prediction_leaves_consistency_out(tmp_path: Path) -> None:
    fewer = without(golden("gqa_format", "a_predictions.json"), first(balanced=False))
    scores = score(inputs(results=write(tmp_path / "p.json", fewer)))
    assert scores.official == lines("plain")
    assert scores.metrics["consistency"] is None
    assert "1 questions have no prediction" in " ".join(scores.notes)


def test_a_file_of_balanced_questions_alone_leaves_consistency_out(tmp_path: Path) -> None:
    """The official --consistency ends in a KeyError on such a file; without it, it prints the rest."""
    balanced = {qid: question for qid, question in questions().items() if question["isBalanced"]}
    scores = score(inputs(annotations=write(tmp_path / "q.json", balanced)))
    assert scores.official == lines("plain")
    assert "consistency is left out: question" in " ".join(scores.notes)


def test_without_choices_validity_is_null_and_the_official_lines_say_zero() -> None:
    scores = score(inputs(choices=None))
    assert scores.metrics["validity"] is scores.metrics["plausibility"] is None
    assert {"Validity: 0.00%", "Plausibility: 0.00%"} <= set(scores.official)
    assert "choices file" in " ".join(scores.notes)


@pytest.mark.parametrize("named", ["a_all_questions", "a_all_questions.json"])
def test_questions_in_chunks(tmp_path: Path, named: str) -> None:
    folder = tmp_path / "a_all_questions"
    folder.mkdir()
    items = list(questions().items())
    for number in range(13):  # more than ten: _10 comes after _9
        write(folder / f"a_all_questions_{number}.json", dict(items[number * 20 : number * 20 + 20]))
    scores = score(inputs(annotations=tmp_path / named))
    assert scores.official == lines("--consistency")
    assert list(scores.per_question) == [qid for qid, question in items if question["isBalanced"]]


def test_no_group_at_all_leaves_distribution_out(tmp_path: Path) -> None:
    """The official program divides by zero there."""
    changed = {qid: question | {"groups": {"global": None, "local": None}} for qid, question in questions().items()}
    scores = score(inputs(annotations=write(tmp_path / "q.json", changed)))
    assert scores.metrics["distribution"] is None
    assert scores.official == ()
    assert scores.accuracy == 67.23


def test_a_prediction_twice_and_one_that_is_no_text(tmp_path: Path) -> None:
    qid = first(balanced=True)
    rows = golden("gqa_format", "a_predictions.json")
    twice = [{"questionId": qid, "prediction": "never"}, *rows]
    scores = score(inputs(results=write(tmp_path / "p.json", twice)))
    assert scores.official == lines("--consistency")
    assert "repeat a questionId" in " ".join(scores.notes)
    null = [*rows, {"questionId": qid, "prediction": None}]
    assert score(inputs(results=write(tmp_path / "p.json", null))).per_question[qid] == 0.0


def test_missing_prediction_is_refused(tmp_path: Path) -> None:
    qid = first(balanced=True)
    rows = without(golden("gqa_format", "a_predictions.json"), qid)
    with pytest.raises(DataError, match=f"no prediction for question {qid}; 1 of 177 balanced"):
        score(inputs(results=write(tmp_path / "p.json", rows)))


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ({"00000000": "red"}, "expected a JSON array .* an object"),
        ([{"questionId": "00000000", "answer": "red"}], r"\[0\]: the key 'prediction' is missing"),
        ([{"questionId": "00000000", "prediction": ["red"]}], r"\[0\].prediction: expected a text"),
        (["red"], r"\[0\]: expected an object"),
        ("[", "cut short"),
    ],
)
def test_predictions_that_are_none(tmp_path: Path, content: Any, match: str) -> None:
    with pytest.raises(DataError, match=match):
        score(inputs(results=write(tmp_path / "p.json", content)))


@pytest.mark.parametrize("key", ["answer", "types", "semantic", "groups", "question", "isBalanced"])
def test_a_question_without_a_key_is_refused_by_its_id(tmp_path: Path, key: str) -> None:
    qid = first(balanced=True)
    changed = questions()
    del changed[qid][key]
    with pytest.raises(DataError, match=f"question {qid}: .*'{key}'"):
        score(inputs(annotations=write(tmp_path / "q.json", changed)))


def test_no_balanced_question_is_refused(tmp_path: Path) -> None:
    changed = {qid: question | {"isBalanced": False} for qid, question in questions().items()}
    with pytest.raises(DataError, match="no question is balanced"):
        score(inputs(annotations=write(tmp_path / "q.json", changed)))


def test_a_question_without_choices_is_refused(tmp_path: Path) -> None:
    qid = first(balanced=True)
    choices = golden("gqa_format", "a_choices.json")
    del choices[qid]
    with pytest.raises(DataError, match=f"question {qid}: no valid answers"):
        score(inputs(choices=write(tmp_path / "c.json", choices)))


@pytest.mark.parametrize("left_out", ["scenes", "attentions"])
def test_half_of_grounding_is_refused(left_out: str) -> None:
    with pytest.raises(DataError, match=f"{left_out} is not"):
        score(grounded(**{left_out: None}))


def test_a_question_without_attention_is_refused(tmp_path: Path) -> None:
    qid = first(balanced=True)
    rows = without(golden("gqa_format", "a_attentions.json"), qid)
    with pytest.raises(DataError, match=f"question {qid}: no attention"):
        score(grounded(attentions=write(tmp_path / "a.json", rows)))


@pytest.mark.parametrize(
    ("attention", "match"),
    [
        ([[0.0, 0.0, 0.5, 0.5, 0.3]] * 36, "objectFeatures"),
        ([[0.1] * 7] * 6, "not square"),
        ([[0.1] * 8] * 8, "8 x 8, and those before are 7 x 7"),
        ([0.1] * 49, "array of rows"),
        ([["x"] * 7] * 7, "no finite number"),
    ],
)
def test_an_odd_attention_map_is_refused(tmp_path: Path, attention: Any, match: str) -> None:
    rows = golden("gqa_format", "a_attentions.json")
    rows[3]["attention"] = attention
    with pytest.raises(DataError, match=rf"\[3\] \(question {rows[3]['questionId']}\): .*{match}"):
        score(grounded(attentions=write(tmp_path / "a.json", rows)))


def test_a_missing_scene_graph_or_object_is_refused(tmp_path: Path) -> None:
    scenes = golden("gqa_format", "a_sceneGraphs.json")
    qid = first(balanced=True)
    image = questions()[qid]["imageId"]
    objects, scenes[image]["objects"] = scenes[image]["objects"], {}
    with pytest.raises(DataError, match=f"question {qid}: .* has no object '{next(iter(objects))}'"):
        score(grounded(scenes=write(tmp_path / "s.json", scenes)))
    del scenes[image]
    with pytest.raises(DataError, match=f"question {qid}: no scene graph for the picture '{image}'"):
        score(grounded(scenes=write(tmp_path / "s.json", scenes)))
