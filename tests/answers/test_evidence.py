"""What calibration looks at is the same from a posterior as from the candidates that a reply lists."""

from __future__ import annotations

import math
from itertools import zip_longest

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from scipy import special, stats

from service.answers import (
    FEATURES,
    LISTED,
    AnswerSet,
    Evidence,
    Posterior,
    Verdict,
    Vocabulary,
    evidence_of,
    evidence_of_candidates,
    finish,
)
from service.answers.evidence import FLOOR
from service.gateway import told_share

LABELS = [*(f"word {i}" for i in range(14)), "yes", "no", "Two", "unknown", "can't tell"]
FEW = ["yes", "no", "red", "unanswerable"]
SILENT = ["yes", "no", "red", "blue"]  # none of them says "unanswerable"
SCORE = st.floats(-40, 40) | st.just(-math.inf)
CHOICES = st.none() | st.lists(
    st.sampled_from(["yes", "NO", "two", "word 3", "word 7", "red", "unknown", "unanswerable", "zebra"]),
    min_size=1,
    unique=True,
).filter(lambda choices: choices != ["unanswerable"])


@st.composite
def posteriors(draw):
    """Of a model with many labels, with few, or with none for "unanswerable"."""
    named = draw(st.sampled_from([LABELS, FEW, SILENT]))
    scores = draw(st.lists(SCORE, min_size=len(named), max_size=len(named)))
    assume(max(scores) > -math.inf)
    vocabulary, choices = Vocabulary(named), draw(CHOICES)
    answer_set = vocabulary.default_set if choices is None else AnswerSet.from_choices(choices)
    kind = draw(st.sampled_from(["softmax", "sigmoid"]))
    return Posterior.from_logits(scores, vocabulary.project(answer_set), answer_set, kind)


def of_reply(posterior: Posterior, verdict: Verdict, told=lambda number: number) -> Evidence:
    """From what the reply lists, as a run of `vqa eval` has it."""
    answer_set = posterior.answer_set
    nothing = None if answer_set.unanswerable is None else answer_set.spellings[answer_set.unanswerable]
    listed = [(candidate.answer == nothing, told(candidate.probability)) for candidate in verdict.candidates]
    return evidence_of_candidates(listed, told(verdict.off_set), None)


def assert_same(one: Evidence, other: Evidence, within: float = 1e-6) -> None:
    # A member that the model cannot say has no mass, and no reply lists it.
    for a, b in zip_longest(one.masses, other.masses, fillvalue=0.0):
        assert a == pytest.approx(b, abs=within)
    assert (one.top, one.second) == pytest.approx((other.top, other.second), abs=within)
    if one.distribution or sum(one.masses) > 0.5:  # shares of next to nothing are rounding alone
        assert one.entropy == pytest.approx(other.entropy, abs=100 * within)


@given(posteriors(), st.sampled_from([LISTED, LISTED + 1, 1000]))
def test_a_posterior_and_its_reply_give_the_same(posterior: Posterior, top_k: int) -> None:
    here, there = evidence_of(posterior, None), of_reply(posterior, finish(posterior, None, top_k=top_k))
    assert_same(here, there)
    assert here.rest == pytest.approx(there.rest, abs=1e-6)
    if there.unanswerable or len(posterior.answer_set) <= LISTED:
        assert here.unanswerable == pytest.approx(there.unanswerable, abs=1e-6)


@given(posteriors())
def test_the_digits_of_a_reply_suffice(posterior: Posterior) -> None:
    reply = of_reply(posterior, finish(posterior, None, top_k=LISTED), told_share)
    assert_same(evidence_of(posterior, None), reply, within=LISTED * 1e-6)


def posterior_of(logits: list[float]) -> Posterior:
    vocabulary = Vocabulary([*(f"word {i}" for i in range(len(logits) - 1)), "unanswerable"])
    return Posterior.from_logits(logits, vocabulary.project(vocabulary.default_set), vocabulary.default_set, "softmax")


