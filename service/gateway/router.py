"""Which backend answers a question, by the policy table, and in words why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from service.answers import AnswerSet, check_max_risk
from service.backends import Backend, Notice, State
from service.errors import Code, VQAError
from service.gateway.question import Question
from service.gateway.reply import Route
from service.settings import Policy

OPEN_SET: Final = "open"
_SHOWN = 5

Wanted = AnswerSet | Literal["open"] | None
"""The answers that a caller allows: a set, any at all, or (None) what the backend has."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A question that may be asked: of whom, within which answers, and what the caller should know about that."""

    backend: Backend
    answer_set: AnswerSet
    route: Route
    warnings: tuple[Notice, ...] = ()


class AnswerSets:
    """The answer sets of one request: questions that allow the same answers share one, refused ones too."""

    def __init__(self) -> None:
        self._made: dict[tuple[tuple[str, ...] | None, str | None], Wanted | VQAError] = {}

    def of(self, question: Question) -> Wanted:
        """What a question's `choices` and `answer_set` allow.

        Raises:
            VQAError: they cannot be used, or both are given.
        """
        key = question.choices, question.answer_set
        if key not in self._made:
            try:
                self._made[key] = _wanted(question)
            except VQAError as error:
                self._made[key] = error
        made = self._made[key]
        if isinstance(made, VQAError):
            raise made
        return made


class Router:
    """Applies the policy table to the backends that are configured.

    Args:
        backends: by name, `classifier` and `generator`.
        default_policy: the policy of a question that names none.
    """

    def __init__(self, backends: Mapping[str, Backend], default_policy: Policy) -> None:
        self._backends = backends
        self._default_policy = default_policy

    def default_backend(self) -> Backend | None:
        """Who answers a question that names no policy and no choices; None where nobody can."""
        classifier, generator = self._backends.get("classifier"), self._backends.get("generator")
        by_policy = {"auto": classifier or generator, "classifier": classifier, "generator": generator}
        return by_policy.get(self._default_policy)

    def can_answer(self) -> bool:
        """Whether that backend is ready."""
        backend = self.default_backend()
        return backend is not None and backend.health().state is State.READY

    def plan(self, question: Question, sets: AnswerSets) -> Plan:
        """Decide about one question.

        Raises:
            VQAError: its options contradict one another, name what is not served, or need a backend that is not there.
        """
        wanted = sets.of(question)
        named = self._named_backend(question)
        policy = question.policy or ("auto" if named else self._default_policy)
        if policy == "cascade":
            raise self._no_generator("policy", "the policy 'cascade' needs one")
        if named and policy not in ("auto", named.name):
            detail = f"The model {named.info.name} is a {named.name}, and the policy asks for the {policy}."
            raise VQAError(Code.INVALID_FIELD, detail, field="model")
        if policy == "generator" or (named and named.name == "generator"):
            return self._generator_plan(question, policy, wanted, "policy", "it was asked for")
        if wanted == OPEN_SET:
            if policy == "classifier" or named:
                detail = "The classifier has a fixed vocabulary; open answers need the policy 'auto' or 'generator'."
                raise VQAError(Code.INVALID_FIELD, detail, field="answer_set")
            return self._generator_plan(question, policy, wanted, "answer_set", "open answers need one")
        classifier = self._backends.get("classifier")
        if classifier is None and policy == "auto":
            return self._generator_plan(question, policy, wanted, "policy", "no classifier is configured")
        if classifier is None:
            raise VQAError(Code.CLASSIFIER_UNAVAILABLE, "No classifier is configured on this server.", field="policy")
        return self._classifier_plan(question, policy, wanted, classifier, strict=policy == "classifier" or bool(named))

    def _classifier_plan(
        self, question: Question, policy: Policy, wanted: AnswerSet | None, classifier: Backend, *, strict: bool
    ) -> Plan:
        """The classifier's plan; where it cannot give all answers and need not answer, the generator's."""
        if wanted is None:
            why = "the classifier was asked for" if strict else "no choices were given; the classifier is the default"
            return _checked(Plan(classifier, classifier.default_set, Route(policy, classifier.name, why)), question)
        missing = classifier.missing(wanted)
        if not missing:
            route = Route(policy, classifier.name, "the classifier knows every answer allowed")
            return _checked(Plan(classifier, wanted, route), question)
        own_choices = question.choices is not None
        knows_some = len(missing) < len(wanted) - 1
        if not own_choices and knows_some and (strict or "generator" not in self._backends):
            return _checked(_partial_plan(classifier, wanted, missing, policy), question)
        shown = ", ".join(repr(wanted.spellings[i]) for i in missing[:_SHOWN]) + (
            ", …" if len(missing) > _SHOWN else ""
        )
        if not strict:
            why = f"the classifier does not know {shown}"
            return self._generator_plan(question, policy, wanted, "choices" if own_choices else "answer_set", why)
        raise VQAError(
            Code.CHOICES_OUTSIDE_VOCABULARY,
            f"The classifier does not know {shown}. Leave them out, or use a policy that may use a generator.",
            field=f"choices[{missing[0]}]" if own_choices else "answer_set",
        )

    def _named_backend(self, question: Question) -> Backend | None:
        """The backend whose model the caller named."""
        if question.model is None:
            return None
        for backend in self._backends.values():
            if backend.info.name == question.model:
                return backend
        served = ", ".join(backend.info.name for backend in self._backends.values())
        raise VQAError(Code.UNKNOWN_MODEL, f"No model of this name is served. Served: {served}.", field="model")

    def _generator_plan(self, question: Question, policy: Policy, wanted: Wanted, field: str, why: str) -> Plan:
        generator = self._backends.get("generator")
        if generator is None:
            raise self._no_generator(field, f"the policy {policy!r} needs one" if policy == "generator" else why)
        answer_set = wanted if isinstance(wanted, AnswerSet) else generator.default_set
        return _checked(Plan(generator, answer_set, Route(policy, generator.name, why)), question)

    @staticmethod
    def _no_generator(field: str, why: str) -> VQAError:
        return VQAError(
            Code.GENERATOR_UNAVAILABLE,
            f"No generator is configured on this server, and {why}. Use the policy 'auto' or 'classifier' with choices "
            "that the classifier knows, or with none.",
            field=field,
        )


