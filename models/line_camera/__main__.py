"""Draw the line camera's pictures and their CSV: `python -m models.line_camera --out build/seal --count 600`."""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np
from PIL import Image

from models.line_camera.jars import draw, questions


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m models.line_camera", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="folder to write: pictures/ and seal.csv")
    parser.add_argument("--count", type=int, default=600, help="pictures; default 600")
    parser.add_argument("--seed", type=int, default=0, help="default 0")
    given = parser.parse_args()
    (given.out / "pictures").mkdir(parents=True, exist_ok=True)
    with (given.out / "seal.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("picture", "question", "answer"))
        for number in range(given.count):
            rng = np.random.default_rng([given.seed, number])
            jar, pixels = draw(rng)
            name = f"pictures/jar-{number:05d}.jpg"
            Image.fromarray(pixels).save(given.out / name, quality=88)
            writer.writerows((name, question, answer) for question, answer in questions(jar))
    print(f"{given.out / 'seal.csv'}: {given.count} pictures")


if __name__ == "__main__":
    main()
