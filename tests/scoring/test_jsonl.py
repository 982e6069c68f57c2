"""One's own questions as JSON Lines."""

from __future__ import annotations

import json

import pytest

ROWS = [
    {"image": "a.jpg", "question": "What is it?", "answers": ["a dog"] * 8 + ["cat"] * 2, "answer_type": "other"},
    {"image": "a.jpg", "question": "Is it red?", "answers": ["Yes."], "answer_type": "yes/no", "question_id": "red"},
]


def lines(rows):
    return "\n".join(json.dumps(row) for row in rows)


@pytest.mark.parametrize("code", ["2021", "2016", "always"])
def test_many_answers_are_voted_on_and_a_single_one_is_matched(score, written, code):
    annotations = written("mine.jsonl", lines(ROWS))
    answers = [{"question_id": 1, "answer": "cat"}, {"question_id": "red", "answer": "yes"}]
    scores = score("jsonl", annotations=annotations, results=written("results.json", answers), code=code)
    assert scores["evalQA"] == {"1": 60.0, "red": 100.0}
    assert scores["per_answer_type"] == {"other": 60.0, "yes/no": 100.0}
    assert scores["per_question_type"] == {"is it": 100.0, "what is": 60.0}


def test_two_or_three_answers_cannot_give_full_marks_and_a_note_says_so(score, written):
    rows = [{"image": "a.jpg", "question": "Is it?", "answers": ["yes"] * count} for count in (1, 2, 3, 4)]
    answers = [{"question_id": number, "answer": "yes"} for number in (1, 2, 3, 4)]
    scores = score("jsonl", annotations=written("mine.jsonl", lines(rows)), results=written("results.json", answers))
    assert list(scores["evalQA"].values()) == [100.0, 33.33, 66.67, 100.0]
    assert any(note.startswith("2 questions have two or three answers") for note in scores["notes"])


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"question": "What?", "answers": ["a"]}, "line 3: the key 'image' is missing"),
        ({"image": "a.jpg", "question": "What?", "answers": []}, "line 3.answers: expected texts, one at least"),
        ({"image": "a.jpg", "question": "What?", "answers": ["a"], "question_id": "red"}, "'red' is that of line 2"),
        (["a.jpg"], "line 3: expected an object with image, question, answers"),
    ],
)
def test_broken_rows_are_refused_with_their_line(score, written, row, message):
    annotations = written("mine.jsonl", lines([*ROWS, row]))
    with pytest.raises(ValueError, match=message):
        score("jsonl", annotations=annotations, results=written("results.json", []))
