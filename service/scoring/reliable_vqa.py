"""Reliable VQA: accuracy, risk and coverage, and effective reliability on VQA v2 files.

Source: facebookresearch/reliable_vqa d9586af, eval_scripts (run.py, reliable_vqa_eval.py, vqa.py). Its VQA accuracy is
its own in three ways, all kept: punctuation goes by other rules than in the VQA code (`reliable_vqa_text`); annotators
are told apart by comparing whole records; and the answers of people are normalised in place, so that a question which
is in both results files is scored on normalised answers the second time. Where these are all the same by then, the
model's answer is not normalised any more.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from service.errors import DataError
from service.files import read_json
from service.scoring.chains import strip3, words3
from service.scoring.reliability import choose_thresholds, effective_reliability, risk_coverage
from service.scoring.reliable_vqa_text import process_punctuation
from service.scoring.rounding import mean, total
from service.scoring.rows import id_of, kind_of, read_array, records, text_of
from service.scoring.scores import Inputs, QuestionId, Scores

_FULL_MARKS: Final = 3


@dataclass(frozen=True, slots=True)
class _Answered:
    """The questions of one results file in the program's order: ids, accuracies (0 to 1) and confidences."""

    ids: list[QuestionId]
    accuracies: list[float]
    confidences: list[float]


def score(inputs: Inputs) -> Scores:
    """Score results with confidences.

    Args:
        inputs: `annotations` in the VQA v2 format; `results` a JSON array of `{"question_id", "answer",
            "confidence"}` for all or some of its questions; `thresholds` more results, on which the thresholds of
            effective reliability are chosen, without which it is left out; `questions` is read for multiple choice.

    Raises:
        DataError: a file cannot be used, or a result belongs to no question or has no confidence.
        MissingExtraError: scikit-learn is not installed.
    """
    annotations = _read_annotations(inputs.annotations)
    choices = _read_choices(inputs.questions)
    results = _score_results(inputs.results, annotations, choices)
    if len(results.ids) < 2:
        raise DataError(inputs.results, "the risk-coverage curve needs two results at least, and there is one")
    figures: dict[str, Any] = {
        "vqa_accuracy": round(100 * total(results.accuracies) / len(results.accuracies), 2),
        **risk_coverage(results.confidences, results.accuracies),
    }
    lines, notes = [], []
    if inputs.thresholds is None:
        notes.append("effective reliability (phi) is left out: it needs a results file to choose the thresholds on")
    else:
        chosen_on = _score_results(inputs.thresholds, annotations, choices)
        thresholds = choose_thresholds(chosen_on.confidences, chosen_on.accuracies)
        figures |= effective_reliability(results.confidences, results.accuracies, thresholds)
        lines = ["Chosen thresholds for effective reliability:"]
        lines += [f"Cost: {cost}, Threshold: {threshold}" for cost, threshold in thresholds.items()]
    lines += json.dumps(figures, sort_keys=True, indent=4).splitlines()
    by_id = dict(zip(results.ids, results.accuracies, strict=True))
    per_question = {qid: by_id[qid] for qid in annotations if qid in by_id}
    return Scores(
        dataset="reliable-vqa",
        accuracy=figures["vqa_accuracy"],
        questions=len(results.ids),
        per_answer_type=_by_type(annotations, per_question, "answer_type"),
        per_question_type=_by_type(annotations, per_question, "question_type"),
        metrics=figures,
        per_question=per_question,
        official=tuple(lines),
        notes=tuple(notes),
    )


def _read_annotations(path: Path) -> dict[QuestionId, dict[str, Any]]:
    value = read_json(path)
    if not isinstance(value, dict) or not isinstance(value.get("annotations"), list):
        raise DataError(path, 'expected an object with the key "annotations", as in VQA v2')
    rows = [(f"annotations[{index}]", row) for index, row in enumerate(value["annotations"])]
    annotations: dict[QuestionId, dict[str, Any]] = {}
    for place, row in records(path, rows, "question_id", "answers"):
        if not isinstance(row["answers"], list) or not row["answers"]:
            raise DataError(path, "expected the answers of people, an array", f"{place}.answers")
        answers = [(f"{place}.answers[{index}]", answer) for index, answer in enumerate(row["answers"])]
        for answer_place, answer in records(path, answers, "answer"):
            text_of(path, answer_place, answer, "answer")
        annotations[id_of(path, place, row, "question_id")] = row
    return annotations


