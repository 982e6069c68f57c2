from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.answers import AnswerSet, Calibration, Posterior, ScoreKind, Vocabulary, check_max_risk, finish
from service.errors import Code, VQAError

BASE = {"version": 1, "fitted_on": "text", "questions": 10, "target": "vqa_accuracy(always)"}
SAME = {"quantity": "top_mass", "maps": {"default": {"kind": "isotonic", "x": [0, 1], "y": [0, 1]}}}
# answerability = 1 - mass of "unanswerable"
PLAIN = {
    "kind": "logistic",
    "features": ["unanswerable_logit"],
    "weights": [-1.0],
    "bias": 0.0,
    "threshold": 0.5,
}
CONFIDENCE = Calibration.load({**BASE, "confidence": SAME})
BOTH = Calibration.load({**BASE, "confidence": SAME, "answerability": PLAIN})
ANSWERABILITY = Calibration.load({**BASE, "answerability": PLAIN})

LABELS = ["yes", "no", "Two", "red", "unknown", "can't tell", "blue"]


def of(probabilities, choices=None, labels=LABELS, kind="softmax"):
    """The posterior of a model that gives these probabilities to its labels."""
    p = np.asarray(probabilities, dtype=np.float64)
    with np.errstate(divide="ignore"):
        logits = np.log(p) if kind == "softmax" else np.log(p) - np.log1p(-p)
    vocabulary = Vocabulary(labels)
    answer_set = vocabulary.default_set if choices is None else AnswerSet.from_choices(choices)
    return Posterior.from_logits(logits, vocabulary.project(answer_set), answer_set, kind)


def listed(verdict):
    return [(candidate.answer, pytest.approx(candidate.probability)) for candidate in verdict.candidates]


def test_an_answer_in_the_normal_form_of_the_vocabulary():
    verdict = finish(of([0.1, 0.1, 0.5, 0.1, 0.1, 0.1, 0.0]), None)
    assert (verdict.answer, verdict.raw_answer, verdict.answer_type) == ("2", "Two", "number")
    assert (verdict.confidence, verdict.calibrated, verdict.abstained) == (None, False, False)
    assert (verdict.answerable, verdict.answerability, verdict.off_set) == (True, None, 0.0)
    assert listed(verdict) == [("2", 0.5), ("unanswerable", 0.2), ("yes", 0.1), ("no", 0.1), ("red", 0.1)]


def test_an_answer_in_the_callers_own_spelling():
    verdict = finish(of([0.1, 0.1, 0.25, 0.2, 0.05, 0.1, 0.2], ["YES!", "two"]), CONFIDENCE, top_k=2)
    assert verdict.answer == "two"
    assert verdict.raw_answer == "Two"
    assert listed(verdict) == [("two", 0.5), ("unanswerable", 0.3)]
    assert verdict.off_set == pytest.approx(0.5)
    assert verdict.confidence == pytest.approx(0.25)  # of the mass, not of the share within the set
    assert verdict.calibrated


def test_unanswerable():
    verdict = finish(of([0.3, 0.1, 0.0, 0.1, 0.2, 0.3, 0.0]), None)
    assert (verdict.answer, verdict.answerable, verdict.answer_type) == ("unanswerable", False, "unanswerable")
    assert verdict.raw_answer == "can't tell"
    assert verdict.candidates[0].answer == "unanswerable"
    assert not verdict.abstained


def test_a_family_member_that_the_caller_named_is_an_answer():
    verdict = finish(of([0.2, 0.0, 0.0, 0.0, 0.5, 0.3, 0.0], ["Unknown", "yes"]), BOTH)
    assert (verdict.answer, verdict.answerable, verdict.answer_type) == ("Unknown", True, "other")
    assert verdict.confidence == pytest.approx(0.5)
    assert verdict.answerability == pytest.approx(0.7)


def test_unanswerable_named_by_the_caller_is_the_services_own():
    verdict = finish(of([0.2, 0.0, 0.0, 0.0, 0.5, 0.3, 0.0], ["Unanswerable!", "yes"]), None)
    assert (verdict.answer, verdict.answerable) == ("Unanswerable!", False)


