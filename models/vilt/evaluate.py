"""Measure what a model folder replies: `python -m models.vilt.evaluate MODEL_DIR`.

Prints one JSON object: exact accuracy on the whole official easy-VQA test split, by kind of question, and on the
generator's test split (wordings and damages that training never saw), by topic; how unanswerable questions are told
apart; and ECE and Brier score of the confidence. Answers and confidences are those of `service.answers`, calibration
included. The official test split is used here and nowhere else.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path

import numpy as np

from models.shapes.examples import Example, Split, draw_split
from models.shapes.questions import UNANSWERABLE, Question
from models.vilt import easyvqa
from models.vilt.calibration_maps import brier, expected_calibration_error
from models.vilt.runner import ModelFolder
from service.answers import Calibration, Posterior, Verdict, Vocabulary, finish

SCORE_KIND = "softmax"


def verdicts(folder: Path, examples: list[Example]) -> list[Verdict]:
    """What the service says to each question, in order."""
    model = ModelFolder(folder)
    calibration = Calibration.load(folder / "calibration.json")
    vocabulary = Vocabulary(model.labels)
    answers = vocabulary.default_set
    projection = vocabulary.project(answers)
    return [
        finish(Posterior.from_logits(logits, projection, answers, SCORE_KIND), calibration)
        for logits in model.logits(examples)
    ]


def measure(questions: list[Question], said: list[Verdict]) -> dict:
    """Accuracy in all, by topic and of "how many" by the right count; unanswerable questions; the confidence.

    `unanswerable_recall`: share of unanswerable questions answered so; `false_unanswerable`: of answerable ones.
    `top_probability`: the model's own probability of its best answer, beside the confidence.
    """
    hits = np.array([verdict.answer == question.answer for question, verdict in zip(questions, said, strict=True)])
    right: dict[str, list[bool]] = defaultdict(list)
    counts: dict[str, list[bool]] = defaultdict(list)
    for question, hit in zip(questions, hits, strict=True):
        right[question.topic].append(bool(hit))
        if question.topic == "count":
            counts[question.answer].append(bool(hit))
    refused = np.array([verdict.answer == UNANSWERABLE for verdict in said])
    answerable = np.array([question.answerable for question in questions])
    return {
        "questions": len(questions),
        "accuracy": _share(hits),
        "by_topic": _shares(right),
        "by_count": _shares(counts),
        "unanswerable_recall": _share(refused[~answerable]),
        "false_unanswerable": _share(refused[answerable]),
        "confidence": _quality(np.array([v.confidence for v in said], dtype=float), hits),
        "top_probability": _quality(np.array([v.candidates[0].probability for v in said]), hits),
    }


def _quality(p: np.ndarray, hits: np.ndarray) -> dict[str, float]:
    target = hits.astype(float)
    return {"ece": round(expected_calibration_error(p, target), 4), "brier": round(brier(p, target), 4)}


def _shares(groups: dict[str, list[bool]]) -> dict:
    return {name: {"accuracy": _share(hits), "questions": len(hits)} for name, hits in sorted(groups.items())}


def _share(hits: np.ndarray | list[bool]) -> float | None:
    return round(float(np.mean(hits)), 4) if len(hits) else None


def evaluate(folder: Path, drawn: int, seed: int) -> dict:
    """The official easy-VQA test split, and `drawn` pictures of the generator's test split."""
    official = easyvqa.load("test")
    sets = {
        "easy_vqa_test": easyvqa.official_examples(official, range(len(official.pixels))),
        "drawn_test": list(draw_split(Split.TEST, seed, drawn, questions=4)),
    }
    return {
        name: measure([q for e in examples for q in e.questions], verdicts(folder, examples))
        for name, examples in sets.items()
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
