"""What the embedded model is calibrated and measured on: `python -m models.vilt.splits --out build/vilt-shapes`.

Writes two data sets in the format of VQA v2: `calibration/`, drawn pictures and held-out ones of easy-VQA, in wordings
and with damages of their own; and `test/`, drawn pictures in others still. Neither was ever trained on.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from models.shapes.examples import Example, Mixture, Split, draw_split, with_flaws
from models.shapes.phrasing import Group
from models.shapes.topics import Asker
from models.shapes.vqav2 import write
from models.vilt import easyvqa

PICTURES = 3000
QUESTIONS = 4  # a picture


def calibration(seed: int, pictures: int) -> Iterator[Example]:
    """The generator's calibration split, and held-out easy-VQA pictures asked in the calibration wordings."""
    yield from draw_split(Split.CALIBRATION, seed, pictures, QUESTIONS)
    data = easyvqa.load("train")
    _, held_out = easyvqa.held_out(len(data.pixels))
    asker, rng = Asker(Group.CALIBRATION, squares=False), np.random.default_rng([seed, len(data.pixels)])
    for picture in held_out:
        if picture in data.facts:
            scene = easyvqa.as_scene(*data.facts[picture])
            yield with_flaws(data.pixels[picture], scene, rng, asker, QUESTIONS, Mixture())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    parser.add_argument("--pictures", type=int, default=PICTURES, help="drawn for each set; default 3000")
    parser.add_argument("--seed", type=int, default=0, help="default 0")
    given = parser.parse_args()
    for split, examples in (
        (Split.CALIBRATION, calibration(given.seed, given.pictures)),
        (Split.TEST, draw_split(Split.TEST, given.seed, given.pictures, QUESTIONS)),
    ):
        questions = write(given.out / str(split), split, examples)
        print(f"{given.out / str(split)}: {questions} questions")


if __name__ == "__main__":
    main()
