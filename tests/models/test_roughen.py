"""Rough wordings: what an answer hangs on stays, in its order; what comes in between is nobody else's word."""

from __future__ import annotations

import re
from itertools import product

import numpy as np
import pytest

from models.shapes.phrasing import EASY, OBJECTS, STRANGE, TEMPLATES, Group
from models.shapes.roughen import LITTLE, roughened
from models.shapes.scene import COLORS, NAMES

TRAINING = [t for kinds in (TEMPLATES[Group.TRAIN], EASY) for templates in kinds.values() for t in templates]
# By themselves or in other words of the templates, these decide an answer.
TELLING = {
    "not", "no", "any", "without", "missing", "absent", "lack", "what", "which", "where", "who", "how", "many", "count",
    "number", "color", "colour", "shape", "left", "right", "side", "than", "from", "it", "its",
}  # fmt: skip


def test_nothing_telling_is_a_little_word() -> None:
    assert not TELLING & LITTLE
    assert not {*COLORS, *NAMES} & LITTLE


@pytest.mark.parametrize("template", TRAINING)
def test_slots_and_telling_words_stay_in_their_order(template: str) -> None:
    kept = [word for word in template.split() if word not in LITTLE]
    for seed in range(20):
        rough = roughened(template, STRANGE, np.random.default_rng(seed)).split()
        remaining = iter(rough)
        assert all(word in remaining for word in kept), rough
        assert re.findall(r"\{\w+\}", " ".join(rough)) == re.findall(r"\{\w+\}", template)


def test_words_are_dropped_replaced_and_put_in_between() -> None:
    """Each as often as the shares say, within the chance of 4,000 tries."""
    template = "can you see {a} in the picture?"  # five little words: "picture?" is none
    found = [roughened(template, STRANGE, np.random.default_rng(seed)).split() for seed in range(4000)]
    assert np.mean([len(words) for words in found]) == pytest.approx(7 - 5 * 0.25 * 0.5 + 0.5, abs=0.06)
    assert np.mean(["can" in words for words in found]) == pytest.approx(0.75, abs=0.03)
    strange = np.concatenate([[w for w in words if w not in template.split()] for words in found])
    assert np.mean(np.isin(strange, STRANGE)) == pytest.approx(0.5, abs=0.03)
    assert all(re.fullmatch("[a-z]{3,8}", word) for word in strange if word not in STRANGE)


def test_strange_words_are_nobody_elses() -> None:
    """Not of calibration or test, which would then be in training; nor telling ones, nor objects."""
    said = {word for g in Group for ts in TEMPLATES[g].values() for t in ts for word in re.findall(r"[a-z']+", t)}
    said |= {word for g in Group for name in OBJECTS[g] for word in name.split()}
    assert not set(STRANGE) & (said | {*COLORS, *NAMES})
    assert len(set(STRANGE)) == len(STRANGE) > 40


def test_no_little_word_makes_a_calibration_or_test_wording_of_a_training_one() -> None:
    """Strange words stand in none of those; what is left is dropping, tried in every way."""
    held = {" ".join(t.split()) for g in (Group.CALIBRATION, Group.TEST) for ts in TEMPLATES[g].values() for t in ts}
    for template in TRAINING:
        words = template.split()
        little = [k for k, word in enumerate(words) if word in LITTLE]
        for dropped in product((False, True), repeat=len(little)):
            gone = {k for k, drop in zip(little, dropped, strict=True) if drop}
            assert " ".join(word for k, word in enumerate(words) if k not in gone) not in held
