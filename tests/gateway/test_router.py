"""The policy table, with two stand-in backends."""

from __future__ import annotations

import asyncio

import pytest

from service.errors import Code, VQAError
from service.gateway import Question
from service.gateway.router import AnswerSets, Plan, Router
from tests.support.backends import ScriptedBackend

CLASSIFIER = ScriptedBackend(("yes", "no", "2", "unanswerable"), (1, 2, 3, 0))
GENERATOR = ScriptedBackend(("anything", "yes", "no"), (1, 2, 3), name="generator", model="scripted-generator")


@pytest.fixture(autouse=True)
def started() -> None:
    for backend in (CLASSIFIER, GENERATOR):
        asyncio.run(backend.start())


def plan(generator: bool = False, default: str = "auto", **options: object) -> Plan:
    backends = {"classifier": CLASSIFIER} | ({"generator": GENERATOR} if generator else {})
    return Router(backends, default).plan(Question("q", **options), AnswerSets())


def refusal(**options: object) -> VQAError:
    with pytest.raises(VQAError) as refused:
        plan(**options)
    return refused.value


def test_choices_that_the_classifier_knows_go_to_it() -> None:
    way = plan(choices=("Yes", "two"))
    assert way.route.backend == "classifier"
    assert way.route.policy == "auto"
    assert way.answer_set.spellings[:2] == ("Yes", "two")


def test_no_choices_go_to_the_only_backend() -> None:
    assert plan().answer_set is CLASSIFIER.default_set
    assert plan(policy="classifier").route.policy == "classifier"
    assert plan(default="classifier").route.policy == "classifier"


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"choices": ("red",)}, "choices"),
        ({"choices": ("yes", "red")}, "choices"),
        ({"answer_set": "open"}, "answer_set"),
        ({"answer_set": "colors"}, "answer_set"),
        ({"policy": "generator"}, "policy"),
        ({"policy": "cascade"}, "policy"),
    ],
)
def test_what_needs_the_generator_is_501_without_one(options: dict[str, object], field: str) -> None:
    error = refusal(**options)
    assert (error.code, error.status, error.field) == (Code.GENERATOR_UNAVAILABLE, 501, field)


@pytest.mark.parametrize("named", [{"policy": "classifier"}, {"model": "scripted"}])
def test_the_classifier_alone_is_never_silently_another(named: dict[str, object]) -> None:
    error = refusal(choices=("yes", "a zebra"), **named)
    assert (error.code, error.field) == (Code.CHOICES_OUTSIDE_VOCABULARY, "choices[1]")


def test_a_named_set_may_be_known_in_part() -> None:
    way = plan(answer_set="numbers")
    assert [notice.code for notice in way.warnings] == ["answer_set_reduced"]
    assert "1 of the 21" in way.warnings[0].message
    assert plan(answer_set="yes-no").warnings == ()


def test_what_the_classifier_cannot_say_goes_to_a_generator() -> None:
    for options in ({"choices": ("yes", "red")}, {"answer_set": "open"}, {"policy": "generator"}):
        assert plan(generator=True, **options).route.backend == "generator"
    assert plan(generator=True, choices=("yes", "red")).answer_set.spellings[:2] == ("yes", "red")


def test_contradictions_and_unknown_names() -> None:
    assert refusal(choices=("yes",), answer_set="yes-no").field == "answer_set"
    assert refusal(answer_set="nope").code is Code.UNKNOWN_ANSWER_SET
    assert refusal(model="nope").code is Code.UNKNOWN_MODEL
    assert refusal(max_risk=0.1).code is Code.NOT_CALIBRATED


def test_a_backend_that_is_not_up_is_503() -> None:
    CLASSIFIER.fail()
    error = refusal()
    assert (error.code, error.status) == (Code.NOT_READY, 503)
    assert error.retry_after_s


def test_no_classifier() -> None:
    router = Router({"generator": GENERATOR}, "auto")
    with pytest.raises(VQAError) as refused:
        router.plan(Question("q", policy="classifier"), AnswerSets())
    assert (refused.value.code, refused.value.status) == (Code.CLASSIFIER_UNAVAILABLE, 501)
    assert router.plan(Question("q"), AnswerSets()).route.backend == "generator"


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"policy": "generator", "model": "scripted"}, "model"),
        ({"policy": "classifier", "model": "scripted-generator"}, "model"),
        ({"policy": "classifier", "answer_set": "open"}, "answer_set"),
        ({"model": "scripted", "answer_set": "open"}, "answer_set"),
    ],
)
def test_contradictions_between_policy_model_and_set(options: dict[str, object], field: str) -> None:
    error = refusal(generator=True, **options)
    assert (error.code, error.field) == (Code.INVALID_FIELD, field)


def test_a_named_model_goes_before_the_default_policy() -> None:
    way = plan(generator=True, default="classifier", model="scripted-generator")
    assert (way.route.backend, way.route.policy) == ("generator", "auto")


@pytest.mark.parametrize(
    ("names", "policy", "default"),
    [
        (("classifier",), "auto", "classifier"),
        (("classifier",), "classifier", "classifier"),
        (("classifier",), "generator", None),
        (("classifier",), "cascade", None),
        (("generator",), "auto", "generator"),
        (("generator",), "classifier", None),
        (("classifier", "generator"), "auto", "classifier"),
        (("classifier", "generator"), "generator", "generator"),
        ((), "auto", None),
    ],
)
def test_ready_means_that_a_plain_question_would_be_answered(
    names: tuple[str, ...], policy: str, default: str | None
) -> None:
    """Readiness follows the same rule as the questions: what is ready is answered, what is not is refused."""
    router = Router({name: {"classifier": CLASSIFIER, "generator": GENERATOR}[name] for name in names}, policy)
    assert router.can_answer() == (default is not None)
    if default is None:
        with pytest.raises(VQAError):
            router.plan(Question("q"), AnswerSets())
    else:
        assert router.plan(Question("q"), AnswerSets()).route.backend == default


def test_not_ready_where_that_backend_has_failed() -> None:
    CLASSIFIER.fail()
    assert not Router({"classifier": CLASSIFIER, "generator": GENERATOR}, "auto").can_answer()


def test_questions_with_the_same_answers_share_one_set() -> None:
    sets = AnswerSets()
    first = sets.of(Question("q", choices=("yes", "no")))
    assert sets.of(Question("other", choices=("yes", "no"))) is first
    for _ in range(2):
        with pytest.raises(VQAError, match="same answer"):
            sets.of(Question("q", choices=("two", "2")))
