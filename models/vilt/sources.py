"""Where training examples come from: drawn without end, or a data set's files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Protocol

import numpy as np
from PIL import Image, ImageEnhance

from models.shapes.annotators import ANNOTATORS
from models.shapes.degrade import degrade
from models.shapes.examples import Example, Mixture, draw_example, with_flaws
from models.shapes.phrasing import Group
from models.shapes.questions import SIDES, UNANSWERABLE, Question, asked_of_a_ruined_picture
from models.shapes.render import render
from models.shapes.scene import Orientation, easy_scene, varied_scene
from models.shapes.topics import Asker
from models.vilt.easyvqa import EasyVQA, as_scene, move_shape
from models.vilt.recipe import WHOLE, ShapesRecipe, SideLesson
from service.evaluation.records import Example as AskedExample
from service.images import read_picture


class Source(Protocol):
    """Gives examples; which one depends on the random generator and the step alone."""

    def examples(self, rng: np.random.Generator, step: int, pictures: int, questions: int) -> list[Example]:
        """`pictures` examples with up to `questions` questions each."""


class ShapesSource:
    """Pictures of easy-VQA mixed with drawn ones.

    Args:
        data: easy-VQA's training split.
        pictures: numbers of its pictures to train on; those with unknown facts are left out.
        recipe: the mixture.
    """

    def __init__(self, data: EasyVQA, pictures: Sequence[int], recipe: ShapesRecipe | None = None) -> None:
        self._data = data
        self._pictures = [p for p in pictures if p in data.facts]
        self._recipe = recipe = recipe or ShapesRecipe()
        self._lessons = [
            (lesson.until, Asker(Group.TRAIN, lesson.shares, easy_share=1.0, two_words=0.0, squares=False))
            for lesson in recipe.lessons
        ]
        self._of_sides = Asker(Group.TRAIN, recipe.side_shares, invented=recipe.invented)
        plain = Asker(Group.TRAIN, invented=recipe.invented)
        late = replace(plain, shares=recipe.late_shares, rough=recipe.rough)
        self._askers = {False: plain, True: late}
        self._of_real = {late: replace(asker, squares=False) for late, asker in self._askers.items()}

    def examples(self, rng: np.random.Generator, step: int, pictures: int, questions: int) -> list[Example]:
        """As `Source.examples`."""
        lesson = next((asker for until, asker in self._lessons if step < until), None)
        if lesson:
            return [self._simple(rng, lesson, questions) for _ in range(pictures)]
        side = next((lesson for lesson in self._recipe.side_lessons if lesson.since <= step < lesson.until), None)
        late = step >= self._recipe.late_from
        orientation: Orientation = "square"
        if side is None and rng.random() >= self._recipe.square:
            orientation = "wide" if rng.random() < 0.5 else "tall"
        return [
            self._beside(side, rng, questions)
            if side and rng.random() < self._recipe.side_lesson
            else self._example(rng, orientation, questions, late)
            for _ in range(pictures)
        ]

    def _simple(self, rng: np.random.Generator, asker: Asker, questions: int) -> Example:
        """For a lesson: easy-VQA's pictures or its style, and people who never err."""
        if rng.random() < 0.5:
            example = self._real_example(rng, asker, questions)
        else:
            example = draw_example(rng, asker, questions, self._recipe.mixture, easy_scene(rng))
        return replace(example, questions=[replace(q, answers=(q.answer,) * ANNOTATORS) for q in example.questions])

    def _example(self, rng: np.random.Generator, orientation: Orientation, questions: int, late: bool) -> Example:
        recipe, asker = self._recipe, self._askers[late]
        if orientation == "square":
            draw = rng.random()
            if draw < recipe.real:
                return self._real_example(rng, self._of_real[late], questions)
            if draw < recipe.real + recipe.easy:
                return draw_example(rng, asker, questions, recipe.mixture, easy_scene(rng))
        return draw_example(rng, asker, questions, recipe.mixture, varied_scene(rng, orientation))

    def _beside(self, lesson: SideLesson, rng: np.random.Generator, questions: int) -> Example:
        """For a lesson about sides: two shapes that are told apart by their colours, or more in any wording."""
        if lesson.wording is None:
            return draw_example(rng, self._of_sides, questions, WHOLE, varied_scene(rng, "square", 4, 2))
        while True:
            scene = varied_scene(rng, "square", 2, 2)
            first, *others = scene.shapes
            if others and first.color != others[0].color:
                second = others[0]
                offset = first.middle[0] - second.middle[0]
                if abs(offset) > self._recipe.side_offset * scene.width:
                    break
        asked = []
        for _ in range(questions):
            turned = bool(rng.random() < 0.5)
            one, other = (second, first) if turned else (first, second)
            answer = SIDES[(offset > 0) != turned]
            text = lesson.wording.format(one=f"{one.color} shape", other=f"{other.color} shape")
            asked.append(Question(text, answer, "side", (answer,) * ANNOTATORS))
        return Example(render(scene), asked, scene)

    def _real_example(self, rng: np.random.Generator, asker: Asker, questions: int) -> Example:
        """An easy-VQA picture, its shape moved; asked about from its facts, which its own questions give away."""
        picture = self._pictures[int(rng.integers(len(self._pictures)))]
        scene = as_scene(*self._data.facts[picture])
        pixels = move_shape(self._data.pixels[picture], rng)
        # Half of the usual flaws: what the official test shows is unflawed.
        mixture = self._recipe.mixture
        mixture = Mixture(degraded=mixture.degraded / 2, disturbed=mixture.disturbed / 2)
        return with_flaws(pixels, scene, rng, asker, questions, mixture)