def test_a_model_without_the_family_does_not_know_whether_it_can_be_answered():
    verdict = finish(of([0.7, 0.3], ["no", "yes"], labels=["yes", "no"]), CONFIDENCE)
    assert (verdict.answer, verdict.answerable, verdict.answerability) == ("yes", None, None)
    assert listed(verdict) == [("yes", 0.7), ("no", 0.3)]  # nothing that the model cannot say
    assert verdict.answer_type == "yes/no"


def test_fitted_answerability_decides_and_not_the_highest_label():
    eager = Calibration.load({**BASE, "confidence": SAME, "answerability": {**PLAIN, "threshold": 0.2}})
    p = [0.3, 0.0, 0.0, 0.0, 0.4, 0.3, 0.0]
    verdict = finish(of(p), eager)
    assert (verdict.answer, verdict.answerable) == ("yes", True)
    assert verdict.answerability == pytest.approx(0.3)
    assert verdict.confidence == pytest.approx(0.3)
    strict = Calibration.load({**BASE, "confidence": SAME, "answerability": {**PLAIN, "threshold": 0.9}})
    verdict = finish(of([0.8, 0.0, 0.0, 0.0, 0.2, 0.0, 0.0]), strict)
    assert (verdict.answer, verdict.answerable) == ("unanswerable", False)
    assert verdict.confidence == pytest.approx(0.2)
    silent = finish(of([0.8, 0.2], labels=["yes", "no"]), Calibration.load(
        {**BASE, "answerability": {**PLAIN, "features": ["top_logit"], "weights": [1.0], "threshold": 0.9}}
    ))  # fmt: skip
    assert (silent.answer, silent.answerable, silent.raw_answer) == ("unanswerable", False, None)


def test_a_model_that_knows_no_answer_at_all():
    lenient = Calibration.load({**BASE, "answerability": {**PLAIN, "threshold": 0.0}})
    verdict = finish(of([0.5, 0.5], labels=["unknown", "unsure"]), lenient)
    assert (verdict.answer, verdict.answerable, verdict.answer_type) == ("unanswerable", False, "unanswerable")


def test_the_threshold_itself_is_answerable():
    fitted = Calibration.load({**BASE, "answerability": {**PLAIN, "weights": [0.0]}})
    assert finish(of([0.1] * 6 + [0.4]), fitted).answerable is True


def test_the_confidence_of_unanswerable():
    p = [0.2, 0.0, 0.0, 0.0, 0.5, 0.3, 0.0]
    both = finish(of(p), BOTH)
    assert (both.confidence, both.calibrated) == (pytest.approx(0.8), True)
    assert both.answerability == pytest.approx(0.2)
    # the map was fitted on the mass of answers; nothing was fitted for "unanswerable"
    assert (finish(of(p), CONFIDENCE).confidence, finish(of(p), CONFIDENCE).calibrated) == (None, False)
    # without a confidence map the model says that it is not calibrated
    alone = finish(of(p), ANSWERABILITY)
    assert (alone.confidence, alone.calibrated, alone.answerable) == (None, False, False)


def test_answerability_looks_at_the_mass_of_the_best_answer():
    fitted = Calibration.load({**BASE, "answerability": {**PLAIN, "features": ["top_logit"], "weights": [1.0]}})
    verdict = finish(of([0.3, 0.1, 0.2, 0.1, 0.1, 0.1, 0.1], ["yes", "no"]), fitted)
    assert verdict.answerability == pytest.approx(0.3)  # the share within the set would be 0.5


def test_a_map_fitted_on_another_kind_of_score_is_not_applied():
    fitted = Calibration.load({**BASE, "confidence": {**SAME, "score_kind": "sigmoid"}})
    p = [0.7, 0.1, 0.1, 0.1, 0.0, 0.0, 0.0]
    assert finish(of(p), fitted).confidence is None
    assert not finish(of(p), fitted).calibrated
    assert finish(of(p, kind="sigmoid"), fitted).confidence == pytest.approx(0.7)
    with_answerability = Calibration.load(
        {**BASE, "confidence": {**SAME, "score_kind": "sigmoid"}, "answerability": PLAIN}
    )
    assert finish(of([0.1, 0, 0, 0, 0.9, 0, 0]), with_answerability).confidence is None
    with pytest.raises(VQAError):
        finish(of(p), fitted, max_risk=0.5)


