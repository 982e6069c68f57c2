"""AdVQA's baselines and human agreement on sets small enough to work out by hand."""

from __future__ import annotations

import pytest

from service.scoring.advqa import human_agreement


def records(*said):
    return [{"answer": text, "answer_id": number} for number, text in enumerate(said)]


def annotation(number, kind, *said):
    return {"question_id": number, "answer_type": kind, "question_type": "what", "answers": records(*said)}


def test_human_agreement_leaves_each_annotator_out():
    # Seven say a: each has six others, 1. Three say b: each has two others, 2/3. Normal forms are compared.
    said = ["a dog", *["dog"] * 6, "cat.", "cat", "Cat"]
    assert human_agreement(records(*said)) == pytest.approx((7 + 3 * 2 / 3) / 10)
    assert human_agreement(records(*["dog"] * 10)) == 1.0
    # The nine others of "Dog." agree, so the code of 2021 compares as it stands; those of a "dog" do not.
    assert human_agreement(records(*["dog"] * 9, "Dog.")) == pytest.approx(0.9)
    assert human_agreement(records(*["dog"] * 9, "Dog."), "always") == 1.0
    assert human_agreement(records(*(f"word {n}" for n in range(10)))) == 0.0


def test_majority_baselines_and_human_agreement(score, written):
    rows = [
        annotation(1, "yes/no", *["yes"] * 10),
        annotation(2, "yes/no", *["no"] * 8, "yes", "yes"),
        annotation(3, "yes/no", *["no"] * 10),
        annotation(4, "number", *["2"] * 7, "two", "3", "3"),
        annotation(5, "other", *["red"] * 4, *["blue"] * 3, *["green"] * 3),
    ]
    results = [{"question_id": n, "answer": "no"} for n in range(1, 6)]
    scores = score(
        "advqa",
        annotations=written("annotations.json", {"annotations": rows}),
        results=written("results.json", results),
    )
    baselines = scores["majority_baselines"]
    # "no" is the majority answer of two questions of five: right on 2 and 3.
    assert baselines["overall"] == {
        "answer": "no",
        "accuracy": 40.0,
        "per_answer_type": {"number": 0.0, "other": 0.0, "yes/no": 66.67},
    }
    # Each type its own: "no", "2" and "red" (four of ten: full marks).
    assert baselines["per_answer_type"]["answers"] == {"number": "2", "other": "red", "yes/no": "no"}
    assert baselines["per_answer_type"]["accuracy"] == 80.0
    assert scores["accuracy"] == baselines["overall"]["accuracy"]
    # 1 and 3: 1. 2: (8 + 2 x 1/3) / 10. 4: (8 + 2 x 1/3) / 10. 5: (4 + 6 x 2/3) / 10.
    expected = 100 * (1 + 8.667 / 10 + 1 + 8.667 / 10 + 0.8) / 5
    assert scores["human_agreement"]["accuracy"] == pytest.approx(expected, abs=0.01)


def test_the_baselines_can_come_from_training_answers(score, written):
    rows = [annotation(1, "yes/no", *["yes"] * 10)]
    train = [annotation(7, "yes/no", *["no"] * 10), annotation(8, "yes/no", *["no"] * 10)]
    scores = score(
        "advqa",
        annotations=written("annotations.json", rows),
        train=written("train.json", train),
        results=written("results.json", [{"question_id": 1, "answer": "yes"}]),
    )
    assert scores["accuracy"] == 100.0
    assert scores["majority_baselines"]["overall"]["answer"] == "no"
    assert scores["majority_baselines"]["overall"]["accuracy"] == 0.0