def _checked(plan: Plan, question: Question) -> Plan:
    """The plan, once its backend is up and can keep the promises that the caller asks for."""
    health = plan.backend.health()
    if health.state is not State.READY:
        raise VQAError(Code.NOT_READY, f"The {plan.backend.name} is {health.state.value}.", retry_after_s=2)
    check_max_risk(question.max_risk, plan.backend.calibration, plan.backend.score_kind)
    return plan


def _wanted(question: Question) -> Wanted:
    if question.choices is not None and question.answer_set is not None:
        raise VQAError(Code.INVALID_FIELD, "Give choices or answer_set, not both.", field="answer_set")
    if question.choices is not None:
        return AnswerSet.from_choices(question.choices)
    if question.answer_set is None:
        return None
    if question.answer_set == OPEN_SET:
        return OPEN_SET
    return AnswerSet.named(question.answer_set)


def _partial_plan(classifier: Backend, wanted: AnswerSet, missing: list[int], policy: Policy) -> Plan:
    """A named set of ours of which the classifier knows a part: that part, with a warning.

    A caller's own choices are never treated so: the one that is left out could be the right one.
    """
    named = len(wanted) - 1  # beside "unanswerable"
    warning = Notice(
        "answer_set_reduced",
        f"The model knows {named - len(missing)} of the {named} answers of the set {wanted.name!r}.",
    )
    route = Route(policy, classifier.name, "the classifier knows a part of the named answer set")
    return Plan(classifier, wanted, route, (warning,))
