"""Which backend answers a question, by the policy table, and in words why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from service.answers import AnswerSet, check_max_risk
from service.backends import Backend, Notice, State
from service.errors import Code, VQAError
from service.gateway.question import Ask, Policy
from service.gateway.reply import Route

OPEN_SET: Final = "open"
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Plan:
    """A question that may be asked: of whom, within which answers, and what the caller should know about that."""

    backend: Backend
    answer_set: AnswerSet
    route: Route
    warnings: tuple[Notice, ...] = ()


class Router:
    """Applies the policy table to the backends that are configured.

    Args:
        backends: by name, `classifier` and `generator`; at least one.
        default_policy: the policy of a question that names none.
    """

    def __init__(self, backends: Mapping[str, Backend], default_policy: Policy) -> None:
        self._backends = backends
        self._default_policy = default_policy

    def can_answer(self) -> bool:
        """Whether a backend that the default policy can use is ready."""
        usable = list(self._backends.values())
        if self._default_policy in self._backends:
            usable = [self._backends[self._default_policy]]
        return any(backend.health().state is State.READY for backend in usable)

    def plan(self, ask: Ask) -> Plan:
        """Decide about one question.

        Raises:
            VQAError: the options contradict one another, name what is not served, or need a backend that is not there.
        """
        policy = ask.policy or self._default_policy
        named = self._named_backend(ask)
        wanted = _caller_set(ask)
        if wanted == OPEN_SET:
            return self._generator_plan(ask, policy, None, "answer_set", "open answers need one")
        if policy in ("generator", "cascade"):
            return self._generator_plan(ask, policy, wanted, "policy", f"the policy {policy!r} needs one")
        classifier = named or self._backends.get("classifier")
        if classifier is None:
            raise VQAError(Code.CLASSIFIER_UNAVAILABLE, "No classifier is configured on this server.", field="policy")
        if wanted is None:
            route = Route(policy, classifier.name, _default_reason(policy))
            return self._checked(Plan(classifier, classifier.default_set, route), ask)
        missing = classifier.missing(wanted)
        if not missing:
            route = Route(policy, classifier.name, "the classifier knows every answer allowed")
            return self._checked(Plan(classifier, wanted, route), ask)
        if ask.choices is None and len(missing) < len(wanted) - 1:
            return self._checked(_partial_plan(classifier, wanted, missing, policy), ask)
        shown = ", ".join(repr(wanted.spellings[i]) for i in missing[:_SHOWN]) + (
            ", …" if len(missing) > _SHOWN else ""
        )
        field = "answer_set" if ask.choices is None else "choices"
        if policy == "auto" and named is None:
            return self._generator_plan(ask, policy, wanted, field, f"the classifier does not know {shown}")
        raise VQAError(
            Code.CHOICES_OUTSIDE_VOCABULARY,
            f"The classifier does not know {shown}. Leave them out, or use a policy that may use a generator.",
            field=f"choices[{missing[0]}]" if ask.choices is not None else field,
        )

    def _named_backend(self, ask: Ask) -> Backend | None:
        """The backend whose model the caller named."""
        if ask.model is None:
            return None
        for backend in self._backends.values():
            if backend.info.name == ask.model:
                return backend
        served = ", ".join(backend.info.name for backend in self._backends.values())
        raise VQAError(Code.UNKNOWN_MODEL, f"No model of this name is served. Served: {served}.", field="model")

    def _generator_plan(self, ask: Ask, policy: Policy, wanted: AnswerSet | None, field: str, why: str) -> Plan:
        generator = self._backends.get("generator")
        if generator is None:
            raise VQAError(
                Code.GENERATOR_UNAVAILABLE,
                f"No generator is configured on this server, and {why}. Use the policy 'auto' or 'classifier' with "
                "choices that the classifier knows, or none.",
                field=field,
            )
        route = Route(policy, generator.name, why)
        return self._checked(Plan(generator, wanted or generator.default_set, route), ask)

    def _checked(self, plan: Plan, ask: Ask) -> Plan:
        """The plan, once its backend is up and can keep the promises that the caller asks for."""
        health = plan.backend.health()
        if health.state is not State.READY:
            raise VQAError(Code.NOT_READY, f"The {plan.backend.name} is {health.state.value}.", retry_after_s=2)
        check_max_risk(ask.max_risk, plan.backend.calibration, plan.backend.score_kind)
        return plan


def _caller_set(ask: Ask) -> AnswerSet | Literal["open"] | None:
    """The answers that the caller allows; `OPEN_SET` for any; None where the caller leaves it to the backend."""
    if ask.choices is not None and ask.answer_set is not None:
        raise VQAError(Code.INVALID_FIELD, "Give choices or answer_set, not both.", field="answer_set")
    if ask.choices is not None:
        return AnswerSet.from_choices(ask.choices)
    if ask.answer_set is None:
        return None
    if ask.answer_set == OPEN_SET:
        return OPEN_SET
    return AnswerSet.named(ask.answer_set)


def _default_reason(policy: Policy) -> str:
    if policy == "classifier":
        return "the policy asks for the classifier"
    return "no choices were given, and the classifier is the only backend"


def _partial_plan(classifier: Backend, wanted: AnswerSet, missing: list[int], policy: Policy) -> Plan:
    """A named set of ours of which the classifier knows a part: that part, with a warning.

    A caller's own choices are never treated so: the one that is left out could be the right one.
    """
    named = [i for i in range(len(wanted)) if i != wanted.unanswerable]
    warning = Notice(
        "answer_set_reduced",
        f"The model knows {len(named) - len(missing)} of the {len(named)} answers of the set {wanted.name!r}.",
    )
    route = Route(policy, classifier.name, "the classifier knows a part of the named answer set")
    return Plan(classifier, wanted, route, (warning,))
