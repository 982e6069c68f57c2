"""Fit a model folder's calibration: `python -m models.vilt.calibrate MODEL_DIR`.

Writes MODEL_DIR/calibration.json, fitted on the generator's calibration split and on easy-VQA pictures held out of
training, all asked in wordings that training never saw. Prints ECE and Brier score before and after, measured on the
generator's test split, whose wordings and damages are different again.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from models.shapes.annotators import annotate, vqa_accuracy
from models.shapes.examples import Example, Mixture, Split, draw_split, photograph
from models.shapes.phrasing import Group
from models.shapes.questions import UNANSWERABLE, Asker
from models.shapes.vqav2 import answer_type
from models.vilt import easyvqa
from models.vilt.calibration_maps import (
    apply,
    brier,
    expected_calibration_error,
    fit_best,
    fit_soft_logistic,
    logit,
    sigmoid,
)
from models.vilt.runner import ModelFolder

ANSWER_TYPES = ("yes/no", "number", "other")
DRAWN_PICTURES = 1000
QUESTIONS = 4  # a picture
THRESHOLD = 0.5
# An answer type seen less often has no map of its own; the default map serves it.
MIN_QUESTIONS = 200


@dataclass(frozen=True)
class Sample:
    """One entry a question: what the model said of it and how right its best answerable answer is."""

    top_mass: np.ndarray  # softmax probability of the best label other than "unanswerable"
    unanswerable_mass: np.ndarray
    answer_type: np.ndarray  # of that best label
    accuracy: np.ndarray  # VQA accuracy of that best label, in [0, 1]; 0 where the question is unanswerable
    answerable: np.ndarray
    picture: np.ndarray

    def answerability_features(self) -> np.ndarray:
        return np.stack([logit(self.unanswerable_mass), logit(self.top_mass)], axis=1)


def sample(model: ModelFolder, examples: list[Example]) -> Sample:
    """Ask the model every question."""
    probabilities = model.probabilities(examples)
    unanswerable = model.labels.index(UNANSWERABLE)
    others = probabilities.copy()
    others[:, unanswerable] = -1.0
    best = [model.labels[k] for k in others.argmax(axis=1)]
    questions = [q for e in examples for q in e.questions]
    return Sample(
        top_mass=others.max(axis=1),
        unanswerable_mass=probabilities[:, unanswerable],
        answer_type=np.array([answer_type(b) for b in best]),
        accuracy=np.array([vqa_accuracy(b, annotate(q)) for b, q in zip(best, questions, strict=True)]),
        answerable=np.array([q.answerable for q in questions]),
        picture=np.repeat(np.arange(len(examples)), [len(e.questions) for e in examples]),
    )


def calibration_examples(seed: int) -> list[Example]:
    """The generator's calibration split, and held-out easy-VQA pictures asked in the calibration wordings."""
    drawn = list(draw_split(Split.CALIBRATION, seed, DRAWN_PICTURES, QUESTIONS))
    data = easyvqa.load("train")
    _, held_out = easyvqa.held_out(len(data.pixels))
    asker, rng = Asker(Group.CALIBRATION), np.random.default_rng([seed, len(data.pixels)])
    known = [p for p in held_out if p in data.facts]
    real = [
        photograph(data.pixels[p], easyvqa.as_scene(*data.facts[p]), rng, asker, QUESTIONS, Mixture()) for p in known
    ]
    return drawn + real


def fit(data: Sample) -> tuple[dict, dict]:
    """The content of calibration.json, and the cross-validated Brier scores by answer type and kind of map."""
    default, scores = fit_best(data.top_mass, data.accuracy, data.picture)
    maps, report = {"default": default}, {"default": scores}
    for kind in ANSWER_TYPES:
        chosen = data.answer_type == kind
        if chosen.sum() >= MIN_QUESTIONS:
            maps[kind], report[kind] = fit_best(data.top_mass[chosen], data.accuracy[chosen], data.picture[chosen])
    weights, bias = fit_soft_logistic(data.answerability_features(), data.answerable.astype(float))
    calibration = {
        "version": 1,
        "fitted_on": "drawn shapes (calibration split) and held-out easy-VQA training pictures, unseen wordings",
        "questions": len(data.top_mass),
        "target": "vqa_accuracy(always)",
        "confidence": {"quantity": "top_mass", "score_kind": "softmax", "maps": maps},
        "answerability": {
            "kind": "logistic",
            "features": ["unanswerable_logit", "top_logit"],
            "weights": [float(w) for w in weights],
            "bias": bias,
            "threshold": THRESHOLD,
        },
    }
    return calibration, report


def confidence(calibration: dict, data: Sample) -> np.ndarray:
    """The calibrated chance that the best answerable answer is right."""
    maps = calibration["confidence"]["maps"]
    calibrated = np.empty(len(data.top_mass))
    for kind in ANSWER_TYPES:
        chosen = data.answer_type == kind
        calibrated[chosen] = apply(maps.get(kind, maps["default"]), data.top_mass[chosen])
    return calibrated


def answerability(calibration: dict, data: Sample) -> np.ndarray:
    """The calibrated chance that a question is answerable."""
    fitted = calibration["answerability"]
    return sigmoid(data.answerability_features() @ np.array(fitted["weights"]) + fitted["bias"])


def measure(calibration: dict, data: Sample) -> dict:
    """ECE and Brier score of confidence and answerability, before and after calibration."""
    answerable = data.answerable.astype(float)
    pairs = {
        "confidence before": (data.top_mass, data.accuracy),
        "confidence after": (confidence(calibration, data), data.accuracy),
        "answerability before": (1 - data.unanswerable_mass, answerable),
        "answerability after": (answerability(calibration, data), answerable),
    }
    report: dict = {
        name: {"ece": round(expected_calibration_error(p, t), 4), "brier": round(brier(p, t), 4)}
        for name, (p, t) in pairs.items()
    }
    found = answerability(calibration, data) < calibration["answerability"]["threshold"]
    report["unanswerable_recall"] = round(float(found[~data.answerable].mean()), 4)
    report["false_unanswerable"] = round(float(found[data.answerable].mean()), 4)
    return report


def calibrate(folder: Path, seed: int) -> dict:
    """Fit, write calibration.json, and report what it does to the generator's test split."""
    model = ModelFolder(folder)
    calibration, scores = fit(sample(model, calibration_examples(seed)))
    (folder / "calibration.json").write_text(json.dumps(calibration, indent=1) + "\n")
    test = list(draw_split(Split.TEST, seed, DRAWN_PICTURES, QUESTIONS))
    return {
        "questions": calibration["questions"],
        "chosen": {name: m["kind"] for name, m in calibration["confidence"]["maps"].items()},
        "cross_validated_brier": scores,
        "drawn_test": measure(calibration, sample(model, test)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="model folder; calibration.json is written there")
    parser.add_argument("--seed", type=int, default=0, help="of the drawn splits; default 0")
    arguments = parser.parse_args()
    print(json.dumps(calibrate(arguments.folder, arguments.seed), indent=1))


if __name__ == "__main__":
    main()
