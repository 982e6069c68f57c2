"""The official types, against the types that real annotations hold."""

from __future__ import annotations

import pytest

from service.scoring.question_types import answer_type, question_type
from service.scoring.rounding import round_half_away
from tests.support.golden import read
from tests.support.shared import shared


def test_the_types_of_real_questions():
    """Nearly all: people gave some of them."""
    folder = "real_vqav2_2962"
    annotations = read(shared("golden", folder, "annotations.json.gz"))["annotations"]
    questions = {row["question_id"]: row for row in read(shared("golden", folder, "questions.json.gz"))["questions"]}
    texts = [questions[row["question_id"]]["question"] for row in annotations]
    types = [row["question_type"] for row in annotations]
    same = sum(question_type(text) == kind for text, kind in zip(texts, types, strict=True))
    assert same / len(types) > 0.99
    kinds = [row["answer_type"] for row in annotations]
    same = sum(answer_type(row["multiple_choice_answer"]) == kind for row, kind in zip(annotations, kinds, strict=True))
    assert same / len(kinds) > 0.985


@pytest.mark.parametrize(
    ("text", "data_type", "expected"),
    [
        ("What color is the couch?", "mscoco", "what color is the"),
        ("WHAT COLOR  IS THE couch?", "mscoco", "what color is the"),
        ("What colour?", "mscoco", "what"),
        ("Whatever is it?", "mscoco", "none of the above"),
        ("", "mscoco", "none of the above"),
        ("How many clouds are there?", "abstract_v002", "how many clouds are"),
        ("How many clouds are there?", "mscoco", "how many"),
    ],
)
def test_the_longest_prefix_of_whole_words(text, data_type, expected):
    assert question_type(text, data_type) == expected


def test_rounding_as_python_2_7_does():
    """Exactly halfway goes away from zero; what merely looks halfway is rounded by its true value."""
    assert [round_half_away(value) for value in (3.125, 0.375, -3.125, 2.675, 66.66666)] == [
        3.13,
        0.38,
        -3.13,
        2.67,
        66.67,
    ]
