"""POPE: JSON Lines of {"question_id", "image", "text", "label"} (RUCAIBox/POPE)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from service.answers import normalise
from service.evaluation.records import Example
from service.evaluation.running.formats.base import (
    Pairs,
    PlainFormat,
    Sources,
    check_distinct,
    extra_texts,
    json_lines,
    picture_name,
    said,
    text_at,
)
from service.files import read_rows
from service.scoring.rows import id_of, records
from service.scoring.scores import QuestionId

Rows = list[tuple[str, QuestionId, dict[str, Any]]]
"""Place, id and row of each question."""

_KNOWN: Final = ("question_id", "image", "text")


class PopeFormat(PlainFormat):
    """A question without `question_id` is known by its place in the file, from 1."""

    def read(self, sources: Sources) -> Rows:
        """As `Format.read`."""
        path = sources.only_file()
        rows = records(path, read_rows(path), "image", "text", "label")
        return [
            (place, id_of(path, place, row, "question_id") if "question_id" in row else number, row)
            for number, (place, row) in enumerate(rows, 1)
        ]

    def examples(self, sources: Sources, content: Rows) -> list[Example]:
        """As `Format.examples`."""
        path = sources.only_file()
        folder = sources.folder(path)
        examples, places = [], []
        for place, question_id, row in content:
            name = text_at(path, place, row, "image")
            if sources.image_name is not None:
                name = picture_name(path, place, sources.image_name, row)
            question, label = text_at(path, place, row, "text"), text_at(path, place, row, "label")
            places.append((place, question_id))
            examples.append(
                Example(question_id, folder / name, question, (label,), "yes/no", extra=extra_texts(row, *_KNOWN))
            )
        check_distinct(path, places)
        return examples

    def results(self, pairs: Pairs) -> bytes:
        """A line each: {"question_id", "question", "answer"}."""
        return json_lines({"question_id": e.question_id, "question": e.question, "answer": said(p)} for e, p in pairs)

    def notes(self, per_question: Mapping[QuestionId, float], pairs: Pairs) -> list[str]:  # noqa: ARG002
        """As `Format.notes`: the official program reads no answer as a yes."""
        unanswered = neither = 0
        for _, prediction in pairs:
            unanswered += prediction.answer is None
            neither += prediction.answer is not None and normalise(prediction.answer) not in ("yes", "no")
        notes = []
        if unanswered:
            notes.append(
                f"questions without an answer, each of which is a yes in these numbers, as officially: {unanswered:,}"
            )
        if neither:
            notes.append(
                f"answers that are neither yes nor no (such as unanswerable), most of which count as a yes: {neither:,}"
            )
        return notes

    def part(self, content: Rows, examples: Sequence[Example]) -> dict[str, bytes]:
        """As `Format.part`."""
        rows = {question_id: {**row, "question_id": question_id} for _, question_id, row in content}
        return {"annotations.json": json_lines(rows[example.question_id] for example in examples)}
