"""Ten people answer each question, and now and then they err as people do.

A person misses a yes or no in one of twenty cases; miscounts by one, the likelier the more there is to count; takes a
colour for one near it, a square for a rectangle and left for right; and guesses where nothing can be seen. The shares
are set by hand: no study of people looking at these drawings stands behind them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from models.shapes.questions import COUNTS, UNANSWERABLE, Question
from models.shapes.scene import SHAPES, SQUARE, Scene

ANNOTATORS = 10
YES_NO_NOISE = 0.05
WRONG_SIDE = 0.04
# What a person says in place of the right answer, with its probability.
Doubts = dict[str, float]

NEAR_COLORS: dict[str, Doubts] = {
    "teal": {"green": 0.08, "blue": 0.07},
    "brown": {"red": 0.06, "maroon": 0.03},
    "black": {"gray": 0.02},
    "gray": {"grey": 0.1, "silver": 0.02},
    "blue": {"purple": 0.03, "teal": 0.01},
    "yellow": {"orange": 0.03},
    "red": {"orange": 0.03, "pink": 0.01},
    "green": {"lime": 0.05, "teal": 0.02},
    "orange": {"yellow": 0.05, "red": 0.04},
    "purple": {"blue": 0.04, "pink": 0.03},
    "pink": {"purple": 0.06, "red": 0.02},
}
NEAR_SHAPES: dict[str, Doubts] = {
    "circle": {"oval": 0.02, "round": 0.01},
    "rectangle": {SQUARE: 0.04},
    "triangle": {"pyramid": 0.01},
}
# Of a rectangle with equal edges.
SQUARES: Doubts = {SQUARE: 0.4}
# One count too few or too many, together, by the right count; half as much again where shapes overlap.
MISCOUNTED = (0.01, 0.02, 0.04, 0.07, 0.11, 0.14)
OVERLAP_FACTOR = 1.5
GUESSES: dict[str, Doubts] = {
    "off_topic": {"no": 0.03, "don't know": 0.04, "nothing": 0.02},
    "false_premise": {"none": 0.05, "nothing": 0.02},
    "degraded": {"unsuitable": 0.08, "nothing": 0.03},
}
# Where a picture is ruined some still say what they think they see.
SEEN_ALL_THE_SAME = 0.04


def doubts(question: Question, scene: Scene) -> Doubts:
    """What people say in place of the right answer, and how likely each of them is to."""
    if question.answer == UNANSWERABLE:
        found = dict(GUESSES[question.topic])
        if question.hidden is not None:
            found[question.hidden] = found.get(question.hidden, 0.0) + SEEN_ALL_THE_SAME
        return found
    if question.answer in ("yes", "no"):
        return {"no" if question.answer == "yes" else "yes": YES_NO_NOISE}
    if question.answer in COUNTS:
        count = int(question.answer)
        missed = MISCOUNTED[count] * (OVERLAP_FACTOR if scene.overlapping else 1.0)
        return {"1": missed} if count == 0 else {str(count - 1): missed / 2, str(count + 1): missed / 2}
    if question.answer in ("left", "right"):
        return {"right" if question.answer == "left" else "left": WRONG_SIDE}
    if question.answer in SHAPES:
        return SQUARES if question.square else NEAR_SHAPES[question.answer]
    return NEAR_COLORS[question.answer]


def annotate(question: Question, scene: Scene, rng: np.random.Generator) -> Question:
    """The question with the ten answers that people gave."""
    instead = doubts(question, scene)
    says = [question.answer, *instead]
    shares = np.array([1.0 - sum(instead.values()), *instead.values()])
    edges = np.cumsum(shares)
    drawn = np.minimum(np.searchsorted(edges, rng.random(ANNOTATORS), side="right"), len(says) - 1)
    return replace(question, answers=tuple(says[k] for k in drawn))
