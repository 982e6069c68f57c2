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
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from service.answers.accuracy import Rule
from service.errors import DataError
from service.scoring.chains import strip3
from service.scoring.reliability import choose_thresholds, effective_reliability, risk_coverage
from service.scoring.reliable_vqa_text import chain
from service.scoring.rounding import per_type, percent_rounded
from service.scoring.rows import kind_of
from service.scoring.rules import Accuracy, Comparison
from service.scoring.scores import Inputs, QuestionId, Scores
from service.scoring.vqa_format import (
    Annotations,
    Questions,
    check_choices,
    column,
    explain,
    read_annotations,
    read_questions,
    read_results,
    some,
)

_COMPARED: Final = Comparison(Rule(chain, chain, strip3, strip3, strip3), True, percent_rounded)


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
    annotations = read_annotations(inputs.annotations)
    questions = None if inputs.questions is None else read_questions(inputs.questions)
    walk = _Walk(annotations, questions if questions is not None and questions.multiple_choice else None)
    results = walk.score(inputs.results)
    if len(results.ids) < 2:
        raise DataError(inputs.results, "the risk-coverage curve needs two results at least, and there is one")
    figures: dict[str, Any] = {
        "vqa_accuracy": percent_rounded(results.accuracies),
        **risk_coverage(results.confidences, results.accuracies),
    }
    lines, notes = [], []
    if inputs.thresholds is None:
        notes.append("effective reliability (phi) is left out: it needs a results file to choose the thresholds on")
    else:
        chosen_on = walk.score(inputs.thresholds)
        thresholds = choose_thresholds(chosen_on.confidences, chosen_on.accuracies)
        figures |= effective_reliability(results.confidences, results.accuracies, thresholds)
        lines = ["Chosen thresholds for effective reliability:"]
        lines += [f"Cost: {cost}, Threshold: {threshold}" for cost, threshold in thresholds.items()]
    lines += json.dumps(figures, sort_keys=True, indent=4).splitlines()
    by_id = dict(zip(results.ids, results.accuracies, strict=True))
    rows = [row for key, row in annotations.by_id.items() if key in by_id]
    accuracies = [by_id[row["question_id"]] for row in rows]
    return Scores(
        dataset="reliable-vqa",
        accuracy=figures["vqa_accuracy"],
        questions=len(results.ids),
        per_answer_type=per_type(accuracies, column(rows, "answer_type"), percent_rounded),
        per_question_type=per_type(accuracies, column(rows, "question_type"), percent_rounded),
        metrics=figures,
        per_question={row["question_id"]: value for row, value in zip(rows, accuracies, strict=True)},
        official=tuple(lines),
        notes=tuple(notes),
    )


class _Walk:
    """The original's way through results files: it writes normal forms over people's answers as it goes.

    Args:
        annotations: what people said.
        questions: the allowed answers, where the task is multiple choice.
    """

    def __init__(self, annotations: Annotations, questions: Questions | None) -> None:
        self._annotations, self._questions = annotations, questions
        self._people = {key: row["answers"] for key, row in annotations.by_id.items()}
        self._accuracy = Accuracy(_COMPARED)

    def score(self, path: Path) -> _Answered:
        """Score one results file; of two results for a question the last one counts."""
        results = read_results(path)
        if not results.rows:
            raise DataError(path, "the file holds no results")
        strange = [key for key in results.rows if key not in self._people]
        if strange:
            raise DataError(path, f"{len(strange)} answered are not in {self._annotations.path} ({some(strange)})")
        if self._questions is not None:
            check_choices(self._questions, results)
        confidences = {key: _confidence(path, key, row) for key, row in results.rows.items()}
        ids = _in_set_order(list(results.rows))
        try:
            accuracies = [self._score(key, results.rows[key]["answer"]) for key in ids]
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            raise explain(self._annotations, results) from error
        return _Answered(ids, accuracies, [confidences[key] for key in ids])

    def _score(self, key: QuestionId, answer: str) -> float:
        people = self._people[key]
        accuracy = self._accuracy(answer, people)
        self._people[key] = self._accuracy.left_behind(people)
        return accuracy


def _confidence(path: Path, key: QuestionId, row: Mapping[str, Any]) -> float:
    """The row's confidence; texts that are numbers are taken, as in the original."""
    value = row.get("confidence")
    try:
        confidence = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError) as error:
        what = f"the confidence of question {key!r} must be a number, and is {kind_of(value)}"
        raise DataError(path, what) from error
    if math.isnan(confidence):
        raise DataError(path, f"the confidence of question {key!r} is not a number (NaN) and cannot be ordered")
    return confidence


def _in_set_order(ids: list[QuestionId]) -> list[QuestionId]:
    """The order in which the original walks the results: a set's, which for numbers is the same every time.

    It decides which of several questions of equal accuracy gives the threshold of best_cov@r. For ids that are texts
    the original's order changes from run to run; theirs is the file's here.
    """
    return list(set(ids)) if all(isinstance(qid, int) for qid in ids) else ids
