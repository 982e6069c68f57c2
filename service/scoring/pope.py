"""POPE: is an object in the picture; yes or no, scored as a detector of yes (Li et al. 2023).

Three programs score it, and read the answer differently:

- "official" (RUCAIBox/POPE, evaluate.py): the first sentence counts; it says no where one of its words is No, not or
  no, and yes otherwise.
- "lmms-eval" (EvolvingLMMs-Lab/lmms-eval, tasks/pope/utils.py): the whole answer must be yes or no; its yes ratio is
  that of the labels.
- "vlmevalkit" (open-compass/VLMEvalKit, yorn.py, without a judge model): the words yes and no, not both; else unknown.

Answers and labels belong together by their order, as in the original.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from service.errors import DataError
from service.files import read_rows
from service.scoring.chains import LONELY_FULL_STOP, punctuation3
from service.scoring.rows import id_of, records, text_of
from service.scoring.scores import Inputs, QuestionId, Scores


@dataclass(frozen=True, slots=True)
class Row:
    """A question with its label ("yes" or "no"), its splits, and what was answered."""

    question_id: QuestionId
    label: str
    categories: tuple[str, ...]
    answer: str


def score(inputs: Inputs) -> Scores:
    """Score answers for one POPE file.

    Args:
        inputs: `annotations` is the label file (`question_id`, `image`, `text`, `label` a row), `results` the answers
            (`answer`, perhaps `question` or `question_id`), both JSON Lines or a JSON array; `like` is "official",
            "lmms-eval" or "vlmevalkit".

    Raises:
        DataError: a file cannot be used, the files differ in length, or a row's question or id is another one's.
        KeyError: `like` is not known.
    """
    return _PROGRAMS[inputs.like](_read(inputs.annotations, inputs.results))


def says_yes(answer: str) -> bool:
    """Whether the official program takes an answer for a yes."""
    words = answer.split(".")[0].replace(",", "").split(" ")
    return not {"No", "not", "no"} & set(words)


def extract_yes_or_no(answer: str) -> str:
    """What VLMEvalKit (YOrN_Extraction) takes an answer for: "Yes", "No" or "Unknown"."""
    words = set(punctuation3(answer.lower(), full_stop=LONELY_FULL_STOP).split())
    if ("yes" in words) == ("no" in words):
        return "Unknown"
    return "Yes" if "yes" in words else "No"


def _read(labels: Path, answers: Path) -> list[Row]:
    """The pairs of label and answer."""
    label_rows = list(records(labels, read_rows(labels), "label"))
    answer_rows = list(records(answers, read_rows(answers), "answer"))
    if len(label_rows) != len(answer_rows):
        what = (
            f"{len(answer_rows)} answers for the {len(label_rows)} labels of {labels}; they are paired by their order"
        )
        place = answer_rows[len(label_rows)][0] if len(answer_rows) > len(label_rows) else None
        raise DataError(answers, what, place)
    if not label_rows:
        raise DataError(labels, "the file holds no labels")
    rows = []
    for number, ((label_place, label), (place, answer)) in enumerate(zip(label_rows, answer_rows, strict=True), 1):
        said = text_of(labels, label_place, label, "label").strip().lower()
        if said not in ("yes", "no"):
            raise DataError(labels, f"expected yes or no, and this is {label['label']!r}", f"{label_place}.label")
        _check_pair(answers, place, answer, label, label_place)
        categories = str(label["category"]).split(",") if label.get("category") else ()
        text = text_of(answers, place, answer, "answer")
        qid = id_of(labels, label_place, label, "question_id") if "question_id" in label else number
        rows.append(Row(qid, said, tuple(categories), text))
    return rows


def _check_pair(path: Path, place: str, answer: dict[str, Any], label: dict[str, Any], label_place: str) -> None:
    """Refuse an answer that names another question than the label in its place."""
    asked = label.get("text", label.get("question"))
    for name, of_label in (("question_id", label.get("question_id")), ("question", asked)):
        of_answer = answer.get(name)
        if of_answer is None or of_label is None:
            continue
        if _plain(of_answer) != _plain(of_label):
            what = f"the answer is to {of_answer!r}, and the label at {label_place} belongs to {of_label!r}"
            raise DataError(path, f"{what}; answers must stand in the order of the labels", f"{place}.{name}")


def _plain(value: object) -> str:
    """A question or an id, whatever its case and spacing."""
    return " ".join(str(value).casefold().split())


def _official(rows: Sequence[Row]) -> Scores:
    predicted = [says_yes(row.answer) for row in rows]
    counts = _count(rows, predicted)
    tp, fp, tn, fn = (counts[name] for name in ("TP", "FP", "TN", "FN"))
    precision = _ratio(tp, tp + fp)
    recall = _ratio(tp, tp + fn)
    f1 = None
    if precision is not None and recall is not None:
        f1 = _ratio(2 * precision * recall, precision + recall)
    accuracy = (tp + tn) / len(rows)
    fractions = {"precision": precision, "recall": recall, "f1": f1, "yes_ratio": sum(predicted) / len(rows)}
    lines = ["TP\tFP\tTN\tFN\t", f"{tp}\t{fp}\t{tn}\t{fn}"]
    notes = []
    undefined = [name for name, value in fractions.items() if value is None]
    if undefined:
        what = (
            f"{', '.join(undefined)} would divide by zero: {tp} of the yes labels and {fp} of the no labels got a yes"
        )
        notes.append(f"{what}; the official program ends in an error here, after the counts")
    else:
        titles = ("Accuracy", "Precision", "Recall", "F1 score", "Yes ratio")
        values = (accuracy, *fractions.values())
        lines += [f"{title}: {value}" for title, value in zip(titles, values, strict=True)]
    right = [yes == (row.label == "yes") for row, yes in zip(rows, predicted, strict=True)]
    metrics = {**counts, **fractions, "scores": {"accuracy": accuracy, **fractions}}
    return _scores(rows, right, 100 * (tp + tn) / len(rows), metrics, lines, notes)


def _lmms_eval(rows: Sequence[Row]) -> Scores:
    said = [row.answer.lower().strip() for row in rows]
    right = [answer == row.label for answer, row in zip(said, rows, strict=True)]
    of = Counter((row.label, answer) for row, answer in zip(rows, said, strict=True))
    tp, fp, fn = of["yes", "yes"], of["no", "yes"], of["yes", "no"]  # an answer that is neither is no false negative
    accuracy = sum(right) / len(rows)
    fractions = {
        **_precision_recall_f1(tp, fp, fn, "f1_score"),
        "yes_ratio": sum(row.label == "yes" for row in rows) / len(rows),
    }
    return _scores(
        rows, right, 100 * sum(right) / len(rows), {**fractions, "scores": {"accuracy": accuracy, **fractions}}
    )


def _vlmevalkit(rows: Sequence[Row]) -> Scores:
    extracted = [extract_yes_or_no(row.answer) for row in rows]
    right = [answer.lower() == row.label for answer, row in zip(extracted, rows, strict=True)]
    # A question of several splits counts once for each of them, in all scores.
    by_split = [
        (split, row.label == "yes", answer == "Yes", ok)
        for row, answer, ok in zip(rows, extracted, right, strict=True)
        for split in row.categories or (None,)
    ]
    splits: dict[str, dict[str, float]] = {}
    for name in ("Overall", *dict.fromkeys(split for split, *_ in by_split if split is not None)):
        part = [(label, said, ok) for split, label, said, ok in by_split if name in ("Overall", split)]
        of = Counter((label, said) for label, said, _ in part)
        fractions = _precision_recall_f1(of[True, True], of[False, True], of[True, False], "Overall")
        splits[name] = {
            "Overall": fractions["Overall"] * 100,
            "acc": sum(ok for _, _, ok in part) / len(part) * 100,
            "precision": fractions["precision"] * 100,
            "recall": fractions["recall"] * 100,
        }
    overall = splits["Overall"]
    metrics = {
        "Overall": overall["Overall"],
        "precision": overall["precision"],
        "recall": overall["recall"],
        "unknown": extracted.count("Unknown"),
        "scores": splits,
    }
    return _scores(rows, right, overall["acc"], metrics)


def _scores(
    rows: Sequence[Row],
    right: Sequence[bool],
    percent: float,
    metrics: dict[str, Any],
    official: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> Scores:
    ids = [row.question_id for row in rows]
    if len(set(ids)) < len(ids):  # several label files in one: their ids begin again
        ids = list(range(1, len(ids) + 1))
    return Scores(
        dataset="pope",
        accuracy=percent,
        questions=len(rows),
        metrics=metrics,
        per_question=dict(zip(ids, map(float, right), strict=True)),
        official=tuple(official),
        notes=tuple(notes),
    )


def _count(rows: Sequence[Row], predicted: Sequence[bool]) -> dict[str, int]:
    of = Counter((row.label == "yes", yes) for row, yes in zip(rows, predicted, strict=True))
    return {"TP": of[True, True], "FP": of[False, True], "TN": of[False, False], "FN": of[True, False]}


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _precision_recall_f1(tp: int, fp: int, fn: int, f1: str) -> dict[str, float]:
    """The three, 0 where one would divide by zero; `f1` is what the program calls the third."""
    precision = tp / (tp + fp) if tp + fp else 0.0
    recall = tp / (tp + fn) if tp + fn else 0.0
    both = precision + recall
    return {"precision": precision, "recall": recall, f1: 2 * (precision * recall) / both if both else 0.0}


_PROGRAMS: Final[Mapping[str, Callable[[Sequence[Row]], Scores]]] = {
    "official": _official,
    "lmms-eval": _lmms_eval,
    "vlmevalkit": _vlmevalkit,
}
