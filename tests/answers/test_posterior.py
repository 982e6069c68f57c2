from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.answers import AnswerSet, Posterior, ScoreKind, Vocabulary
from service.errors import Code, VQAError

KINDS = ["softmax", "sigmoid"]
LABELS = ["yes", "no", "two", "2", "red", "unknown", "can't tell", "blue", "Red."]
SCORES = st.lists(st.floats(-60, 60) | st.just(-math.inf), min_size=len(LABELS), max_size=len(LABELS)).filter(
    lambda scores: max(scores) > -math.inf
)
CHOICES = st.lists(st.sampled_from(["yes", "no", "2", "red", "blue", "unknown"]), min_size=1, unique=True)


def masses_of(posterior: Posterior) -> list[float]:
    return [posterior.mass(member) for member in range(len(posterior.answer_set))]


def of(labels, logits, kind, choices=None):
    vocabulary = Vocabulary(labels)
    answer_set = vocabulary.default_set if choices is None else AnswerSet.from_choices(choices)
    return Posterior.from_logits(logits, vocabulary.project(answer_set), answer_set, kind)


def as_dict(posterior):
    return dict(zip(posterior.answer_set.spellings, posterior.probabilities.tolist(), strict=True))


def test_vilt_head_scores(case):
    head = case("vilt_head_scores.json")
    labels, logits = list(head["logits"]), list(head["logits"].values())
    sigmoid = of(labels, logits, "sigmoid")
    assert as_dict(sigmoid) == pytest.approx(head["sigmoid"], abs=1e-12)
    assert sigmoid.off_set is None
    assert sigmoid.mass(0) == pytest.approx(0.98201379, abs=1e-8)
    softmax = of(labels, logits, "softmax")
    assert as_dict(softmax) == pytest.approx(head["softmax"], abs=1e-12)
    assert softmax.off_set == 0.0


def test_raw_logprobs_before_the_mask(case):
    raw = case("raw_logprobs_before_mask.json")
    answer_set = AnswerSet.from_choices(raw["allowed"])
    logprobs = [raw["raw_logprobs"][choice] for choice in raw["allowed"]]
    posterior = Posterior.from_logprobs([*logprobs, -math.inf], answer_set)
    expected = raw["expected"]
    assert as_dict(posterior) == pytest.approx({**expected["p"], "unanswerable": 0.0}, abs=1e-9)
    assert posterior.off_set == pytest.approx(1 - expected["in_set_mass"], abs=1e-9)
    assert posterior.mass(0) == pytest.approx(0.8 * 0.05, abs=1e-9)
    assert masses_of(posterior) == pytest.approx([0.04, 0.01, 0.0], abs=1e-9)
    assert posterior.score_kind is ScoreKind.LOGPROB


def test_minus_infinity_is_a_probability_of_nought(case):
    choices = case("neg_inf_logprobs.json")["choices"]
    answer_set = AnswerSet.from_choices(list(choices))
    logprobs = [sum(choices["yes"]), sum(choices["no"]), -math.inf]
    posterior = Posterior.from_logprobs(logprobs, answer_set)
    assert as_dict(posterior) == {"yes": 1.0, "no": 0.0, "unanswerable": 0.0}
    assert posterior.off_set == pytest.approx(1 - math.exp(-0.1), abs=1e-12)
    for kind in KINDS:
        assert as_dict(of(["yes", "no"], [1.0, -math.inf], kind))["no"] == 0.0


def test_whole_answer_probability_picks_the_answer(case):
    lengths = case("length_bias.json")
    answer_set = AnswerSet.from_choices(list(lengths["choices"]))
    logprobs = [*(sum(tokens) for tokens in lengths["choices"].values()), -math.inf]
    posterior = Posterior.from_logprobs(logprobs, answer_set)
    assert answer_set.spellings[posterior.best()] == "cat"
    for i, probability in enumerate(lengths["prob_sum"].values()):
        assert posterior.mass(i) == pytest.approx(probability, abs=1e-12)


@pytest.mark.parametrize("name", ["trie_prefix_answers.json", "trie_greedy_is_wrong.json"])
def test_answers_that_are_prefixes_of_others(case, name):
    trie = case(name)
    answer_set = AnswerSet.from_choices(list(trie["answers"]))
    logprobs = []
    for tokens in trie["answers"].values():
        steps = ["".join(tokens[:i]) for i in range(len(tokens))]
        logprobs.append(
            sum(math.log(trie["conditional_p"][at][token]) for at, token in zip(steps, tokens, strict=True))
        )
    posterior = Posterior.from_logprobs([*logprobs, -math.inf], answer_set)
    assert as_dict(posterior) == pytest.approx({**trie["expected"], "unanswerable": 0.0}, abs=1e-9)
    assert answer_set.spellings[posterior.best()] == trie["expected_best"]
    assert posterior.off_set == pytest.approx(0.0, abs=1e-9)


