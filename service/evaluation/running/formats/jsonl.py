"""One's own questions, a JSON object a line; whatever else a row says may be selected by."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

from service.evaluation.records import Example
from service.evaluation.running.formats.base import (
    Pairs,
    PlainFormat,
    Sources,
    ascii_json,
    check_distinct,
    extra_texts,
    json_lines,
    picture_name,
    said,
    type_at,
)
from service.scoring.jsonl import read_questions
from service.scoring.scores import QuestionId

Rows = Mapping[QuestionId, dict[str, Any]]

_KNOWN: Final = ("question_id", "image", "question", "answer_type", "question_type")


class JsonlFormat(PlainFormat):
    """Pictures are named from the folder that is given, else from the file's folder or `images` in it."""

    def read(self, sources: Sources) -> Rows:
        """As `Format.read`."""
        return read_questions(sources.only_file())

    def examples(self, sources: Sources, content: Rows) -> list[Example]:
        """As `Format.examples`."""
        path = sources.only_file()
        folders = [sources.images] if sources.images else [path.parent]
        if not sources.images and (path.parent / "images").is_dir():
            folders.append(path.parent / "images")
        template = sources.image_name or "{image}"
        examples = []
        for question_id, row in content.items():
            place = f"question {question_id!r}"
            name = picture_name(path, place, template, row)
            folder = next((each for each in folders[:-1] if os.path.lexists(each / name)), folders[-1])
            examples.append(
                Example(
                    question_id,
                    folder / name,
                    row["question"],
                    tuple(row["answers"]),
                    type_at(path, place, row, "answer_type"),
                    type_at(path, place, row, "question_type"),
                    extra_texts(row, *_KNOWN),
                )
            )
        check_distinct(path, ((f"question {e.question_id!r}", e.question_id) for e in examples))
        return examples

    def results(self, pairs: Pairs) -> bytes:
        """[{"question_id", "answer"}]."""
        return ascii_json([{"question_id": e.question_id, "answer": said(p)} for e, p in pairs])

    def part(self, content: Rows, examples: Sequence[Example]) -> dict[str, bytes]:
        """As `Format.part`; each row gets its `question_id`, which by default is a line's number."""
        return {"annotations.jsonl": json_lines(content[example.question_id] for example in examples)}
