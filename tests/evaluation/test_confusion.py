"""The table of confused answers, counted by hand."""

from __future__ import annotations

from service.evaluation.reporting.confusion import best_answers, confusion


def test_best_answer_is_the_most_frequent_in_normal_form() -> None:
    said = [["A dog", "cat", "dog.", "cat", "DOG"], ["cat", "dog", "dog", "cat"], ["!", "the"], []]
    assert best_answers(said) == ["dog", "cat", None, None]


def test_counts_by_hand() -> None:
    right = ["yes", "yes", "yes", "no", "no", "2", "red", None]
    said = ["Yes.", "no", None, "no", "maybe", "2", "yes", "yes"]
    table = confusion(right, said, frequent=2)
    assert table.rows == ("yes", "no", "other answers")
    assert table.columns == ("yes", "no", "other answers", "no answer")
    assert table.counts == ((1, 1, 0, 1), (0, 1, 1, 0), (1, 0, 1, 0))


def test_nobody_said_anything() -> None:
    assert confusion([None, None], ["yes", None]).answers == ()
