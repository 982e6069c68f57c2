"""One's own questions: JSON Lines with a picture, a question and the answers of people.

    annotations   {"image", "question", "answers": [text, …], "question_id"?, "answer_type"?, "question_type"?}
    results       [{"question_id", "answer"}]

A question without `question_id` is known by the number of its line. Where there are several answers the score is VQA
accuracy with the annotators told apart by position; a single answer is matched exactly, both sides normalised, whatever
the code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from service.answers import normalise
from service.answers.accuracy import FULL_MARKS
from service.errors import DataError
from service.files import read_rows
from service.scoring.rows import id_of, records, text_of
from service.scoring.rules import comparison
from service.scoring.scores import Inputs, QuestionId, Scores
from service.scoring.vqa import Loaded, question_accuracies, summary
from service.scoring.vqa_format import Annotations, check_same_questions, only_these, read_results


def score(inputs: Inputs) -> Scores:
    """Score a results file against one's own annotations.

    Raises:
        DataError: the files do not fit together, or one is broken.
    """
    rows = [
        {**row, "answers": [{"answer": answer, "answer_id": number} for number, answer in enumerate(row["answers"], 1)]}
        for row in read_questions(inputs.annotations).values()
    ]
    annotations = Annotations(inputs.annotations, rows, {row["question_id"]: row for row in rows})
    results = read_results(inputs.results)
    check_same_questions(annotations, results)
    if inputs.question_ids is not None:
        annotations = only_these(annotations, inputs.question_ids)
    loaded, compared = Loaded(annotations, results, None), comparison(inputs.code)
    accuracies = question_accuracies(loaded, compared)
    for index, row in enumerate(annotations.rows):
        if len(row["answers"]) == 1:
            said = results.rows[row["question_id"]]["answer"]
            accuracies[index] = float(normalise(said) == normalise(row["answers"][0]["answer"]))
    scores = summary(loaded, accuracies, compared, inputs, "jsonl")
    few = sum(1 < len(row["answers"]) <= FULL_MARKS for row in annotations.rows)
    if not few:
        return scores
    note = (
        f"{few} questions have two or three answers, where even full agreement scores 33 or 67 %; four give full marks"
    )
    return replace(scores, notes=(*scores.notes, note))


def read_questions(path: Path) -> Mapping[QuestionId, dict[str, Any]]:
    """The rows by question id, checked; each has `question_id`, `image`, `question` and `answers`.

    Raises:
        DataError: a row is none, lacks something, or has the id of another.
    """
    found: dict[QuestionId, dict[str, Any]] = {}
    places: dict[QuestionId, str] = {}
    for number, (place, row) in enumerate(records(path, read_rows(path), "image", "question", "answers"), 1):
        for name in ("image", "question"):
            if not text_of(path, place, row, name):
                raise DataError(path, "the text is empty", f"{place}.{name}")
        answers = row["answers"]
        if not isinstance(answers, list) or not answers or not all(isinstance(answer, str) for answer in answers):
            raise DataError(path, "expected texts, one at least", f"{place}.answers")
        qid = id_of(path, place, row, "question_id") if "question_id" in row else number
        if qid in found:
            raise DataError(path, f"question_id {qid!r} is that of {places[qid]}, too", place)
        found[qid], places[qid] = {**row, "question_id": qid}, place
    if not found:
        raise DataError(path, "there are no questions in it")
    return found
