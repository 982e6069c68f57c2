"""Complementary pairs: both questions right, worked out by hand."""

from __future__ import annotations

import pytest

from service.errors import DataError
from service.scoring.pairs import score_pairs

ACCURACIES = {1: 1.0, 2: 1.0, 3: 1.0, 4: 0.6, 5: 0.0, 6: 1.0}


def test_both_right_and_the_lower_of_the_two(written):
    path = written("pairs.json", [[1, 2], [3, 4], [5, 6], [1, 99]])
    expected = {"pairs": 3, "left_out": 1, "both_right": 33.33, "mean_of_lower": 53.33}
    assert score_pairs(path, ACCURACIES) == expected


def test_answering_from_the_question_alone_gets_no_pair_right(score, written):
    """Two pictures, one question, two answers: whatever is always said is wrong once."""
    records = [{"answer": text, "answer_id": n} for n, text in enumerate(["yes"] * 10)]
    rows = [
        {"question_id": 1, "answer_type": "yes/no", "question_type": "is", "answers": records},
        {
            "question_id": 2,
            "answer_type": "yes/no",
            "question_type": "is",
            "answers": [record | {"answer": "no"} for record in records],
        },
    ]
    scores = score(
        "vqav2",
        annotations=written("annotations.json", rows),
        results=written("results.json", [{"question_id": 1, "answer": "yes"}, {"question_id": 2, "answer": "yes"}]),
        pairs=written("pairs.json", [[1, 2]]),
    )
    assert scores["accuracy"] == 50.0
    assert scores["pairs"]["both_right"] == 0.0


@pytest.mark.parametrize(("pairs", "message"), [([[1, 2], [3]], r"\[1\]: must be a pair"), ([[98, 99]], "none of its")])
def test_broken_pairs(written, pairs, message):
    with pytest.raises(DataError, match=message):
        score_pairs(written("pairs.json", pairs), ACCURACIES)
