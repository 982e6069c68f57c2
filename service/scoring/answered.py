"""Results files of data sets whose every question is answered once: `[{"question_id", "answer"}]`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from service.errors import DataError
from service.scoring.rows import id_of, records, text_of
from service.scoring.scores import QuestionId
from service.scoring.vqa_format import check_covered

ID_NAMES = ("question_id", "questionId")


def id_name(path: Path, place: str, row: Mapping[str, Any]) -> str:
    """Under which key a row has its question id: `question_id`, or `questionId` as in DocVQA.

    Raises:
        DataError: the row has neither.
    """
    for name in ID_NAMES:
        if name in row:
            return name
    raise DataError(path, "the key 'question_id' is missing", place)


def answers_by_id(
    path: Path, rows: Iterable[tuple[str, Any]], wanted: Mapping[Any, Any], annotations: Path
) -> dict[QuestionId, str]:
    """The answers of a results file by question id.

    Args:
        path: the results file, for messages.
        rows: its rows with their places.
        wanted: the questions of the data set, by id.
        annotations: their file, for messages.

    Raises:
        DataError: a row is no answer, two are to one question, or the questions are not those wanted.
    """
    answers: dict[QuestionId, str] = {}
    for place, row in records(path, rows, "answer"):
        qid = id_of(path, place, row, id_name(path, place, row))
        if qid in answers:
            raise DataError(path, f"question {qid!r} is answered twice", place)
        answers[qid] = text_of(path, place, row, "answer")
    check_covered(wanted, answers, path, annotations)
    return answers
