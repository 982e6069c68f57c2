"""Whatever is wrong in a file, it is scored or refused in one sentence: all data sets, with one thing changed."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest

from service.errors import DataError
from service.scoring.datasets import DATASETS
from service.scoring.scores import Inputs
from tests.support.golden import GOLDEN, read

ODD = [None, True, -1, 10**400, 1.5, float("nan"), float("inf"), "", "x", "\ud800", [], [1], [[]], {}, {"a": 1}]
QUESTIONS = 12
ROUNDS = 150


def vqa() -> dict[str, Any]:
    folder = GOLDEN / "vqa_official_format"
    annotations = read(folder / "annotations.json")
    annotations["annotations"] = annotations["annotations"][:QUESTIONS]
    ids = {row["question_id"] for row in annotations["annotations"]}
    questions = read(folder / "questions.json")
    questions["questions"] = [row for row in questions["questions"] if row["question_id"] in ids]
    results = [row for row in read(folder / "results.json") if row["question_id"] in ids]
    return {"annotations": annotations, "questions": questions, "results": results}


def advqa() -> dict[str, Any]:
    files = vqa()
    return files | {"train": copy.deepcopy(files["annotations"])}


def vizwiz() -> dict[str, Any]:
    names = {"annotations": "annotations_b", "results": "results_vqa_b", "answerability": "results_answerability_b"}
    return {name: read(GOLDEN / "vizwiz_format" / f"{file}.json")[:QUESTIONS] for name, file in names.items()}


def gqa() -> dict[str, Any]:
    names = {
        "annotations": "all_questions",
        "results": "predictions",
        "choices": "choices",
        "scenes": "sceneGraphs",
        "attentions": "attentions",
    }
    files = {name: read(GOLDEN / "gqa_format" / f"a_{file}.json") for name, file in names.items()}
    kept = list(files["annotations"])[:QUESTIONS]
    files["annotations"] = {key: files["annotations"][key] for key in kept}
    for name in ("results", "attentions"):
        files[name] = [row for row in files[name] if row["questionId"] in kept]
    return files


def pope() -> dict[str, Any]:
    [golden] = [row for row in read(GOLDEN / "pope" / "pope_golden.json") if row["name"] == "rand1"]
    labels = [{"question_id": n, "label": label, "text": "?"} for n, label in enumerate(golden["labels"])]
    return {
        "annotations": labels,
        "results": [{"question_id": n, "answer": a} for n, a in enumerate(golden["answers"])],
    }


def reliable_vqa() -> dict[str, Any]:
    names = {"annotations": "annotations", "results": "predictions", "thresholds": "threshold_predictions"}
    return {name: read(GOLDEN / "reliable_vqa" / f"{file}.json") for name, file in names.items()}


def docvqa() -> dict[str, Any]:
    data = [{"questionId": n, "answers": ["12.5", "12"], "question_types": ["table"]} for n in range(4)]
    return {"annotations": {"data": data}, "results": [{"questionId": n, "answer": "12"} for n in range(4)]}


def easyvqa() -> dict[str, Any]:
    asked = [["what is it?", "circle", 0], ["is it red?", "no", 0], ["is it not red?", "yes", 1]]
    return {"annotations": asked, "results": [{"question_id": n, "answer": "no"} for n in range(3)]}


FILES = {
    "vqav2": vqa,
    "advqa": advqa,
    "vizwiz": vizwiz,
    "gqa": gqa,
    "pope": pope,
    "reliable-vqa": reliable_vqa,
    "docvqa": docvqa,
    "easyvqa": easyvqa,
}


def mutate(value: Any, draw: random.Random) -> Any:
    """The value with one thing in it changed, left out, or there twice."""
    if not isinstance(value, list | dict) or not value or draw.random() < 0.15:
        return draw.choice(ODD)
    value = copy.copy(value)
    key = draw.choice(list(value) if isinstance(value, dict) else range(len(value)))
    if draw.random() < 0.1:
        del value[key]
    elif isinstance(value, list) and draw.random() < 0.1:
        value.append(value[key])
    else:
        value[key] = mutate(value[key], draw)
    return value


@pytest.mark.parametrize("dataset", FILES)
def test_one_thing_wrong_is_scored_or_refused(tmp_path: Path, dataset: str) -> None:
    draw, files = random.Random(dataset), FILES[dataset]()
    refused: list[DataError] = []
    for _ in range(ROUNDS):
        changed = draw.choice(list(files))
        for name, value in files.items():
            text = json.dumps(mutate(value, draw) if name == changed else value)
            (tmp_path / f"{name}.json").write_text(text, "utf-8")
        try:
            scores = DATASETS[dataset].score(Inputs(**{name: tmp_path / f"{name}.json" for name in files}))
            json.dumps(scores.document(), allow_nan=False)
        except DataError as error:
            refused.append(error)
    assert 0 < len(refused) < ROUNDS
    assert all(error.path.startswith(str(tmp_path)) and "\n" not in str(error) for error in refused)