@pytest.mark.parametrize("temperature", [1 / 8, 1.0, 1.5])
def test_a_temperature_gives_the_same_for_both(temperature: float) -> None:
    for logits in np.random.default_rng(0).normal(0, 3, (50, 27)):
        posterior = posterior_of(logits.tolist())
        reply = of_reply(posterior, finish(posterior, None, top_k=LISTED), told_share)
        assert reply.at_temperature(temperature) == pytest.approx(
            evidence_of(posterior, None).at_temperature(temperature), abs=1e-3
        )


def test_a_high_temperature_gives_the_same_for_both() -> None:
    posterior = posterior_of([12.0, *[-4.0] * 8])
    reply = of_reply(posterior, finish(posterior, None, top_k=LISTED), told_share)
    assert reply.at_temperature(4.0) == pytest.approx(evidence_of(posterior, None).at_temperature(4.0), abs=0.01)


def test_unanswerable_is_seen_where_it_is_not_among_the_listed() -> None:
    posterior = posterior_of([0.0] * 19 + [-0.1])
    reply = of_reply(posterior, finish(posterior, None, top_k=LISTED))
    assert evidence_of(posterior, None).unanswerable == pytest.approx(reply.unanswerable, abs=1e-6)


@given(posteriors())
def test_no_number_is_nan_and_all_are_in_their_bounds(posterior: Posterior) -> None:
    evidence = evidence_of(posterior, None)
    assert len(evidence.masses) == min(LISTED, len(posterior.answer_set))
    assert list(evidence.masses) == sorted(evidence.masses, reverse=True)
    numbers = [*evidence.masses, evidence.top, evidence.second, evidence.unanswerable, evidence.rest]
    assert all(0.0 <= number <= 1.0 for number in numbers)
    assert evidence.second <= max(evidence.top, evidence.rest)
    assert evidence.rest <= evidence.second or evidence.top == 0
    assert 0.0 <= evidence.entropy <= math.log(LISTED + 1) + 1e-12
    for name in FEATURES:
        assert math.isfinite(evidence.feature(name))
    for temperature in (1 / 8, 1.0, 8.0):
        assert 0.0 <= evidence.at_temperature(temperature) <= 1.0 + 1e-12


MASSES = st.lists(st.just(0.0) | st.floats(1e-300, 1), min_size=1, max_size=LISTED)


@given(MASSES.filter(lambda masses: sum(masses) > 0))
@example([0.99999])
@example([0.9999])
def test_entropy_is_scipys(masses: list[float]) -> None:
    evidence = Evidence(tuple(masses), max(masses), 0.0, 0.0)
    rest = 1.0 - math.fsum(masses)
    # What may come of rounding is no rest; entropy makes all sum to 1.
    expected = stats.entropy([*masses, rest if rest > 1e-5 else 0.0])
    assert evidence.entropy == pytest.approx(expected, abs=1e-9)


def test_entropy_of_the_smallest_score_beside_large_ones() -> None:
    # sigmoid scores of the logits 40, 40 and -745
    assert Evidence((1.0, 1.0, 5e-324), 1.0, 1.0, 0.0).entropy == pytest.approx(math.log(2))


def test_entropy_by_hand() -> None:
    assert Evidence((1.0,), 1.0, 0.0, 0.0).entropy == 0.0
    assert Evidence((0.5, 0.5), 0.5, 0.5, 0.0).entropy == pytest.approx(math.log(2))
    assert Evidence((0.25,) * 3, 0.25, 0.25, 0.0).entropy == pytest.approx(math.log(4))  # the rest is the fourth
    assert Evidence((0.0, 0.0), 0.0, 0.0, 0.0).entropy == 0.0


