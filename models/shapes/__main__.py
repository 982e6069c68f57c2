"""Write a data set of drawn shapes in the official VQA v2 format.

Example: python -m models.shapes --out data/shapes-val --split val --count 500 --seed 0
"""

from __future__ import annotations

import argparse
from pathlib import Path

from models.shapes.examples import Split, draw_split
from models.shapes.vqav2 import write


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m models.shapes", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    parser.add_argument("--split", type=Split, choices=list(Split), required=True)
    parser.add_argument("--count", type=int, default=500, help="pictures; default 500")
    parser.add_argument("--questions", type=int, default=3, help="questions a picture; default 3")
    parser.add_argument("--seed", type=int, default=0, help="default 0")
    arguments = parser.parse_args()
    examples = draw_split(arguments.split, arguments.seed, arguments.count, arguments.questions)
    questions = write(arguments.out, arguments.split, examples)
    print(f"{arguments.out}: {arguments.count} pictures, {questions} questions")


if __name__ == "__main__":
    main()