def test_mass_counted_twice_is_the_backends_fault(case):
    wrong = case("trie_prefix_answers.json")["wrong"]["without_end_token"]
    with pytest.raises(VQAError, match=r"1\.42") as caught:
        Posterior.from_logprobs([*map(math.log, wrong.values()), -math.inf], AnswerSet.from_choices(list(wrong)))
    assert caught.value.code is Code.BACKEND_INVALID_SCORES


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("choices", [None, ["b", "c"]])
def test_nan_anywhere_is_the_backends_fault(case, kind, choices):
    logits = case("nan_logits.json")["logits"]
    with pytest.raises(VQAError, match="NaN") as caught:
        of(["a1", "b", "c"], logits, kind, choices)
    assert caught.value.code is Code.BACKEND_INVALID_SCORES


@pytest.mark.parametrize("logits", [[1.0, math.inf], [1.0], [1.0, 2.0, 3.0], [[1.0, 2.0]], [-math.inf, -math.inf]])
def test_other_scores_that_are_the_backends_fault(logits):
    with pytest.raises(VQAError) as caught:
        of(["yes", "no"], logits, "softmax")
    assert caught.value.code is Code.BACKEND_INVALID_SCORES


@pytest.mark.parametrize("logprobs", [[math.nan, 0.0, -9], [math.inf, 0, 0], [0.0, -1.0]])
def test_other_logprobs_that_are_the_backends_fault(logprobs):
    with pytest.raises(VQAError) as caught:
        Posterior.from_logprobs(logprobs, AnswerSet.named("yes-no"))
    assert caught.value.code is Code.BACKEND_INVALID_SCORES


def test_spellings_of_one_answer_add_up_or_the_strongest_counts():
    p = [0.1, 0.2, 0.3, 0.4]
    softmax = of(["two", "2", "Two.", "red"], np.log(p), "softmax")
    assert as_dict(softmax) == pytest.approx({"2": 0.6, "red": 0.4})
    logits = [math.log(q / (1 - q)) for q in p]
    sigmoid = of(["two", "2", "Two.", "red"], logits, "sigmoid")
    assert as_dict(sigmoid) == pytest.approx({"2": 0.3, "red": 0.4})
    assert softmax.raw_answer(0) == sigmoid.raw_answer(0) == "Two."


def test_of_equally_loud_spellings_the_first_is_given_back():
    assert of(["red", "Two", "2"], [0.0, 1.0, 1.0], "softmax").raw_answer(1) == "Two"


def test_the_set_leaves_mass_outside():
    posterior = of(["yes", "no", "red", "unknown"], np.log([0.1, 0.2, 0.6, 0.1]), "softmax", ["No", "yes"])
    assert as_dict(posterior) == pytest.approx({"No": 0.5, "yes": 0.25, "unanswerable": 0.25})
    assert posterior.off_set == pytest.approx(0.6)
    assert posterior.mass(0) == pytest.approx(0.2)
    assert posterior.raw_answer(2) == "unknown"
    assert posterior.says_unanswerable


def test_nothing_in_the_set():
    for posterior in (
        of(["yes", "no", "red"], [-math.inf, -math.inf, 1.0], "softmax", ["yes", "no"]),
        of(["red"], [1.0], "softmax", ["yes", "no"]),
        Posterior.from_logprobs([-math.inf] * 3, AnswerSet.named("yes-no")),
    ):
        assert posterior.probabilities.tolist() == pytest.approx([1 / 3] * 3)
        assert posterior.off_set == 1.0
        assert masses_of(posterior) == [0.0, 0.0, 0.0]
    silent = of(["yes", "no"], [-math.inf, -math.inf], "sigmoid")
    assert silent.probabilities.tolist() == [0.0, 0.0]
    unsaid = of(["red"], [1.0], "sigmoid", ["yes"])
    assert unsaid.probabilities.tolist() == [0.0, 0.0]
    assert unsaid.raw_answer(0) is None


def test_a_set_far_below_what_the_model_wants_keeps_its_proportions():
    posterior = of(["yes", "no", "red"], [-2000 + math.log(3), -2000.0, 500.0], "softmax", ["yes", "no"])
    assert as_dict(posterior) == pytest.approx({"yes": 0.75, "no": 0.25, "unanswerable": 0.0})
    assert posterior.off_set == 1.0
    big = np.array([3e38, -3e38], dtype=np.float32)
    assert of(["yes", "no"], big, "softmax").probabilities.tolist() == [1.0, 0.0]


