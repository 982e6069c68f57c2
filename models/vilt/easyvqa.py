"""easy-VQA (V. Zhou, MIT licence): its pictures, questions, and what each picture shows.

The official test split is for the final evaluation alone. Validation and calibration use pictures held out of the
training split.
"""

from __future__ import annotations

import importlib.util
import json
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from PIL import Image

from models.shapes.annotators import ANNOTATORS
from models.shapes.examples import Example
from models.shapes.questions import Question
from models.shapes.scene import COLORS, SHAPES, Background, Scene, Shape

HELD_OUT_PICTURES = 400
_HELD_OUT_SEED = 123


@dataclass(frozen=True)
class EasyVQA:
    """`pixels`: uint8, N x 64 x 64 x 3; `questions`: (text, answer, picture); `facts`: picture to (colour, shape)."""

    pixels: np.ndarray
    questions: list[tuple[str, str, int]]
    facts: dict[int, tuple[str, str]]


def data_folder() -> Path:
    """The data folder inside the installed `easy-vqa` package."""
    spec = importlib.util.find_spec("easy_vqa")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("the package easy-vqa is not installed: pip install easy-vqa==1.0")
    return Path(spec.origin).parent / "data"


def load(split: Literal["train", "test"]) -> EasyVQA:
    """A whole official split."""
    folder = data_folder() / split
    questions = [(str(q), str(a), int(i)) for q, a, i in json.loads((folder / "questions.json").read_text())]
    pictures = 1 + max(i for _, _, i in questions)
    pixels = np.stack([np.asarray(Image.open(folder / "images" / f"{i}.png").convert("RGB")) for i in range(pictures)])
    return EasyVQA(pixels, questions, _facts(questions))


def held_out(pictures: int) -> tuple[list[int], list[int]]:
    """Numbers of the training split's pictures: those to train on, and the 400 held out."""
    order = np.random.RandomState(_HELD_OUT_SEED).permutation(pictures)
    return sorted(order[HELD_OUT_PICTURES:].tolist()), sorted(order[:HELD_OUT_PICTURES].tolist())


def question_kind(text: str) -> str:
    """color, shape, yes/no or yes/no negated: the four kinds of easy-VQA's questions."""
    if text.startswith("what"):
        return "color" if "color" in text else "shape"
    return "yes/no negated" if re.search(r"\b(no|not)\b", text) else "yes/no"


def official_examples(data: EasyVQA, pictures: Iterable[int]) -> list[Example]:
    """The given pictures with their official questions; a question's topic is its `question_kind`."""
    asked: dict[int, list[Question]] = {picture: [] for picture in pictures}
    for text, answer, picture in data.questions:
        if picture in asked:
            asked[picture].append(Question(text, answer, question_kind(text), (answer,) * ANNOTATORS))
    return [Example(data.pixels[p], questions) for p, questions in asked.items() if questions]


def as_scene(color: str, kind: str) -> Scene:
    """The one-shape scene of a picture, for asking questions.

    Place and extent of the shape are not known and not asked for; a rectangle counts as no square.
    """
    white = (255, 255, 255)
    shape = Shape(kind, color, (0.0, 0.0, 64.0, 32.0), COLORS[color])
    return Scene(64, 64, Background(white, white), (shape,))


def move_shape(pixels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The shape moved anywhere it fits, mirrored half of the time. Never flipped upside down: triangles point up."""
    background = np.median(pixels.reshape(-1, 3), axis=0)
    shape = np.abs(pixels.astype(np.int16) - background).sum(2) > 20
    rows, columns = np.flatnonzero(shape.any(1)), np.flatnonzero(shape.any(0))
    height, width = shape.shape
    down = int(rng.integers(-rows[0], height - rows[-1]))
    right = int(rng.integers(-columns[0], width - columns[-1]))
    moved = np.roll(pixels, (down, right), (0, 1))
    return moved[:, ::-1] if rng.random() < 0.5 else moved


def _facts(questions: list[tuple[str, str, int]]) -> dict[int, tuple[str, str]]:
    """Colour and shape of each picture whose questions give both away."""
    colors: dict[int, str] = {}
    shapes: dict[int, str] = {}
    asked: dict[int, set[str]] = defaultdict(set)
    for text, answer, picture in questions:
        words = set(re.findall(r"[a-z]+", text))
        negated = bool(words & {"no", "not"})
        if answer in ("yes", "no") and (answer == "yes") == negated:
            continue  # says what the picture does not show
        # "what is the red shape?" and "what color is the circle?" take their word for granted: it is true as well.
        asked[picture] |= words | {answer}
    for picture, words in asked.items():
        for color in words & set(COLORS):
            colors[picture] = color
        for shape in words & set(SHAPES):
            shapes[picture] = shape
    return {p: (colors[p], shapes[p]) for p in sorted(colors.keys() & shapes.keys())}
