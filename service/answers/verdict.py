"""From a posterior to what the service says: the answer, how sure it is, and whether it stands behind it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from service.answers.answer_types import AnswerType, answer_type
from service.answers.calibration import Calibration
from service.answers.evidence import Evidence, evidence_of
from service.answers.families import UNANSWERABLE
from service.answers.posterior import Posterior, ScoreKind
from service.errors import Code, VQAError

_RISK_TOLERANCE: Final = 1e-9  # 1 - 0.95 is a little more than 0.05 in floating point


@dataclass(frozen=True)
class Candidate:
    """One answer and the model's own probability of it."""

    answer: str
    probability: float


@dataclass(frozen=True)
class Verdict:
    """What a reply says about the answer. Every number is finite and in [0, 1].

    Attributes:
        answer: the answer in the set's spelling; "unanswerable" if the question cannot be answered; None if
            the service abstains, so that a client which reads nothing else never acts on an answer that the
            service does not stand behind.
        confidence: the calibrated probability that `answer` is right (the expected VQA accuracy); None if not
            calibrated. Given also when abstaining: it is the confidence that was too low.
        calibrated: whether a fitted map made `confidence`, from the quantity it was fitted on.
        answerable: whether the question can be answered; None where the model has no way to say so, as of a picture
            outside its domain.
        answerability: the fitted probability that it can; None if not fitted.
        abstained: whether the answer is held back: its risk is above the `max_risk` that was given, or the picture is
            outside the domain.
        candidates: the most probable members, "unanswerable" among them where the model can say it.
        off_set: the mass the model gave to answers outside the set; None where the scores have none.
        raw_answer: the model's own spelling of what was decided on; None where it has none.
        answer_type: the type of what was decided on.
        outside_domain: whether the picture is not of the kind that the model knows; its answer is then held back.
    """

    answer: str | None
    confidence: float | None
    calibrated: bool
    answerable: bool | None
    answerability: float | None
    abstained: bool
    candidates: tuple[Candidate, ...]
    off_set: float | None
    raw_answer: str | None
    answer_type: AnswerType
    outside_domain: bool = False

    def withheld(self) -> Verdict:
        """The same verdict with its answer held back: for a backend that knows it to be worthless."""
        return replace(self, answer=None, confidence=None, calibrated=False, abstained=True)


def check_max_risk(max_risk: float | None, calibration: Calibration | None, score_kind: ScoreKind) -> None:
    """Whether a model can keep to a risk; needs no posterior, so a request can be refused before it costs anything.

    Raises:
        VQAError: with field `max_risk`: `invalid_field` if it is outside [0, 1]; `not_calibrated` if it is given and
            the model has no confidence map for scores of its kind.
    """
    if max_risk is None:
        return
    if not (math.isfinite(max_risk) and 0.0 <= max_risk <= 1.0):
        raise VQAError(Code.INVALID_FIELD, "max_risk must be within 0 and 1.", field="max_risk")
    fitted = calibration.confidence if calibration is not None else None
    if fitted is None or not fitted.applies_to(score_kind):
        raise VQAError(
            Code.NOT_CALIBRATED,
            "This model has no fitted confidence, so no risk can be kept to. Leave max_risk out.",
            field="max_risk",
        )


