"""Whole examples: a picture with its questions, drawn reproducibly by split, seed and number."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from models.shapes.annotators import annotate
from models.shapes.degrade import degrade
from models.shapes.phrasing import Group
from models.shapes.questions import Question, asked_of_a_ruined_picture
from models.shapes.render import disturb, render
from models.shapes.scene import Scene, easy_scene, varied_scene
from models.shapes.topics import Asker


class Split(StrEnum):
    """Splits never share a random stream; calibration and test have wordings and damages of their own."""

    TRAIN = "train"
    VAL = "val"
    CALIBRATION = "calibration"
    TEST = "test"

    @property
    def group(self) -> Group:
        return Group.TRAIN if self is Split.VAL else Group(self.value)


@dataclass(frozen=True)
class Example:
    """uint8 pixels (H x W x 3) with questions.

    `scene` is what was drawn (None for a picture from elsewhere); `damage` names the degradation of a picture that
    cannot answer.
    """

    pixels: np.ndarray
    questions: list[Question]
    scene: Scene | None = None
    damage: str | None = None


@dataclass(frozen=True)
class Mixture:
    """Shares of pictures: easy-VQA's own style (the rest is varied), ruined ones, slightly disturbed ones."""

    easy: float = 0.3
    degraded: float = 0.08
    disturbed: float = 0.25


def stream(split: Split, seed: int, first: int = 0) -> Iterator[np.random.Generator]:
    """One random generator a picture, so that picture n is the same whatever was drawn before it."""
    number = first
    while True:
        yield np.random.default_rng([list(Split).index(split), seed, number])
        number += 1


def draw_example(
    rng: np.random.Generator, asker: Asker, count: int, mixture: Mixture | None = None, scene: Scene | None = None
) -> Example:
    """One picture with `count` questions; `scene` fixes what it shows."""
    mixture = mixture or Mixture()
    if scene is None:
        scene = easy_scene(rng) if rng.random() < mixture.easy else varied_scene(rng)
    return with_flaws(render(scene), scene, rng, asker, count, mixture)


def with_flaws(
    pixels: np.ndarray, scene: Scene, rng: np.random.Generator, asker: Asker, count: int, mixture: Mixture
) -> Example:
    """A picture of a known scene as a camera might bring it home, ruined or slightly flawed, and `count` questions."""
    damage = None
    if rng.random() < mixture.degraded:
        pixels, damage = degrade(pixels, rng, asker.group)
    elif rng.random() < mixture.disturbed:
        pixels = disturb(pixels, rng)
    questions = asker.ask(scene, rng, count)
    if damage:
        questions = asked_of_a_ruined_picture(questions)
    return Example(pixels, [annotate(q, scene, rng) for q in questions], scene, damage)


def draw_split(split: Split, seed: int, pictures: int, questions: int = 3) -> Iterator[Example]:
    """The first `pictures` examples of a split, `questions` each."""
    asker = Asker(split.group)
    for _, rng in zip(range(pictures), stream(split, seed), strict=False):
        yield draw_example(rng, asker, questions)
