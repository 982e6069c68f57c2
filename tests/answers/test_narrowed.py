"""Choices narrow the answers down; they must not make a model look surer than it is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from service.answers import AnswerSet, Calibration, Posterior, Vocabulary, evidence_of, finish

LABELS = ("red", "blue", "green", "yes", "no", "2", "unanswerable")
VOCABULARY = Vocabulary(LABELS)
# Entropy and the runner-up make it sure: what choices would spoil if it were used with them.
SURE = {
    "kind": "linear",
    "features": ["top_logit", "second_logit", "entropy"],
    "weights": [1.0, -1.0, -3.0],
    "bias": 1.0,
}
CALIBRATION = Calibration.load(
    {
        "version": 1,
        "fitted_on": "nothing",
        "questions": 1,
        "target": "none",
        "confidence": {
            "quantity": "top_mass",
            "score_kind": "softmax",
            "maps": {"default": SURE},
            "narrowed": {"default": {"kind": "logistic", "a": 1.0, "b": -0.5}},
        },
        "answerability": {
            "kind": "logistic",
            "features": ["unanswerable_logit", "entropy"],
            "weights": [-1.0, -2.0],
            "bias": 0.0,
            "threshold": 0.0,
            "narrowed": {"features": ["unanswerable_logit"], "weights": [-1.0], "bias": 0.5},
        },
    }
)


def verdict(logits: list[float], answer_set: AnswerSet):
    posterior = Posterior.from_logits(logits, VOCABULARY.project(answer_set), answer_set, "softmax")
    return finish(posterior, CALIBRATION), evidence_of(posterior, None)


@given(st.lists(st.floats(-8, 8), min_size=7, max_size=7))
def test_the_fewer_answers_are_allowed_the_less_is_told_of_the_best(logits: list[float]) -> None:
    """By the absolute masses alone: the same for any choices that hold the same best answer."""
    masses = dict(zip(LABELS, special.softmax(logits), strict=True))
    for choices in (["red"], ["red", "blue"], ["red", "yes", "2"]):
        said, evidence = verdict(logits, AnswerSet.from_choices(choices))
        assert evidence.narrowed
        best = max(masses[c] for c in choices)
        kept = float(np.clip(round(best, 6), 1e-6, 1 - 1e-6))
        assert said.confidence == pytest.approx(special.expit(special.logit(kept) - 0.5), abs=1e-4)
        nothing = float(np.clip(round(masses["unanswerable"], 6), 1e-4, 1 - 1e-4))
        assert said.answerability == pytest.approx(special.expit(0.5 - special.logit(nothing)), abs=1e-4)


def test_named_sets_are_narrow_and_the_vocabulary_is_not() -> None:
    assert verdict([1.0] * 7, AnswerSet.named("yes-no"))[1].narrowed
    said, evidence = verdict([6.0, *[0.0] * 6], VOCABULARY.default_set)
    assert not evidence.narrowed
    assert said.confidence == pytest.approx(
        special.expit(evidence.feature("top_logit") - evidence.feature("second_logit") - 3 * evidence.entropy + 1)
    )


def test_what_lies_beyond_the_fitted_range_counts_as_its_edge() -> None:
    ranged = {**SURE, "features": ["sharpness"], "weights": [1.0], "ranges": [[1.0, 2.0]], "edge": 0.05}
    body = {"quantity": "top_mass", "maps": {"default": ranged}}
    common = {"version": 1, "fitted_on": "nothing", "questions": 1, "target": "none"}
    fitted = Calibration.load({**common, "confidence": body})
    posterior = Posterior.from_logits(
        [3.0] + [0.0] * 6, VOCABULARY.project(VOCABULARY.default_set), VOCABULARY.default_set, "softmax"
    )
    told = [
        finish(posterior, fitted, statistics={"sharpness": value}).confidence for value in (-50.0, 1.0, 1.5, 2.0, 90.0)
    ]
    assert told == pytest.approx([special.expit(2.0)] * 2 + [special.expit(2.5), *[0.95] * 2])
    assert fitted.reads_pictures
