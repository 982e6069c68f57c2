"""One's own questions: JSON Lines with a picture, a question and the answers of people.

    annotations   {"image", "question", "answers": [text, …], "question_id"?, "answer_type"?, "question_type"?}
    results       [{"question_id", "answer"}]

A question without `question_id` is known by the number of its line. Where there are several answers the score is VQA
accuracy with the annotators told apart by position; a single answer is matched exactly after normalisation.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from service.errors import DataError
from service.files import read_rows as read_file_rows
from service.scoring.rows import id_of
from service.scoring.scores import Inputs, QuestionId, Scores
from service.scoring.vqa import Loaded, score_loaded
from service.scoring.vqa_format import Annotations, check_same_questions, only_these, read_results

_EXACT_COPIES = 4  # so many equal annotators make a match full marks and anything else none


def score(inputs: Inputs) -> Scores:
    """Score a results file against one's own annotations.

    Raises:
        DataError: the files do not fit together, or one is broken.
    """
    rows = list(read_rows(inputs.annotations).values())
    for row in rows:
        answers = row["answers"] * _EXACT_COPIES if len(row["answers"]) == 1 else row["answers"]
        row["answers"] = [{"answer": answer, "answer_id": number} for number, answer in enumerate(answers, 1)]
    annotations = Annotations(inputs.annotations, rows, {row["question_id"]: row for row in rows})
    results = read_results(inputs.results)
    check_same_questions(annotations, results)
    if inputs.question_ids is not None:
        annotations = only_these(annotations, inputs.question_ids)
    return score_loaded(Loaded(annotations, results, None), inputs, "jsonl")


def read_rows(path: Path) -> Mapping[QuestionId, dict[str, Any]]:
    """The rows by question id, checked; each has `question_id`, `image`, `question` and `answers`.

    Raises:
        DataError: a row is none, lacks something, or has the id of another.
    """
    found: dict[QuestionId, dict[str, Any]] = {}
    places: dict[QuestionId, str] = {}
    for number, (place, row) in enumerate(read_file_rows(path), 1):
        if not isinstance(row, dict):
            raise DataError(path, "must be an object", place)
        for key in ("image", "question"):
            if not isinstance(row.get(key), str) or not row[key]:
                raise DataError(path, f'must have a text under "{key}"', place)
        answers = row.get("answers")
        if not isinstance(answers, list) or not answers or not all(isinstance(answer, str) for answer in answers):
            raise DataError(path, 'must have a list of texts under "answers"', place)
        qid = id_of(path, place, row, "question_id") if "question_id" in row else number
        if qid in found:
            raise DataError(path, f"question_id {qid!r} is that of {places[qid]}, too", place)
        found[qid], places[qid] = {**row, "question_id": qid}, place
    if not found:
        raise DataError(path, "there are no questions in it")
    return found
