"""What a model folder's runs show, as figures: `python -m models.vilt.measure models/vilt-shapes --shapes RUN … `.

Each RUN is a folder of `vqa eval`. Writes MODEL/evaluation.json and, where there is one, the section of figures of
MODEL/MODEL_CARD.md. Needs the extra `eval`, and no torch.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import average_precision_score

from models.vilt.card import with_figures
from service.answers import match_key, mostly_unanswerable, vqa_accuracy
from service.evaluation.reporting.calibration_figures import brier_score, equal_width_bins
from service.evaluation.reporting.predictions import Run, View, read_run
from service.gateway.reply import OUTSIDE_MODEL_DOMAIN
from service.scoring.advqa import human_agreement
from service.scoring.reliability import risk_coverage_curve

BINS = 15
DIGITS = 4
SURE = 0.5


def official(run: Run) -> dict[str, Any]:
    """Accuracy as the data set's own evaluator gives it, by view, in percent."""
    found = {}
    for name, document in run.documents.items():
        scores = document["scores"]
        found[name] = {
            "accuracy": scores["accuracy"],
            "per_answer_type": scores.get("per_answer_type", {}),
            "per_question_type": scores.get("per_question_type", {}),
        }
    return found


def people(view: View) -> dict[str, Any]:
    """By answer type, in percent: the best that any answers could score, a person against the others, and the accuracy
    of the type's commonest answer given to all of its questions."""
    found = {}
    for name, rows in {"all": np.arange(len(view)), **_by_type(view)}.items():
        said = [[match_key(answer) for answer in view.answers[int(k)]] for k in rows]
        commonest = Counter(Counter(answers).most_common(1)[0][0] for answers in said).most_common(1)[0][0]
        found[name] = {
            "best_possible": _percent([max(vqa_accuracy(a, answers) for a in set(answers)) for answers in said]),
            "a_person": _percent([human_agreement([{"answer": a} for a in answers]) for answers in said]),
            "majority": {"answer": commonest, "accuracy": _percent([vqa_accuracy(commonest, a) for a in said])},
        }
    return found


def trust(view: View) -> dict[str, Any]:
    """By answer type and in all: Brier score, area under risk-coverage and ECE of the confidence, beside two others.

    "softmax" is the model left alone: its most probable label, with that probability, and the accuracy of that label.
    "constant" is the mean accuracy of the service's answers, the best constant there is. All are over the questions
    whose answer was not held back.
    """
    sure = view.known("confidence")
    own, own_accuracy = _own_best(view)
    groups = {"all": np.arange(len(view)), **_by_type(view)}
    found = {}
    for name, rows in groups.items():
        kept = rows[sure[rows]]
        accuracy = view.accuracy[kept]
        scores = {
            "confidence": (view.numbers("confidence")[kept], accuracy),
            "softmax": (own[kept], own_accuracy[kept]),
            "constant": (np.full(len(kept), accuracy.mean()), accuracy),
        }
        found[name] = {"questions": len(kept)} | {
            score: {
                "brier": round(brier_score(values, right), DIGITS + 1),
                "area_under_risk_coverage": round(area_under_risk_coverage(values, right), DIGITS + 1),
                "ece": round(equal_width_bins(values, right, BINS).expected_calibration_error, DIGITS),
            }
            for score, (values, right) in scores.items()
        }
    return found


def area_under_risk_coverage(score: np.ndarray, accuracy: np.ndarray) -> float:
    """The mean risk over all coverages; questions of equal score come in any order, so each counts as their mean.

    Args:
        score, accuracy: (n,).
    """
    values, which = np.unique(score, return_inverse=True)
    means = np.bincount(which, weights=accuracy, minlength=len(values)) / np.bincount(which, minlength=len(values))
    return float(risk_coverage_curve(score, means[which])[1].mean())


def answerability(view: View) -> dict[str, Any] | None:
    """How well the questions that people could answer are told from those that they could not; None without both.

    Over the questions that were not held back.
    """
    known = view.known("answerability")
    score = view.numbers("answerability")[known]
    can = np.array([not mostly_unanswerable(said) for said in view.answers])[known]
    if can.all() or not can.any():
        return None
    refused = view.unanswerable[known]
    return {
        "questions": int(known.sum()),
        "answerable_share": round(float(can.mean()), DIGITS),
        "average_precision_answerable": round(float(average_precision_score(can, score)), DIGITS),
        "unanswerable_share": round(float((~can).mean()), DIGITS),
        "average_precision_unanswerable": round(float(average_precision_score(~can, 1 - score)), DIGITS),
        "unanswerable_found": round(float(refused[~can].mean()), DIGITS),
        "answerable_refused": round(float(refused[can].mean()), DIGITS),
    }