def finish(
    posterior: Posterior,
    calibration: Calibration | None,
    *,
    statistics: Mapping[str, float] | None = None,
    top_k: int = 5,
    max_risk: float | None = None,
) -> Verdict:
    """Decides answerability, answer, confidence and abstention, in this order.

    1. Answerable: with a fitted answerability, whether it reaches its threshold; else whether the most probable
       member is another than "unanswerable"; unknown (None) if the model cannot say "unanswerable".
    2. The answer is the most probable answerable member, or "unanswerable".
    3. The confidence of an answer is the fitted map of its type at its absolute mass. That of "unanswerable" is
       1 - answerability. Neither exists unless both the confidence map and what it is applied to were fitted.
    4. With `max_risk`, the service abstains if 1 - confidence is above it, and also if there is no confidence in
       this very verdict: what cannot be vouched for is not said.
    5. Of a picture outside the fitted domain nothing is vouched for: the answer is held back, without a confidence, and
       whether the question can be answered is not known.

    Args:
        posterior: from any backend.
        calibration: what was fitted for the model; None if nothing was.
        statistics: of the picture, by name; needed where the calibration reads pictures.
        top_k: how many candidates to list, at least 0.
        max_risk: the highest acceptable probability of a wrong answer, in [0, 1]; None to always answer.

    Raises:
        VQAError: `not_calibrated` or `invalid_field` as `check_max_risk`; `invalid_field` for a negative `top_k`.
        ValueError: the calibration reads pictures, and there are no statistics.
    """
    if statistics is None and calibration is not None and calibration.reads_pictures:
        raise ValueError("this calibration reads pictures; finish needs the picture's statistics")
    check_max_risk(max_risk, calibration, posterior.score_kind)
    if top_k < 0:
        raise VQAError(Code.INVALID_FIELD, "top_k must not be negative.", field="top_k")
    best = posterior.best_answerable()
    # An uncalibrated model's questions are not looked at any closer.
    evidence = None if calibration is None else evidence_of(posterior, statistics)
    nothing = posterior.answer_set.unanswerable
    answerable, answerability = _answerable(posterior, calibration, evidence)
    confidence: float | None = None
    fitted = calibration.confidence if calibration is not None else None
    decided: int | None
    if answerable is False or best is None:
        answerable = False  # also for a model that knows no answer at all
        decided, kind = nothing, AnswerType.UNANSWERABLE
        answer = UNANSWERABLE if nothing is None else posterior.answer_set.spellings[nothing]
        if answerability is not None and fitted is not None and fitted.applies_to(posterior.score_kind):
            confidence = 1.0 - answerability
    else:
        decided, kind = best, answer_type(posterior.answer_set.keys[best])
        answer = posterior.answer_set.spellings[best]
        if evidence is not None and fitted is not None and fitted.applies_to(posterior.score_kind):
            confidence = fitted(evidence, kind)
    abstained = max_risk is not None and (confidence is None or 1.0 - confidence > max_risk + _RISK_TOLERANCE)
    verdict = Verdict(
        answer=None if abstained else answer,
        confidence=confidence,
        calibrated=confidence is not None,
        answerable=answerable,
        answerability=answerability,
        abstained=abstained,
        candidates=_candidates(posterior, top_k),
        off_set=posterior.off_set,
        raw_answer=None if decided is None else posterior.raw_answer(decided),
        answer_type=kind,
    )
    domain = calibration.domain if calibration is not None else None
    if domain is not None and domain.outside(statistics or {}):
        return replace(verdict.withheld(), answerable=None, answerability=None, outside_domain=True)
    return verdict


def _answerable(
    posterior: Posterior, calibration: Calibration | None, evidence: Evidence | None
) -> tuple[bool | None, float | None]:
    """Whether the question can be answered, and the fitted probability that it can."""
    nothing = posterior.answer_set.unanswerable
    fitted = calibration.answerability if calibration is not None else None
    if (
        evidence is not None
        and fitted is not None
        and calibration is not None
        and calibration.applies_to(posterior.score_kind)
    ):
        answerability = fitted(evidence)
        return answerability >= fitted.threshold, answerability
    if not posterior.says_unanswerable:
        return None, None
    return posterior.best() != nothing, None


def _candidates(posterior: Posterior, top_k: int) -> tuple[Candidate, ...]:
    """The top_k members by probability, ties in the set's order."""
    p = posterior.probabilities
    silent = None if posterior.says_unanswerable else posterior.answer_set.unanswerable
    kept = [member for member in posterior.descending(top_k + 1) if member != silent][:top_k]
    return tuple(Candidate(posterior.answer_set.spellings[i], float(p[i])) for i in kept)
