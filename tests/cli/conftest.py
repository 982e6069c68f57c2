"""Data sets for runs of `vqa eval`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from easy_vqa import get_test_image_paths, get_test_questions

from models.shapes.examples import Split, draw_split
from models.shapes.vqav2 import write
from tests.support.eval_runs import LONG, QUESTIONS_EACH, SHAPES


@pytest.fixture(scope="module")
def shapes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Drawn shapes in the format of VQA v2."""
    folder = tmp_path_factory.mktemp("shapes")
    write(folder, Split.VAL, draw_split(Split.VAL, 0, SHAPES, QUESTIONS_EACH))
    return folder


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Enough questions of easy-VQA's test split that a run can be stopped on its way, as one's own."""
    path = tmp_path_factory.mktemp("long") / "questions.jsonl"
    pictures = get_test_image_paths()
    rows = list(zip(*get_test_questions(), strict=True))[:LONG]
    path.write_text(
        "".join(json.dumps({"image": pictures[n], "question": q, "answers": [a]}) + "\n" for q, a, n in rows)
    )
    return path