def test_sigmoid_scores_need_not_sum_to_one():
    verdict = finish(of([0.9, 0.8, 0.0, 0.0, 0.3, 0.4, 0.0], kind="sigmoid"), None, top_k=3)
    assert listed(verdict) == [("yes", 0.9), ("no", 0.8), ("unanswerable", 0.4)]
    assert verdict.off_set is None


@pytest.mark.parametrize(
    ("mass", "max_risk", "abstained"),
    [
        (0.95, 0.05, False),  # 1 - 0.95 is more than 0.05 in floating point
        (0.9, 0.1, False),
        (0.7, 0.3, False),
        (0.949, 0.05, True),
        (0.95, 0.0, True),
        (0.95, 1.0, False),
        (0.95, None, False),
    ],
)
def test_abstention(mass, max_risk, abstained):
    verdict = finish(of([mass, 1 - mass, 0, 0, 0, 0, 0]), CONFIDENCE, max_risk=max_risk)
    assert verdict.abstained is abstained
    assert verdict.answer == (None if abstained else "yes")
    assert verdict.confidence == pytest.approx(mass)
    assert verdict.candidates[0].answer == "yes"
    assert verdict.answerable is True


def test_abstention_on_unanswerable():
    p = [0.4, 0.0, 0.0, 0.0, 0.3, 0.3, 0.0]
    verdict = finish(of(p), BOTH, max_risk=0.3)
    assert (verdict.answer, verdict.abstained, verdict.answerable) == (None, True, False)
    assert finish(of(p), BOTH, max_risk=0.5).answer == "unanswerable"
    # a verdict without a confidence cannot keep to any risk
    assert finish(of(p), CONFIDENCE, max_risk=1.0).abstained


@pytest.mark.parametrize("calibration", [None, ANSWERABILITY])
def test_max_risk_needs_a_fitted_confidence(calibration):
    with pytest.raises(VQAError) as caught:
        finish(of([1 / 7] * 7), calibration, max_risk=0.5)
    assert caught.value.code is Code.NOT_CALIBRATED
    assert caught.value.field == "max_risk"
    with pytest.raises(VQAError, match="max_risk"):  # also before there is a posterior
        check_max_risk(0.5, calibration, ScoreKind.SOFTMAX)
    check_max_risk(None, calibration, ScoreKind.SOFTMAX)
    check_max_risk(0.5, BOTH, ScoreKind.SOFTMAX)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"max_risk": -0.1}, "max_risk"),
        ({"max_risk": 1.1}, "max_risk"),
        ({"max_risk": math.nan}, "max_risk"),
        ({"top_k": -1}, "top_k"),
    ],
)
def test_options_out_of_range(options, field):
    with pytest.raises(VQAError) as caught:
        finish(of([1 / 7] * 7), CONFIDENCE, **options)
    assert caught.value.code is Code.INVALID_FIELD
    assert caught.value.field == field


def test_candidates_are_sorted_and_ties_keep_the_order_of_the_set():
    labels = [f"w{i}" for i in range(100)]
    p = np.full(100, 0.5)
    p[[70, 20]] = 0.9
    verdict = finish(of(p, labels=labels, kind="sigmoid"), None, top_k=4)
    assert [candidate.answer for candidate in verdict.candidates] == ["w20", "w70", "w0", "w1"]
    assert finish(of(p, labels=labels, kind="sigmoid"), None, top_k=0).candidates == ()
    assert len(finish(of(p, labels=labels, kind="sigmoid"), None, top_k=1000).candidates) == 100


def test_what_the_model_cannot_say_is_no_candidate():
    nothing_in_the_set = of([1.0], ["Unanswerable", "yes", "no"], labels=["red"])
    verdict = finish(nothing_in_the_set, None, top_k=2)
    assert listed(verdict) == [("yes", 1 / 3), ("no", 1 / 3)]
    assert (verdict.answer, verdict.off_set, verdict.raw_answer) == ("yes", 1.0, None)


