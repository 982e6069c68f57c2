"""Other programs' evaluators, on the questions that the official code was asked."""

from __future__ import annotations

import pytest

from service.scoring import chains
from service.scoring.rules import Accuracy, comparison
from tests.support.golden import GOLDEN, read

ROWS = {row["id"]: row for row in read(GOLDEN / "vqa_golden.jsonl.gz")}
OTHERS = read(GOLDEN / "other_evaluators_golden.jsonl.gz")
COLUMNS = {
    "textvqa_m4c": ("m4c", "textvqa", chains.eval_ai),
    "lmms_vqav2": ("lmms-eval", "vqav2", chains.port_commas),
    "lmms_vizwiz_vqa": ("lmms-eval", "vizwiz", chains.eval_ai),
    "lmms_textvqa": ("lmms-eval", "textvqa", chains.eval_ai),
    "lmms_ok_vqa": ("lmms-eval", "okvqa", chains.eval_ai),
    "vlmevalkit": ("vlmevalkit", "vqav2", chains.vlmevalkit),
    "vizwiz": ("vizwiz", "vizwiz", chains.vizwiz),
}


def records(row):
    return [{"answer": answer, "answer_id": number} for number, answer in enumerate(row["answers"], 1)]


@pytest.mark.parametrize("column", COLUMNS)
def test_bit_for_bit_as_the_other_program(column):
    like, dataset, chain = COLUMNS[column]
    accuracy = Accuracy(comparison("2021", like, dataset))
    wrong = []
    for other in OTHERS:
        row, (processed, value) = ROWS[other["id"]], other[column]
        if chain(row["prediction"]) != processed or accuracy(row["prediction"], records(row)) != value:
            wrong.append((row["prediction"], row["answers"], other[column]))
    assert not wrong, wrong[:3]


def test_bit_for_bit_as_lavis():
    accuracy = Accuracy(comparison("2016", "lavis"))
    wrong = [o for o in OTHERS if accuracy(ROWS[o["id"]]["prediction"], records(ROWS[o["id"]])) != o["lavis"]]
    assert not wrong, wrong[:3]


@pytest.mark.parametrize("code", ["2021", "2016"])
def test_many_answers_are_scored_as_one_is(code):
    accuracy = Accuracy(comparison(code))
    wrong = [row for row in ROWS.values() if accuracy(row["prediction"], records(row)) != row[f"acc_{code}"]]
    assert not wrong, wrong[:3]


def test_questions_with_other_numbers_of_annotators_do_not_disturb_each_other():
    accuracy = Accuracy(comparison("2021"))
    said = [["yes"], ["yes", "yes"], ["yes", "no"], ["yes"] * 3, ["yes"]]
    scores = [accuracy("yes", [{"answer": a, "answer_id": n} for n, a in enumerate(answers)]) for answers in said]
    # One annotator left out of one leaves nobody; of two, one; and so on, a third of a mark each.
    assert scores == [0.0, pytest.approx(1 / 3), pytest.approx(1 / 6), pytest.approx(2 / 3), 0.0]
