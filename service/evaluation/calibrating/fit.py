"""From samples to a calibration: answerability, then confidence by answer type, then the domain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from service.answers import FEATURES, LINEAR_KEYS, AnswerType, ScoreKind, read_map
from service.errors import needs
from service.evaluation.calibrating.domain import fit_domain
from service.evaluation.calibrating.maps import (
    FOLDS,
    Fitter,
    Judged,
    choose,
    fit_beta,
    fit_identity,
    fit_isotonic,
    fit_isotonic_answerable,
    fit_logistic,
    fit_temperature,
    linear_fitter,
)
from service.evaluation.calibrating.samples import Samples
from service.evaluation.calibrating.spread import spread
from service.images import QUALITY

THRESHOLD: Final = 0.5
MIN_QUESTIONS: Final = 200
"""An answer type seen less often has no map of its own; the default map serves it."""
MIN_TO_SHAPE: Final = 100
"""Fewer questions are given the simplest maps alone."""
MIN_TO_FIT: Final = 30
"""Fewer are given none: their model stays uncalibrated."""
MIN_OF_EACH: Final = 20
"""So many questions that can be answered, and that cannot, are needed to tell them apart."""

_MASSES: Final = ("unanswerable_logit", "top_logit", "entropy")
_ANSWERABILITY: Final[Mapping[str, Fitter]] = {
    "mass": linear_fitter(("unanswerable_logit",)),
    "mass, isotonic": fit_isotonic_answerable,
    "masses": linear_fitter(_MASSES),
    "masses and quality": linear_fitter((*_MASSES, *QUALITY)),
}
"""From the simplest on."""


def fit(samples: Samples, fitted_on: str, score_kind: ScoreKind) -> tuple[dict[str, Any], dict[str, Any]]:
    """Fit everything that the samples allow.

    Args:
        samples: questions that the model was never trained on.
        fitted_on: what they are, in words.
        score_kind: what the model's scores are.

    Returns:
        What `calibration.json` holds, and a report: what was chosen, with the cross-validated Brier scores of all, and
        why what is missing could not be fitted.

    Raises:
        MissingExtraError: scikit-learn is not installed.
    """
    with needs("scikit-learn"):
        # Loaded before their threads are limited: what is loaded later would not be.
        from sklearn import cluster, isotonic, linear_model, mixture, model_selection  # noqa: F401
        from threadpoolctl import threadpool_limits
    # The matrices are tiny: threads of the linear algebra would only wait for each other.
    with threadpool_limits(1):
        return _fit(samples, fitted_on, score_kind)


def _fit(samples: Samples, fitted_on: str, score_kind: ScoreKind) -> tuple[dict[str, Any], dict[str, Any]]:
    chosen: dict[str, Any] = {}
    scores: dict[str, Any] = {}
    calibration: dict[str, Any] = {
        "version": 1,
        "fitted_on": fitted_on,
        "questions": len(samples),
        "target": "vqa_accuracy(always); of fewer than four answers the share of people who agree",
    }
    ruined = np.ones(len(samples.statistics), dtype=np.bool_)
    ruined[samples.pictures[samples.answerable]] = False
    groups = by_kind_of_damage(samples.statistics, ruined)[samples.pictures]
    answerability, answered = _answerability(samples, groups, chosen, scores)
    maps = _confidence(samples, groups, answered, chosen, scores, narrowed=False)
    if maps is not None:
        narrowed = _confidence(samples, groups, answered, {}, {}, narrowed=True)
        named = {"quantity": "top_mass", "score_kind": str(score_kind), "maps": maps, "narrowed": narrowed}
        calibration["confidence"] = named
    if answerability is not None:
        calibration["answerability"] = answerability
    domain, report = fit_domain(samples.statistics, ruined.tolist())
    if domain is not None:
        calibration["domain"] = domain
    counts = {"questions": len(samples), "unanswerable": int((~samples.answerable).sum())}
    missing = _not_fitted(calibration, counts, report)
    found = {"chosen": chosen, "cross_validated_brier": scores, "domain": report, "not_fitted": missing}
    return calibration, counts | found


def _not_fitted(calibration: Mapping[str, Any], counts: Mapping[str, int], domain: Mapping[str, Any]) -> dict[str, str]:
    """What the samples did not allow, and why."""
    questions, cannot = counts["questions"], counts["unanswerable"]
    why = {
        "confidence": f"{questions} questions, {MIN_TO_FIT} needed",
        "answerability": f"{questions - cannot} questions that can be answered and {cannot} that cannot, {MIN_OF_EACH} "
        "needed of each",
        "domain": domain.get("why_not", ""),
    }
    return {what: reason for what, reason in why.items() if what not in calibration}


def by_kind_of_damage(statistics: Sequence[Mapping[str, float]], ruined: NDArray[np.bool_]) -> NDArray[np.int64]:
    """A number for each picture, of its own for a whole one; ruined ones alike in quality have the same.

    Args:
        statistics: of each of n pictures.
        ruined: (n,), whether no question about it can be answered.

    Returns:
        (n,).

    As groups of the cross-validation they see to it that what is compared has never met the kind of damage that it is
    tried on: pictures go bad in more ways than were at hand. With pictures alone as groups, brightness, contrast and
    sharpness always seemed to help tell the unanswerable; of damage unlike that, they made it worse.
    """
    groups = np.arange(len(statistics), dtype=np.int64)
    if not ruined.any():
        return groups
    with needs("scikit-learn"):
        from sklearn.cluster import KMeans
    quality = np.array([[each[name] for name in QUALITY] for each in statistics])
    scaled = (quality / spread(quality))[ruined]
    kinds = min(FOLDS, len(np.unique(scaled, axis=0)))
    groups[ruined] = len(groups) + KMeans(kinds, n_init=10, random_state=0).fit_predict(scaled)
    return groups


def _answerability(
    samples: Samples, groups: NDArray[np.int64], chosen: dict[str, Any], scores: dict[str, Any]
) -> tuple[dict[str, Any] | None, NDArray[np.bool_]]:
    """The fitted answerability, None where it cannot be, and which questions serving would answer."""
    fewest = min(int(samples.answerable.sum()), int((~samples.answerable).sum()))
    if fewest < MIN_OF_EACH:
        answered = np.array([e.top >= e.unanswerable for e in samples.evidence])
        return None, answered
    judged = Judged(samples.evidence, samples.answerable.astype(np.float64), groups)
    name, fitted, found = choose(judged, _ANSWERABILITY)
    chosen["answerability"], scores["answerability"] = name, found
    model = read_map(fitted, "answerability", fitted.get("mass", "top"))
    answered = np.array([model.of(e) >= THRESHOLD for e in samples.evidence])
    if fitted["kind"] != "linear":
        # A map of the one mass that means the same where answers are narrowed down.
        return {key: fitted[key] for key in ("kind", "mass", "x", "y")} | {"threshold": THRESHOLD}, answered
    of_mass = _ANSWERABILITY["mass"](judged)
    parts, narrowed = ({key: of[key] for key in LINEAR_KEYS} for of in (fitted, of_mass))
    return {"kind": "logistic", **parts, "threshold": THRESHOLD, "narrowed": narrowed}, answered


def _confidence(
    samples: Samples,
    groups: NDArray[np.int64],
    answered: NDArray[np.bool_],
    chosen: dict[str, Any],
    scores: dict[str, Any],
    *,
    narrowed: bool,
) -> dict[str, Any] | None:
    """A map for all answers that would be given, and one for each type that there is enough of; None of too few.

    Where the answers are `narrowed` down, maps of the top mass alone.
    """
    if len(samples) < MIN_TO_FIT:
        return None
    if answered.sum() < MIN_TO_FIT:
        answered = np.ones(len(samples), dtype=np.bool_)
    judged = Judged(samples.evidence, samples.accuracy, groups)
    kinds = np.array(samples.kinds)
    which = {"default": answered}
    for kind in (AnswerType.YES_NO, AnswerType.NUMBER, AnswerType.OTHER):
        of_kind = answered & (kinds == str(kind))
        if of_kind.sum() >= MIN_QUESTIONS:
            which[str(kind)] = of_kind
    maps = {}
    for name, mask in which.items():
        fitters = _fitters(int(mask.sum()), narrowed=narrowed, distribution=samples.off_set_known)
        chosen[name], maps[name], scores[name] = choose(judged.part(mask), fitters)
    return maps


def _fitters(questions: int, *, narrowed: bool, distribution: bool) -> dict[str, Fitter]:
    """The kinds of maps to choose from, the simplest first."""
    fitters: dict[str, Fitter] = {"identity": fit_identity}
    if distribution and not narrowed:
        fitters["temperature"] = fit_temperature
    fitters["logistic"] = fit_logistic
    if questions < MIN_TO_SHAPE:
        return fitters
    fitters["beta"] = fit_beta
    if not narrowed:
        fitters["linear"] = linear_fitter(FEATURES)
        fitters["linear with quality"] = linear_fitter((*FEATURES, *QUALITY))
    return fitters | {"isotonic": fit_isotonic}