def test_best_members_and_ties():
    tie = of(["yes", "no", "unknown"], [1.0, 1.0, 1.0], "sigmoid")
    assert (tie.best(), tie.best_answerable()) == (0, 0)
    first = of(["yes", "no", "unknown"], [1.0, 1.0, 1.0], "sigmoid", ["Unanswerable", "yes"])
    assert (first.best(), first.best_answerable()) == (0, 1)
    only_family = of(["unknown", "unsure"], [1.0, 2.0], "softmax")
    assert (only_family.best(), only_family.best_answerable()) == (0, None)
    silent = of(["red"], [1.0], "softmax", ["yes", "no"])  # cannot say any of them
    assert silent.best() == 0


def test_a_model_that_was_not_offered_unanswerable_never_says_it():
    answer_set = AnswerSet.named("yes-no")
    logprobs = np.log([0.2, 0.1, 0.7])
    assert Posterior.from_logprobs(logprobs, answer_set).best() == 2
    posterior = Posterior.from_logprobs(logprobs, answer_set, says_unanswerable=False)
    assert not posterior.says_unanswerable
    assert posterior.best() == 0


def test_respelled():
    posterior = of(["yes", "no"], [1.0, 2.0], "softmax", ["yes", "no"])
    other = AnswerSet.from_choices(["YES", "No!"])
    assert list(as_dict(posterior.respelled(other))) == ["YES", "No!", "unanswerable"]
    with pytest.raises(ValueError, match="another"):
        posterior.respelled(AnswerSet.from_choices(["no", "yes"]))


def test_misuse_is_told():
    vocabulary = Vocabulary(["yes", "no"])
    projection = vocabulary.project(vocabulary.default_set)
    with pytest.raises(ValueError, match="another answer set"):
        Posterior.from_logits([1, 2], projection, AnswerSet.named("yes-no"), "softmax")
    with pytest.raises(ValueError, match="from_logprobs"):
        Posterior.from_logits([1, 2], projection, vocabulary.default_set, "logprob")


def test_a_posterior_can_be_shared():
    posterior = of(["yes", "no"], [1.0, 2.0], "softmax")
    with pytest.raises(ValueError, match="read-only"):
        posterior.probabilities[0] = 1.0


GROUPS = {"yes": "yes", "no": "no", "two": "2", "2": "2", "red": "red", "Red.": "red", "blue": "blue"}


@given(SCORES, CHOICES | st.none())
def test_softmax_equals_the_sum_over_labels_and_loses_nothing(scores, choices):
    weights = [math.exp(score - max(scores)) for score in scores]
    total = math.fsum(weights)
    posterior = of(LABELS, scores, "softmax", choices)
    spoken = dict.fromkeys(posterior.answer_set.spellings, 0.0)
    for label, weight in zip(LABELS, weights, strict=True):
        own = "unknown" if label == "unknown" and "unknown" in spoken else None
        to = own or GROUPS.get(label, "unanswerable")
        if to in spoken:
            spoken[to] += weight / total
    masses = masses_of(posterior)
    assert masses == pytest.approx(list(spoken.values()), abs=1e-9)
    assert posterior.off_set == pytest.approx(1 - math.fsum(spoken.values()), abs=1e-9)
    assert math.fsum(posterior.probabilities) == pytest.approx(1.0, abs=1e-12)
    assert ((posterior.probabilities >= 0) & (posterior.probabilities <= 1)).all()
    assert 0.0 <= posterior.off_set <= 1.0


@given(SCORES, CHOICES | st.none())
def test_sigmoid_equals_the_strongest_label(scores, choices):
    posterior = of(LABELS, scores, "sigmoid", choices)
    for i, spelling in enumerate(posterior.answer_set.spellings):
        if spelling == "unanswerable":
            own = [] if choices is None or "unknown" not in choices else ["unknown"]
            members = [label for label in ("unknown", "can't tell") if label not in own]
        else:
            members = [label for label in LABELS if GROUPS.get(label, label) == spelling]
        strongest = max(scores[LABELS.index(label)] for label in members)
        assert posterior.probabilities[i] == pytest.approx(1 / (1 + math.exp(-strongest)) if strongest > -700 else 0)
        raw = posterior.raw_answer(i)
        assert raw in members
        assert scores[LABELS.index(raw)] == strongest
    assert ((posterior.probabilities >= 0) & (posterior.probabilities <= 1)).all()


@given(st.lists(st.floats(-50, 0) | st.just(-math.inf), min_size=3, max_size=3))
def test_logprobs_give_shares_and_the_rest(logprobs):
    total = math.fsum(math.exp(logprob) for logprob in logprobs)
    answer_set = AnswerSet.named("yes-no")
    if total > 1.06:
        with pytest.raises(VQAError):
            Posterior.from_logprobs(logprobs, answer_set)
    elif total < 1.04:
        posterior = Posterior.from_logprobs(logprobs, answer_set)
        assert math.fsum(posterior.probabilities) == pytest.approx(1.0, abs=1e-12)
        assert posterior.off_set == pytest.approx(max(1 - total, 0), abs=1e-12)
