"""Measure a model folder as served: `python -m models.vilt.evaluate MODEL_DIR`.

Prints one JSON object: exact accuracy on the whole official easy-VQA test split, by kind of question, and on the
generator's test split (wordings and damages that training never saw), by topic, with what matters for unanswerable
questions. The official test split is used here and nowhere else.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path

import numpy as np

from models.shapes.examples import Example, Split, draw_split
from models.shapes.questions import UNANSWERABLE
from models.vilt import easyvqa
from models.vilt.runner import ModelFolder


def measure(model: ModelFolder, examples: list[Example]) -> dict:
    """Accuracy in all, by topic and of "how many" by the right count; how unanswerable questions are told apart.

    `unanswerable_recall`: share of unanswerable questions answered so; `false_unanswerable`: of answerable ones.
    """
    predicted = np.array(model.labels)[model.probabilities(examples).argmax(axis=1)]
    questions = [q for e in examples for q in e.questions]
    right: dict[str, list[bool]] = defaultdict(list)
    counts: dict[str, list[bool]] = defaultdict(list)
    unanswerable: list[bool] = []
    refused: list[bool] = []
    for question, answer in zip(questions, predicted, strict=True):
        right[question.topic].append(bool(answer == question.answer))
        if question.topic == "count":
            counts[question.answer].append(bool(answer == question.answer))
        (refused if question.answerable else unanswerable).append(bool(answer == UNANSWERABLE))
    return {
        "questions": len(questions),
        "accuracy": _share([hit for hits in right.values() for hit in hits]),
        "by_topic": _shares(right),
        "by_count": _shares(counts),
        "unanswerable_recall": _share(unanswerable),
        "false_unanswerable": _share(refused),
    }


def _shares(groups: dict[str, list[bool]]) -> dict:
    return {name: {"accuracy": _share(hits), "questions": len(hits)} for name, hits in sorted(groups.items())}


def _share(hits: list[bool]) -> float | None:
    return round(sum(hits) / len(hits), 4) if hits else None


def evaluate(folder: Path, drawn: int, seed: int) -> dict:
    """The official easy-VQA test split, and `drawn` pictures of the generator's test split."""
    model = ModelFolder(folder)
    official = easyvqa.load("test")
    return {
        "easy_vqa_test": measure(model, easyvqa.official_examples(official, range(len(official.pixels)))),
        "drawn_test": measure(model, list(draw_split(Split.TEST, seed, drawn, questions=4))),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="model folder")
    parser.add_argument("--drawn", type=int, default=1000, help="pictures of the generator's test split; default 1000")
    parser.add_argument("--seed", type=int, default=0, help="of the generator's test split; default 0")
    arguments = parser.parse_args()
    print(json.dumps(evaluate(arguments.folder, arguments.drawn, arguments.seed), indent=1))


if __name__ == "__main__":
    main()
