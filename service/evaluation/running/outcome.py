"""What came of a run: counts and scores of each view, the results files, the table."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from service.evaluation.records import Example, Prediction, Scored
from service.evaluation.running.datasets import DataSet
from service.evaluation.running.journal import Journal
from service.evaluation.running.run_files import RunFiles
from service.evaluation.running.table import write_table
from service.files import json_bytes, write_whole
from service.scoring.scores import Scores


@dataclass(frozen=True)
class Counts:
    """How many questions of a view were asked, and what became of them.

    Attributes:
        answered, abstained, failed: they add up to `asked`.
        unanswerable: those of the answered that say the question cannot be answered.
        failed_by_code: the failures by their code, most frequent first.
        mean_confidence: of the answered that have one, 0 to 1; None where none has.
    """

    asked: int
    answered: int
    unanswerable: int
    abstained: int
    failed: int
    failed_by_code: Mapping[str, int]
    mean_confidence: float | None


@dataclass(frozen=True)
class ViewOutcome:
    """A view's counts and its scores by the official evaluator."""

    counts: Counts
    scores: Scores


def count(predictions: Iterable[Prediction]) -> Counts:
    """Count what became of questions."""
    asked = abstained = unanswerable = sure = 0
    confidence = 0.0
    codes: Counter[str] = Counter()
    for prediction in predictions:
        asked += 1
        if prediction.error is not None:
            codes[prediction.error] += 1
            continue
        if prediction.abstained:
            abstained += 1
            continue
        unanswerable += prediction.answerable is False
        if prediction.confidence is not None:
            sure += 1
            confidence += prediction.confidence
    failed = codes.total()
    mean = confidence / sure if sure else None
    answered = asked - abstained - failed
    return Counts(asked, answered, unanswerable, abstained, failed, dict(codes.most_common()), mean)


def write_outcome(
    folder: RunFiles,
    data: DataSet,
    journals: Mapping[str, Journal],
    *,
    code: str,
    facts: Mapping[str, Any],
    speed: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    """Score every view and write all files of the outcome, each whole or not at all.

    Args:
        folder: where they go.
        data: the data set as it was asked.
        journals: the answers by view; complete.
        code: which version of the VQA code scores.
        facts: what the run was; JSON values.
        speed: by view, how many questions this start of the run asked, and how fast; JSON values.

    Returns:
        What `evaluation.json` holds.

    Raises:
        DataError: a file cannot be written, or the evaluator refuses one.
    """
    files = data.scoring_files(folder.selection)
    outcomes: dict[str, ViewOutcome] = {}
    for view, journal in journals.items():
        # Read anew each time: the predictions of a large set are many.
        write_whole(folder.results(view), data.format.results(_pairs(data.examples, journal)))
        answerability = data.format.answerability(_pairs(data.examples, journal))
        if answerability is not None:
            write_whole(folder.answerability(view), answerability)
        given = None if answerability is None else folder.answerability(view)
        scores = data.score(files, folder.results(view), given, code)
        notes = data.format.notes(scores.per_question, _pairs(data.examples, journal))
        scores = dataclasses.replace(scores, notes=(*scores.notes, *notes))
        outcomes[view] = ViewOutcome(count(prediction for _, prediction in _pairs(data.examples, journal)), scores)
    # Ids beyond 64 bits are texts in the table.
    numbers = all(isinstance(e.question_id, int) and abs(e.question_id) < 1 << 63 for e in data.examples)
    write_table(folder.parquet, _rows(data, journals, outcomes), ids_are_numbers=numbers)
    document = {
        "dataset": data.name,
        "code": code,
        "run": dict(facts),
        "views": {view: _document(outcome, speed.get(view, {})) for view, outcome in outcomes.items()},
    }
    write_whole(folder.evaluation, json_bytes(document, indent=2))
    return document


def _document(outcome: ViewOutcome, speed: Mapping[str, Any]) -> dict[str, Any]:
    counts = dataclasses.asdict(outcome.counts)
    mean_confidence = counts.pop("mean_confidence")
    scores = outcome.scores.document()
    return {"counts": counts, "mean_confidence": mean_confidence, "speed": dict(speed), "scores": scores}


def _pairs(examples: Sequence[Example], journal: Journal) -> Iterator[tuple[Example, Prediction]]:
    for example in examples:
        prediction = journal.get(example.question_id)
        if prediction is None:
            raise AssertionError(f"question {example.question_id} was never asked")
        yield example, prediction


def _rows(
    data: DataSet, journals: Mapping[str, Journal], outcomes: Mapping[str, ViewOutcome]
) -> Iterator[tuple[str, Scored]]:
    for view, journal in journals.items():
        scores = outcomes[view].scores
        accuracy = data.format.accuracies(scores.per_question, _pairs(data.examples, journal))
        for example, prediction in _pairs(data.examples, journal):
            yield view, Scored(example, prediction, accuracy[example.question_id])
