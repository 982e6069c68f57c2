"""What is fitted together: the kinds of damage that answerability is compared by, and what is told to be missing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from service.answers import Calibration, ScoreKind, evidence_of_candidates
from service.evaluation.calibrating.fit import by_kind_of_damage, fit
from service.evaluation.calibrating.samples import Samples
from service.images import QUALITY, STATISTICS

WHOLE, RUINED = 400, 40
# Where pictures go bad: brightness, contrast and sharpness of five kinds of damage.
DARK_OR_BRIGHT = ((0.1, 0.2, 0.2), (0.1, 0.8, 0.2), (0.1, 0.2, 0.8), (0.1, 0.8, 0.8), (0.9, 0.5, 0.5))
NEVER_SHARP = ((0.1, 0.5, 0.1), (0.5, 0.1, 0.1), (0.9, 0.5, 0.1), (0.5, 0.9, 0.1), (0.5, 0.5, 0.1))


def samples(damage: tuple[tuple[float, float, float], ...]) -> Samples:
    """One question a picture: whole ones of middling quality, ruined ones of five kinds; the model sees some of it."""
    rng = np.random.default_rng(0)
    quality = np.concatenate([np.full((WHOLE, 3), 0.5), *[np.full((RUINED, 3), kind) for kind in damage]]) + rng.normal(
        0, 0.02, (WHOLE + RUINED * len(damage), 3)
    )
    answerable = np.arange(len(quality)) < WHOLE
    others = rng.normal(0.5, 0.1, (len(quality), len(STATISTICS))).tolist()
    statistics = [
        dict(zip(STATISTICS, row, strict=True)) | dict(zip(QUALITY, own, strict=True))
        for row, own in zip(others, quality.tolist(), strict=True)
    ]
    nothing = np.clip(np.where(answerable, 0.3, 0.7) + rng.normal(0, 0.12, len(quality)), 0.02, 0.98).tolist()
    evidence = [
        evidence_of_candidates(sorted([(True, p), (False, 1 - p)], key=lambda each: -each[1]), 0.0, each)
        for p, each in zip(nothing, statistics, strict=True)
    ]
    return Samples(
        evidence=evidence,
        kinds=["other"] * len(evidence),
        accuracy=answerable.astype(float),
        answerable=answerable,
        pictures=np.arange(len(evidence)),
        statistics=statistics,
        off_set_known=True,
        models=frozenset({("made up", "1")}),
    )


@pytest.mark.parametrize(("damage", "helps"), [(DARK_OR_BRIGHT, False), (NEVER_SHARP, True)])
def test_quality_counts_where_it_tells_damage_that_was_not_fitted_on(damage, helps: bool) -> None:
    """Four kinds of dark pictures say nothing of bright ones; what is never sharp is a rule."""
    _, report = fit(samples(damage), "made up", ScoreKind.SOFTMAX)
    assert (report["chosen"]["answerability"] == "masses and quality") is helps
    # Picture by picture it would help in either case.
    found = samples(damage)
    groups = by_kind_of_damage(found.statistics, ~found.answerable)
    whole, ruined = groups[:WHOLE], groups[WHOLE:].reshape(len(damage), RUINED)
    assert len(set(whole)) == WHOLE
    assert [len(set(kind)) for kind in ruined] == [1] * len(damage)
    assert len(set(groups)) == WHOLE + len(damage)


def test_where_nothing_is_ruined_each_picture_is_a_group() -> None:
    found = samples(NEVER_SHARP)
    groups = by_kind_of_damage(found.statistics, np.zeros(len(found), dtype=np.bool_))
    assert groups.tolist() == list(range(len(found)))


@pytest.mark.parametrize("ruined", [1, 2, 7])
def test_few_ruined_pictures_or_copies_of_one(ruined: int) -> None:
    found = samples(NEVER_SHARP)
    copies = [found.statistics[0]] * ruined
    groups = by_kind_of_damage([*found.statistics[:50], *copies], np.arange(50 + ruined) >= 50)
    assert len(set(groups.tolist())) == 51


def test_answerability_that_is_no_straight_line_in_the_mass() -> None:
    """Where "unanswerable" has most of the mass it is right, in between as often as not, elsewhere never."""
    found = samples(NEVER_SHARP)
    rng = np.random.default_rng(1)
    nothing = rng.uniform(0.01, 0.99, len(found)).round(6)
    chance = np.where(nothing < 0.2, 1.0, np.where(nothing < 0.9, 0.5, 0.0))
    answerable = rng.random(len(found)) < chance
    evidence = [
        evidence_of_candidates(sorted([(True, p), (False, 1 - p)], key=lambda each: -each[1]), 0.0, each)
        for p, each in zip(nothing.tolist(), found.statistics, strict=True)
    ]
    fitted, report = fit(
        replace(found, evidence=evidence, answerable=answerable, accuracy=answerable.astype(float)),
        "x",
        ScoreKind.SOFTMAX,
    )
    assert report["chosen"]["answerability"] == "mass, isotonic"
    answerability = Calibration.load(fitted).answerability
    asked = [evidence_of_candidates([(True, p), (False, 1 - p)], 0.0, None) for p in (0.05, 0.55, 0.95)]
    assert [answerability(each) for each in asked] == pytest.approx([1.0, 0.5, 0.0], abs=0.1)
