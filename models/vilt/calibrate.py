"""Fit a model folder's calibration: `python -m models.vilt.calibrate MODEL_DIR`.

Writes MODEL_DIR/calibration.json, fitted on the generator's calibration split and on easy-VQA pictures held out of
training, all asked in wordings that training never saw. Each map has to beat the probability as it is, on wordings
that it was not fitted on, or that one stays. What it does to replies is measured by `models.vilt.evaluate`.
"""

from __future__ import annotations

import argparse
import json
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from models.shapes.annotators import annotate, vqa_accuracy
from models.shapes.examples import Example, Mixture, Split, draw_split, photograph
from models.shapes.phrasing import Group
from models.shapes.questions import UNANSWERABLE, Asker
from models.shapes.scene import COLORS, SHAPES
from models.shapes.vqav2 import answer_type
from models.vilt import easyvqa
from models.vilt.calibration_maps import fit_best
from models.vilt.runner import ModelFolder

ANSWER_TYPES = ("yes/no", "number", "other")
DRAWN_PICTURES = 1000
QUESTIONS = 4  # a picture
THRESHOLD = 0.5
# An answer type seen less often has no map of its own; the default map serves it.
MIN_QUESTIONS = 200
_SLOTS = re.compile(rf"\b(?:{'|'.join((*COLORS, *SHAPES, 'shape'))})s?\b")


@dataclass(frozen=True)
class Sample:
    """One entry a question: what the model said of it and how right its best answerable answer is."""

    top_mass: np.ndarray  # softmax probability of the best label other than "unanswerable"
    unanswerable_mass: np.ndarray
    answer_type: np.ndarray  # of that best label
    accuracy: np.ndarray  # VQA accuracy of that best label, in [0, 1]; 0 where the question is unanswerable
    answerable: np.ndarray
    wording: np.ndarray  # the same number for questions that differ in colours, shapes and spelling alone


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
        wording=np.unique([_wording(q.text) for q in questions], return_inverse=True)[1],
    )


def _wording(text: str) -> str:
    """A question with its colours and shapes left open, in American spelling."""
    return _SLOTS.sub("*", text.replace("colour", "color"))


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
    default, scores = fit_best(data.top_mass, data.accuracy, data.wording)
    maps, report = {"default": default}, {"default": scores}
    for kind in ANSWER_TYPES:
        chosen = data.answer_type == kind
        if chosen.sum() >= MIN_QUESTIONS:
            maps[kind], report[kind] = fit_best(data.top_mass[chosen], data.accuracy[chosen], data.wording[chosen])
    answerability, report["answerability"] = fit_best(
        1 - data.unanswerable_mass, data.answerable.astype(float), data.wording, kinds=("identity", "logistic")
    )
    calibration = {
        "version": 1,
        "fitted_on": "drawn shapes (calibration split) and held-out easy-VQA training pictures, unseen wordings",
        "questions": len(data.top_mass),
        "target": "vqa_accuracy(always)",
        "confidence": {"quantity": "top_mass", "score_kind": "softmax", "maps": maps},
        "answerability": {
            "kind": "logistic",
            "features": ["unanswerable_logit", "top_logit"],
            # The map is on the logit of the answerable mass; the feature is that of the unanswerable one.
            "weights": [-answerability["a"], 0.0],
            "bias": answerability["b"],
            "threshold": THRESHOLD,
        },
    }
    return calibration, report


def calibrate(folder: Path, seed: int) -> dict:
    """Fit, write calibration.json, and report which maps were chosen and why."""
    model = ModelFolder(folder)
    calibration, scores = fit(sample(model, calibration_examples(seed)))
    (folder / "calibration.json").write_text(json.dumps(calibration, indent=1) + "\n")
    return {
        "questions": calibration["questions"],
        "chosen": {name: m["kind"] for name, m in calibration["confidence"]["maps"].items()},
        "cross_validated_brier": scores,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="model folder; calibration.json is written there")
    parser.add_argument("--seed", type=int, default=0, help="of the drawn splits; default 0")
    arguments = parser.parse_args()
    print(json.dumps(calibrate(arguments.folder, arguments.seed), indent=1))


if __name__ == "__main__":
    main()