def test_the_case_of_little_mass_in_the_set(case):
    raw = case("raw_logprobs_before_mask.json")["raw_logprobs"]
    answer_set = AnswerSet.from_choices(["yes", "no"])
    verdict = finish(Posterior.from_logprobs([raw["yes"], raw["no"], -math.inf], answer_set), CONFIDENCE)
    assert verdict.answer == "yes"
    assert verdict.candidates[0].probability == pytest.approx(0.8, abs=1e-9)
    assert verdict.confidence == pytest.approx(0.04, abs=1e-9)  # the set alone would have said 0.8


def test_the_case_of_minus_infinity_is_strict_json(case):
    choices = case("neg_inf_logprobs.json")["choices"]
    answer_set = AnswerSet.from_choices(list(choices))
    posterior = Posterior.from_logprobs([*map(sum, choices.values()), -math.inf], answer_set)
    verdict = finish(posterior, BOTH)
    text = json.dumps(dataclasses.asdict(verdict), allow_nan=False)
    assert {c["answer"]: c["probability"] for c in json.loads(text)["candidates"]}["no"] == 0.0


SCORES = st.lists(st.floats(-40, 40) | st.just(-math.inf), min_size=7, max_size=7).filter(
    lambda scores: max(scores) > -math.inf
)
CHOICES = st.none() | st.lists(
    st.sampled_from(["Yes!", "no", "2", "RED", "unknown", "blue", "unanswerable", "maroon"]),
    min_size=1,
    unique=True,
).filter(lambda choices: choices != ["unanswerable"])


def verdict_of(labels, scores, choices, kind, calibration, max_risk=None):
    vocabulary = Vocabulary(labels)
    answer_set = vocabulary.default_set if choices is None else AnswerSet.from_choices(choices)
    posterior = Posterior.from_logits(scores, vocabulary.project(answer_set), answer_set, kind)
    return finish(posterior, calibration, max_risk=max_risk)


@given(
    SCORES,
    CHOICES,
    st.sampled_from(["softmax", "sigmoid"]),
    st.sampled_from([None, CONFIDENCE, ANSWERABILITY, BOTH]),
    st.none() | st.floats(0, 1),
)
def test_every_verdict_keeps_the_contract(scores, choices, kind, calibration, max_risk):
    if max_risk is not None and (calibration is None or calibration.confidence is None):
        max_risk = None
    verdict = verdict_of(LABELS, scores, choices, kind, calibration, max_risk)
    json.dumps(dataclasses.asdict(verdict), allow_nan=False)
    numbers = [verdict.confidence, verdict.answerability, verdict.off_set]
    numbers += [candidate.probability for candidate in verdict.candidates]
    assert all(0.0 <= number <= 1.0 for number in numbers if number is not None)
    assert verdict.calibrated == (verdict.confidence is not None)
    assert (verdict.answer is None) == verdict.abstained
    assert verdict.answerable is not None
    assert (verdict.answer_type == "unanswerable") == (not verdict.answerable)
    if choices and verdict.answer is not None:
        assert verdict.answer in [*choices, "unanswerable"]
    shares = [candidate.probability for candidate in verdict.candidates]
    assert shares == sorted(shares, reverse=True)


@given(
    st.lists(st.integers(-200, 200), min_size=7, max_size=7, unique=True),
    CHOICES,
    st.sampled_from(["softmax", "sigmoid"]),
    st.permutations(range(7)),
)
def test_the_order_of_the_labels_does_not_matter(scores, choices, kind, order):
    scores = [score / 10 for score in scores]
    one = verdict_of(LABELS, scores, choices, kind, BOTH)
    other = verdict_of([LABELS[i] for i in order], [scores[i] for i in order], choices, kind, BOTH)
    assert (one.answer, one.answerable, one.raw_answer, one.answer_type) == (
        other.answer,
        other.answerable,
        other.raw_answer,
        other.answer_type,
    )
    assert one.confidence == pytest.approx(other.confidence, abs=1e-9)
    assert sorted(c.probability for c in one.candidates) == pytest.approx(
        sorted(c.probability for c in other.candidates), abs=1e-9
    )
