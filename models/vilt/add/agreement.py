"""An int8 graph beside the fp32 one that it was made of: how often both give the same best answer.

    python -m models.vilt.add.agreement models/vilt-shapes build/vilt-shapes-int8 [--questions FILE] [--count 200]

Questions are asked one at a time: the scales of an int8 graph's activations are taken over the whole batch, so that
another question beside it would change the scores.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from tqdm import tqdm

from models.camera import camera_scene
from models.shapes.examples import Split, draw_split
from service.answers.scores import log_sum_exp, sigmoid
from service.backends.layout import Way
from service.backends.manifest import ModelManifest, read_manifest
from service.backends.vilt import ViltModel
from service.evaluation.running.datasets import check_pictures, first_questions, load
from service.evaluation.running.formats.base import Sources
from service.images import read_picture

MADE = "made here, no photographs: drawn shapes and pictures like a camera's with nothing in them to be recognised"
# Asked of the camera-like pictures in turn: of the kinds that people ask of photographs.
_EVERYDAY = (
    "what color is the wall?", "is there a person in the picture?", "how many people are there?", "what is this?",
    "is it daytime?", "what is on the table?", "is the light on?", "what room is this?", "what is the man holding?",
    "are the curtains open?", "what animal is this?", "how many windows are there?", "is it raining?",
    "what color is the car?", "what does the sign say?", "is the floor wet?", "where is the cat?",
)  # fmt: skip
_CAMERA_STREAM = 7


@dataclass(frozen=True)
class Asked:
    """A question about an upright RGB picture."""

    picture: Image.Image
    question: str


@dataclass(frozen=True)
class QuestionSet:
    """What both graphs are asked.

    Attributes:
        about: what the questions are, for the card.
        count: how many there are.
    """

    about: str
    count: int
    _make: partial[Iterator[Asked]]

    def __iter__(self) -> Iterator[Asked]:
        return self._make()

    @classmethod
    def made(cls, count: int, seed: int = 0) -> QuestionSet:
        """Questions of the repository's own, half about drawn shapes and half about camera-like pictures."""
        return cls(MADE, count, partial(_made, count, seed))

    @classmethod
    def of_file(cls, path: Path, most: int) -> QuestionSet:
        """The first questions of a file, JSON Lines as `vqa eval --dataset jsonl` takes them.

        Raises:
            DataError: the file cannot be read or is broken.
            RunError: pictures are missing.
        """
        data = first_questions(load("jsonl", Sources(annotations=path)), most)
        check_pictures(data)
        pairs = [(example.image, example.question) for example in data.examples]
        return cls(f"the first {len(pairs):,} of {path.name}", len(pairs), partial(_read, pairs))


def _made(count: int, seed: int) -> Iterator[Asked]:
    shapes = draw_split(Split.TEST, seed, (count + 1) // 2, questions=1)
    for number in range(count):
        if number % 2 == 0:
            example = next(shapes)
            yield Asked(Image.fromarray(example.pixels), example.questions[0].text)
        else:
            rng = np.random.default_rng([_CAMERA_STREAM, seed, number])
            width, height = ((640, 480), (480, 640), (640, 360), (512, 512))[number // 2 % 4]
            yield Asked(Image.fromarray(camera_scene(rng, width, height)), _EVERYDAY[number // 2 % len(_EVERYDAY)])


def _read(pairs: Sequence[tuple[Path, str]]) -> Iterator[Asked]:
    for path, question in pairs:
        yield Asked(read_picture(path)[0].picture, question)


def agreement(fp32: ModelManifest, int8: ModelManifest, questions: QuestionSet, threads: int) -> dict[str, Any]:
    """Ask both models each question, one at a time.

    Returns:
        questions: how many; about: what they were; same_answer: to how many of them both gave the same best answer;
        share: of all; answers: how many different best answers the fp32 model gave: where they are few, agreement says
        little; largest_difference: of a probability of any answer; bytes: of both graphs.

    Raises:
        DataError: a picture cannot be read.
        ManifestError: a model cannot be loaded.
    """
    models = [ViltModel.open(each, "cpu", 0, {Way.WIDE: threads}) for each in (fp32, int8)]
    same, largest, answers = 0, 0.0, set()
    # None: no bar where standard error is no terminal.
    for asked in tqdm(questions, total=questions.count, unit="question", disable=None):
        first, second = (_probabilities(model, asked, fp32.scores.kind) for model in models)
        answers.add(int(first.argmax()))
        same += int(first.argmax() == second.argmax())
        largest = max(largest, float(np.abs(first - second).max()))
    return {
        "questions": questions.count,
        "about": questions.about,
        "same_answer": same,
        "share": round(same / questions.count, 4),
        "answers": len(answers),
        "largest_difference": round(largest, 6),
        "bytes": {each.source.precision: each.path(each.source.file).stat().st_size for each in (fp32, int8)},
    }


def _probabilities(model: ViltModel, asked: Asked, kind: str) -> NDArray[np.float64]:
    """Of each label, (labels,)."""
    item = model.item(model.processor(asked.picture), model.tokenizer.encode(asked.question).ids)
    logits = model.logits([item], Way.WIDE)[0].astype(np.float64)
    return sigmoid(logits) if kind == "sigmoid" else np.exp(logits - log_sum_exp(logits))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fp32", type=Path, help="model folder")
    parser.add_argument("int8", type=Path, help="model folder")
    parser.add_argument(
        "--questions", type=Path, help="JSON Lines, as for `vqa eval --dataset jsonl`; default made here"
    )
    parser.add_argument("--count", type=int, default=200, help="how many questions at most; default 200")
    given = parser.parse_args()
    asked = QuestionSet.of_file(given.questions, given.count) if given.questions else QuestionSet.made(given.count)
    print(json.dumps(agreement(read_manifest(given.fp32), read_manifest(given.int8), asked, threads=1), indent=1))


if __name__ == "__main__":
    main()