def test_features_by_hand() -> None:
    evidence = Evidence((0.5, 0.3, 0.2), 0.5, 0.2, 0.3, {"sharpness": 1.5})
    assert evidence.feature("top_logit") == pytest.approx(special.logit(0.5), abs=1e-12)
    assert evidence.feature("second_logit") == pytest.approx(special.logit(0.2))
    assert evidence.feature("unanswerable_logit") == pytest.approx(special.logit(0.3))
    assert evidence.feature("sharpness") == 1.5
    for name in ("brightness", "top", "rest", ""):
        with pytest.raises(KeyError):
            evidence.feature(name)


@pytest.mark.parametrize(("mass", "kept"), [(0.0, FLOOR), (1e-9, FLOOR), (1.0, 1 - FLOOR), (0.02, 0.02)])
def test_masses_are_kept_from_both_ends(mass: float, kept: float) -> None:
    assert Evidence((mass,), mass, 0.0, 0.0).feature("top_logit") == pytest.approx(special.logit(kept), rel=1e-9)


def test_masses_are_absolute() -> None:
    vocabulary = Vocabulary(["yes", "no", "red", "unknown"])
    answer_set = AnswerSet.from_choices(["yes", "no"])
    logits = np.log([0.3, 0.1, 0.4, 0.2])
    evidence = evidence_of(
        Posterior.from_logits(logits, vocabulary.project(answer_set), answer_set, "softmax"), {"contrast": 1.0}
    )
    assert evidence.masses == pytest.approx((0.3, 0.2, 0.1))  # what is said in the set; red is not
    assert (evidence.top, evidence.second, evidence.unanswerable) == pytest.approx((0.3, 0.4, 0.2))
    assert evidence.rest == pytest.approx(0.4)
    assert evidence.statistics == {"contrast": 1.0}
    listed = [(False, 0.5), (True, 1 / 3), (False, 1 / 6)]
    assert_same(evidence, evidence_of_candidates(listed, 0.4, None))


def test_a_set_of_one_and_a_set_without_any_answer() -> None:
    one = Vocabulary(["yes"])
    posterior = Posterior.from_logits([3.0], one.project(one.default_set), one.default_set, "softmax")
    assert evidence_of(posterior, None) == Evidence((1.0,), 1.0, 0.0, 0.0)
    assert evidence_of_candidates([(False, 1.0)], 0.0, None) == Evidence((1.0,), 1.0, 0.0, 0.0)
    none = Vocabulary(["unknown", "unsure"])
    posterior = Posterior.from_logits([0.0, 1.0], none.project(none.default_set), none.default_set, "softmax")
    evidence = evidence_of(posterior, None)
    assert (evidence.top, evidence.second, evidence.unanswerable) == (0.0, 0.0, pytest.approx(1.0))
    assert evidence_of_candidates([], None, None) == Evidence((), 0.0, 0.0, 0.0, distribution=False)


def test_scores_that_are_no_distribution_leave_nothing_over() -> None:
    vocabulary = Vocabulary(["yes", "no", "unanswerable"])
    answer_set = vocabulary.default_set
    logits = special.logit([0.3, 0.2, 0.1])
    evidence = evidence_of(Posterior.from_logits(logits, vocabulary.project(answer_set), answer_set, "sigmoid"), None)
    assert (evidence.rest, evidence.second) == (0.0, pytest.approx(0.2))
    assert evidence.entropy == pytest.approx(stats.entropy([0.3, 0.2, 0.1]))
    assert evidence == evidence_of_candidates(
        [(False, evidence.masses[0]), (False, evidence.masses[1]), (True, evidence.masses[2])], None, None
    )


def test_what_choices_leave_out_comes_second() -> None:
    candidates = [(False, 0.75), (False, 0.25)]
    assert evidence_of_candidates(candidates, 0.6, None).second == pytest.approx(0.6)
    assert evidence_of_candidates(candidates, 0.04, None).second == pytest.approx(0.24)


def test_more_candidates_than_are_looked_at_change_nothing() -> None:
    candidates = [(k == 4, 0.2 * 0.8**k) for k in range(30)]
    assert evidence_of_candidates(candidates, 0.0, None) == evidence_of_candidates(candidates[:LISTED], 0.0, None)
