"""Training batches: pictures of easy-VQA mixed with drawn ones, several questions each."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from models.shapes.examples import Example, Mixture, draw_example, photograph
from models.shapes.phrasing import Group
from models.shapes.questions import ANSWERS, Asker
from models.shapes.scene import MAX_SHAPES, Orientation, easy_scene, varied_scene
from models.vilt.easyvqa import EasyVQA, as_scene, move_shape
from models.vilt.processor import pad_batch, preprocess
from models.vilt.tokenizer import QuestionEncoder

Inputs = dict[str, Tensor]
LABEL_IDS = {label: k for k, label in enumerate(ANSWERS)}
MODEL_INPUTS = ("input_ids", "attention_mask", "pixel_values", "pixel_mask")


def collate(examples: list[Example], encoder: QuestionEncoder) -> tuple[Inputs, Tensor]:
    """Model inputs with one row a question, and the label ids. A picture is preprocessed once, then repeated."""
    questions = [q for e in examples for q in e.questions]
    ids, attention = encoder.encode([q.text for q in questions])
    values, mask = pad_batch([preprocess(e.pixels) for e in examples])
    rows = np.repeat(np.arange(len(examples)), [len(e.questions) for e in examples])
    arrays = (ids, attention, values[rows], mask[rows])
    labels = torch.tensor([LABEL_IDS[q.answer] for q in questions])
    return {name: torch.from_numpy(a) for name, a in zip(MODEL_INPUTS, arrays, strict=True)}, labels


@dataclass(frozen=True)
class Lesson:
    """An early part of training: one shape a picture, easy-VQA's own wordings, questions in the given shares."""

    until: int  # batch number
    shares: dict[str, float]


# Yes/no questions are a puzzle of three parts: the form, whether the word matches it, and a negation that turns the
# answer round. All at once, and in thirty wordings, none gives a gradient: accuracy stayed at chance for 160,000
# questions. One after the other, each is learned within some 20,000.
LESSONS = (
    Lesson(800, {"shape": 0.5, "shape_of_color": 0.1, "color": 0.2, "present": 0.2}),
    Lesson(1300, {"shape": 0.15, "shape_of_color": 0.1, "color": 0.15, "present": 0.6}),
    Lesson(2000, {"shape": 0.1, "shape_of_color": 0.05, "color": 0.1, "present": 0.3, "absent": 0.45}),
)


@dataclass(frozen=True)
class Recipe:
    """What a training batch is made of. All shares are of pictures."""

    pictures: int = 32
    questions: int = 2  # a picture; a row costs the same whether its picture is new or not, so many pictures
    square: float = 0.76  # batches of square pictures; the others are all wide or all tall, to keep padding small
    real: float = 0.45  # of square pictures: easy-VQA's own, with the shape moved
    easy: float = 0.25  # of square pictures: drawn in easy-VQA's style; the rest are varied scenes
    lessons: tuple[Lesson, ...] = LESSONS
    invented: float = 0.3  # of everyday objects in questions: made-up words
    mixture: Mixture = field(default_factory=Mixture)


class Batches:
    """Batch n is a function of the seed and n alone, so that a resumed run sees what an unbroken one would."""

    def __init__(self, data: EasyVQA, pictures: list[int], encoder: QuestionEncoder, recipe: Recipe, seed: int) -> None:
        """`pictures`: numbers of the easy-VQA pictures to train on; those with unknown facts are left out."""
        self._data = data
        self._pictures = [p for p in pictures if p in data.facts]
        self._encoder = encoder
        self._recipe = recipe
        self._seed = seed
        self._lessons = [
            (lesson.until, Asker(Group.TRAIN, easy_share=1.0, shares=lesson.shares, two_words=0.0))
            for lesson in recipe.lessons
        ]
        self._asker = Asker(Group.TRAIN, invented=recipe.invented)

    def batch(self, number: int) -> tuple[Inputs, Tensor]:
        """Model inputs and labels of one batch: pictures x questions rows."""
        rng = np.random.default_rng([self._seed, number])
        recipe = self._recipe
        orientation: Orientation = "square"
        if rng.random() >= recipe.square:
            orientation = "wide" if rng.random() < 0.5 else "tall"
        lesson = next((asker for until, asker in self._lessons if number < until), None)
        asker, most = (lesson, 1) if lesson else (self._asker, MAX_SHAPES)
        examples = [self._example(rng, orientation, asker, most) for _ in range(recipe.pictures)]
        return collate(examples, self._encoder)

    def _example(self, rng: np.random.Generator, orientation: Orientation, asker: Asker, most: int) -> Example:
        recipe = self._recipe
        if orientation == "square":
            draw = rng.random()
            if draw < recipe.real:
                return self._real_example(rng, asker)
            if draw < recipe.real + recipe.easy:
                return draw_example(rng, asker, recipe.questions, recipe.mixture, easy_scene(rng))
        return draw_example(rng, asker, recipe.questions, recipe.mixture, varied_scene(rng, orientation, most))

    def _real_example(self, rng: np.random.Generator, asker: Asker) -> Example:
        """An easy-VQA picture, its shape moved; asked about from its facts, which its own questions give away."""
        recipe = self._recipe
        picture = self._pictures[int(rng.integers(len(self._pictures)))]
        scene = as_scene(*self._data.facts[picture])
        pixels = move_shape(self._data.pixels[picture], rng)
        # Half of the usual flaws: what the official test shows is unflawed.
        mixture = Mixture(degraded=recipe.mixture.degraded / 2, disturbed=recipe.mixture.disturbed / 2)
        return photograph(pixels, scene, rng, asker, recipe.questions, mixture)