def _read_choices(path: Path | None) -> dict[QuestionId, Sequence[str]] | None:
    """The allowed answers by question where the task is multiple choice; None where it is not."""
    value = read_json(path) if path is not None else None
    if path is None or not isinstance(value, dict) or value.get("task_type") != "Multiple Choice":
        return None
    rows = [(f"questions[{index}]", row) for index, row in enumerate(value.get("questions", ()))]
    return {
        row["question_id"]: row["multiple_choices"] for _, row in records(path, rows, "question_id", "multiple_choices")
    }


def _score_results(
    path: Path,
    annotations: Mapping[QuestionId, dict[str, Any]],
    choices: Mapping[QuestionId, Sequence[str]] | None,
) -> _Answered:
    """Score one results file; of two results for a question the last one counts. Changes the annotations' answers."""
    results: dict[QuestionId, tuple[str, float]] = {}
    rows = read_array(path, '{"question_id", "answer", "confidence"}')
    for place, row in records(path, rows, "question_id", "answer", "confidence"):
        qid, answer = id_of(path, place, row, "question_id"), text_of(path, place, row, "answer")
        if qid not in annotations:
            raise DataError(path, f"no annotation has the question_id {qid!r}", place)
        if choices is not None and answer not in choices.get(qid, ()):
            raise DataError(path, f"{answer!r} is not one of the question's choices", f"{place}.answer")
        results[qid] = (answer, _confidence(path, place, row["confidence"]))
    if not results:
        raise DataError(path, "the file holds no results")
    ids = _in_set_order(list(results))
    accuracies = [_accuracy(results[qid][0], annotations[qid]["answers"]) for qid in ids]
    return _Answered(ids, accuracies, [results[qid][1] for qid in ids])


def _confidence(path: Path, place: str, value: object) -> float:
    try:
        confidence = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        raise DataError(path, f"expected a number, and this is {kind_of(value)}", f"{place}.confidence") from error
    if math.isnan(confidence):
        raise DataError(path, "the confidence is not a number (NaN) and cannot be ordered", f"{place}.confidence")
    return confidence


def _in_set_order(ids: list[QuestionId]) -> list[QuestionId]:
    """The order in which the original walks the results: a set's, which for numbers is the same every time.

    It decides which of several questions of equal accuracy gives the threshold of best_cov@r. For ids that are texts
    the original's order changes from run to run; theirs is the file's here.
    """
    return list(set(ids)) if all(isinstance(qid, int) for qid in ids) else ids


def _accuracy(answer: str, people: list[dict[str, Any]]) -> float:
    """The VQA accuracy as the original has it. Changes the answers of `people` in place, as the original does."""
    for record in people:
        record["answer"] = strip3(record["answer"])
    said = strip3(answer)
    if len({record["answer"] for record in people}) > 1:
        for record in people:
            record["answer"] = _normalised(record["answer"])
        said = _normalised(said)
    marks = []
    for left_out in people:
        matches = sum(record["answer"] == said for record in people if record != left_out)
        marks.append(min(1.0, matches / _FULL_MARKS))
    return mean(marks)


def _normalised(text: str) -> str:
    return words3(process_punctuation(text))


def _by_type(
    annotations: Mapping[QuestionId, dict[str, Any]], accuracies: Mapping[QuestionId, float], name: str
) -> dict[str, float]:
    """The mean accuracy by the annotations' own types, in percent to two places. The original does not give it."""
    groups: dict[str, list[float]] = defaultdict(list)
    for qid, accuracy in accuracies.items():
        if name in annotations[qid]:
            groups[annotations[qid][name]].append(accuracy)
    return {group: round(100 * mean(values), 2) for group, values in groups.items()}
