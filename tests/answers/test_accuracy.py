"""Against both official codes on 4,583 questions, and the cases in which they are held to be wrong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.answers import agreement, mostly_unanswerable, vqa_accuracy

WORDS = st.sampled_from(["yes", "Yes.", "no", "two", "2", "the dog", "dog", "", "unanswerable"])


@pytest.mark.parametrize("code", ["2021", "2016"])
def test_bit_for_bit_as_the_official_code(golden, code):
    wrong = [
        row
        for row in golden("vqa_golden.jsonl.gz")
        if vqa_accuracy(row["prediction"], row["answers"], code) != row[f"acc_{code}"]
    ]
    assert not wrong, wrong[:3]


@pytest.mark.parametrize("name", ["vqa-01", "vqa-02", "vqa-04", "vqa-05"])
def test_the_cases_under_always(case, name):
    rows = case(f"{name}_vectors.jsonl")
    assert rows
    for row in rows:
        score = vqa_accuracy(row["prediction"], row["answers"], "always")
        assert score == pytest.approx(row["expected_accuracy"], abs=1e-6), row["why"]


def test_the_codes_differ_where_annotators_agree():
    answers = ["black"] * 10
    assert [vqa_accuracy("Black.", answers, code) for code in ("2021", "2016", "always")] == [0.0, 1.0, 1.0]
    assert [vqa_accuracy("Two", ["Two"] * 10, code) for code in ("2021", "2016", "always")] == [1.0, 0.0, 1.0]


def test_annotators_who_differ_in_outer_white_space_agree():
    answers = ["Dog."] * 9 + ["Dog.\n"]
    assert vqa_accuracy("dog", answers, "2021") == 0.0
    assert vqa_accuracy("dog", answers, "2016") == 0.0
    assert vqa_accuracy("Dog.", answers, "2021") == 1.0


def test_refusals():
    with pytest.raises(ValueError, match="empty"):
        vqa_accuracy("yes", [])
    with pytest.raises(ValueError, match="always"):
        vqa_accuracy("yes", ["yes"], "2017")


@given(WORDS, st.lists(WORDS, min_size=1, max_size=10), st.sampled_from(["2021", "2016", "always"]), st.randoms())
def test_bounded_and_blind_to_the_order_of_annotators(prediction, answers, code, random):
    score = vqa_accuracy(prediction, answers, code)
    assert 0.0 <= score <= 1.0
    random.shuffle(answers)
    assert vqa_accuracy(prediction, answers, code) == pytest.approx(score, abs=1e-12)


def test_agreement_of_few_people_is_the_share_who_said_the_same() -> None:
    """Full marks of the official metric need four; a right answer must not look wrong because fewer were asked."""
    assert [agreement("Two.", ["2"] * n) for n in (1, 2, 3, 4, 10)] == [1.0] * 5
    assert agreement("intact", ["intact", "intact", "broken"]) == pytest.approx(2 / 3)
    assert agreement("red", ["blue"]) == 0.0
    ten = ["red"] * 3 + ["blue"] * 7
    assert agreement("red", ten) == vqa_accuracy("red", ten, "always") == pytest.approx(0.9)
    with pytest.raises(ValueError, match="empty"):
        agreement("red", [])


def test_mostly_unanswerable_is_half_at_least() -> None:
    assert mostly_unanswerable(["unanswerable", "I don't know", "red"])
    assert mostly_unanswerable(["can't tell", "red"])
    assert not mostly_unanswerable(["unanswerable", "red", "red"])