MOST_KEPT_BYTES = 4 * 2**30


class FileSource:
    """The questions of a data set, by picture, in a new order each time round; the pictures slightly altered.

    Args:
        examples: the questions, as `vqa eval` reads them.
        edge: shorter edge of the model's pictures, in pixels; larger ones are kept in memory at twice that, as many as
            `MOST_KEPT_BYTES` hold.
        seed: of the order.
        ruined: share of pictures that are ruined (dark, blank, blurred, noise), so that nothing can be answered.

    Pictures are altered slightly: light, contrast and a crop of at most 6% on each side. Nothing is mirrored or turned,
    since answers may say left and right.
    """

    def __init__(self, examples: Sequence[AskedExample], edge: int, ruined: float = 0.0, seed: int = 0) -> None:
        self._asked: dict[Path, list[AskedExample]] = defaultdict(list)
        for example in examples:
            self._asked[example.image].append(example)
        self._images = list(self._asked)
        self._edge = edge
        self._ruined = ruined
        self._kept: dict[Path, np.ndarray] = {}
        self._room = MOST_KEPT_BYTES
        self._order = lru_cache(maxsize=2)(self._permutation)
        self._seed = seed

    def examples(self, rng: np.random.Generator, step: int, pictures: int, questions: int) -> list[Example]:
        """As `Source.examples`; each picture once before any comes again."""
        chosen = (self._at(step * pictures + k) for k in range(pictures))
        return [self._example(rng, image, questions) for image in chosen]

    def whole(self) -> list[Example]:
        """Every picture once with all its questions, unaltered."""
        return [
            Example(self.pixels(image), [_question(asked) for asked in self._asked[image]]) for image in self._images
        ]

    def pixels(self, image: Path) -> np.ndarray:
        """A picture, uint8, H x W x 3, no smaller than the model needs it.

        Raises:
            DataError: the file cannot be read as a picture.
        """
        if image in self._kept:
            return self._kept[image]
        pixels = _read(image, 2 * self._edge)
        if pixels.nbytes <= self._room:
            self._kept[image] = pixels
            self._room -= pixels.nbytes
        return pixels

    def _at(self, number: int) -> Path:
        turn, place = divmod(number, len(self._images))
        return self._images[int(self._order(turn)[place])]

    def _permutation(self, turn: int) -> np.ndarray:
        return np.random.default_rng([self._seed, turn]).permutation(len(self._images))

    def _example(self, rng: np.random.Generator, image: Path, questions: int) -> Example:
        asked = self._asked[image]
        chosen = [_question(asked[int(k)]) for k in rng.permutation(len(asked))[:questions]]
        pixels = _altered(self.pixels(image), rng)
        if rng.random() >= self._ruined:
            return Example(pixels, chosen)
        ruined, damage = degrade(pixels, rng, Group.TRAIN)
        chosen = [replace(q, answers=(UNANSWERABLE,) * len(q.answers)) for q in asked_of_a_ruined_picture(chosen)]
        return Example(ruined, chosen, damage=damage)


def _question(asked: AskedExample) -> Question:
    answers = list(asked.answers)
    return Question(asked.question, max(answers, key=answers.count), asked.answer_type or "other", asked.answers)


def _read(image: Path, edge: int) -> np.ndarray:
    picture = read_picture(image)[0].picture
    scale = edge / min(picture.size)
    if scale < 1:
        size = round(picture.width * scale), round(picture.height * scale)
        picture = picture.resize(size, Image.Resampling.BICUBIC, reducing_gap=2.0)
    return np.asarray(picture)


def _altered(pixels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    height, width = pixels.shape[:2]
    left, right, top, bottom = (int(edge * rng.uniform(0, 0.06)) for edge in (width, width, height, height))
    picture = Image.fromarray(np.ascontiguousarray(pixels[top : height - bottom, left : width - right]))
    picture = ImageEnhance.Brightness(picture).enhance(rng.uniform(0.85, 1.15))
    return np.asarray(ImageEnhance.Contrast(picture).enhance(rng.uniform(0.85, 1.15)))