def outside(view: View) -> dict[str, Any]:
    """Shares of questions: held back or called unanswerable, and told with a confidence above one half."""
    held = view.abstained | view.unanswerable
    flagged = _flagged(view)
    return {
        "questions": len(view),
        "pictures": len(np.unique(view.pictures)),
        "outside_model_domain": round(float(flagged.mean()), DIGITS),
        "held_back_or_unanswerable": round(float(held.mean()), DIGITS),
        "confidence_above_half": round(float((np.nan_to_num(view.numbers("confidence")) > SURE).mean()), DIGITS),
    }


def exact(view: View) -> dict[str, Any]:
    """Exact accuracy by the data set's own kinds of question, in percent."""
    numbers, names = view.numbered("question_type")
    kinds = {name: view.accuracy[numbers == k] for k, name in enumerate(names)}
    by_kind = {name: {"questions": len(a), "accuracy": _percent(a)} for name, a in sorted(kinds.items())}
    return {"questions": len(view), "accuracy": _percent(view.accuracy), "by_kind": by_kind}


def training(curve: Path) -> dict[str, int]:
    """How long a run trained, from the end of its curve."""
    with curve.open(newline="") as file:
        *_, last = csv.DictReader(file)
    return {"steps": int(last["step"]), "questions": int(last["questions"]), "seconds": round(float(last["seconds"]))}


def _by_type(view: View) -> dict[str, np.ndarray]:
    numbers, names = view.numbered("answer_type")
    return {name: np.flatnonzero(numbers == k) for k, name in sorted(enumerate(names), key=lambda each: each[1])}


def _own_best(view: View) -> tuple[np.ndarray, np.ndarray]:
    """The probability of the model's most probable label, and its VQA accuracy; 0 where nothing came back."""
    found = np.zeros((len(view), 2))
    for row, listed, said in zip(found, view.table["candidates"].to_pylist(), view.answers, strict=True):
        if listed:
            row[:] = listed[0]["probability"], vqa_accuracy(listed[0]["answer"], said, "2021")
    return found[:, 0], found[:, 1]


def _flagged(view: View) -> np.ndarray:
    return np.array([OUTSIDE_MODEL_DOMAIN.code in codes for codes in view.lists("hints")])


def _percent(shares: Sequence[float] | np.ndarray) -> float:
    return round(100 * float(np.mean(shares)), 2)


def report(runs: dict[str, Run | None], folder: Path, int8_folder: Path | None = None) -> dict[str, Any]:
    """The content of evaluation.json; the int8 copy is in it where both of its runs and its folder are given."""
    found: dict[str, Any] = {}
    parity = folder / "parity.json"
    if parity.is_file():
        found["parity"] = json.loads(parity.read_text())
    curve = folder / "curve.csv"
    if curve.is_file():
        found["training"] = training(curve)
    if (run := runs.get("easy")) is not None:
        found["easy_vqa_test"] = exact(run.views["sighted"])
    if (run := runs.get("shapes")) is not None:
        view = run.views["sighted"]
        found["shapes_test"] = {
            "questions": len(view),
            "official": official(run),
            "people": people(view),
            "trust": trust(view),
            "answerability": answerability(view),
            "flagged": round(float(_flagged(view).mean()), DIGITS),
        }
    if (run := runs.get("real")) is not None:
        found["photographs"] = outside(run.views["sighted"])
    drawn, easy = runs.get("int8"), runs.get("int8-easy")
    if drawn is not None and easy is not None and int8_folder is not None:
        both = {"fp32": folder, "int8": int8_folder}
        found["int8"] = {
            "official": official(drawn),
            "easy_vqa_test": exact(easy.views["sighted"]),
            "bytes": {name: (path / "model.onnx").stat().st_size for name, path in both.items()},
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="model folder")
    names = {
        "easy": "the official easy-VQA test split",
        "shapes": "the test split of drawn shapes, sighted and blank",
        "real": "photographs",
        "int8": "the int8 copy on the test split of drawn shapes",
        "int8-easy": "the int8 copy on the official easy-VQA test split",
    }
    for name, what in names.items():
        parser.add_argument(f"--{name}", type=Path, metavar="RUN", help=what)
    parser.add_argument("--int8-model", type=Path, help="the int8 copy's folder, for its size")
    parser.add_argument("--calibration", type=Path, metavar="FILE", help="what `vqa calibrate --json` printed")
    given = vars(parser.parse_args())
    folder: Path = given["folder"]
    runs = {name: read_run(path) if (path := given[name.replace("-", "_")]) else None for name in names}
    document = report(runs, folder, given["int8_model"])
    if given["calibration"]:
        document["calibration"] = json.loads(given["calibration"].read_text())
    (folder / "evaluation.json").write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    card = folder / "MODEL_CARD.md"
    if card.is_file():
        card.write_text(with_figures(card.read_text(), document))
    print(json.dumps(document, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
