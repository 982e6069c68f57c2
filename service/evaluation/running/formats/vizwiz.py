"""VizWiz: one array of {"image", "question", "answers", "answer_type", "answerable"}; a picture has one question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from service.errors import DataError
from service.evaluation.records import Example
from service.evaluation.running.formats.base import (
    Pairs,
    PlainFormat,
    Sources,
    ascii_json,
    extra_texts,
    picture_name,
    said,
    text_at,
    type_at,
)
from service.scoring.vqa_format import Annotations, read_image_rows

_KNOWN: Final = ("image", "question", "answer_type")


class VizWizFormat(PlainFormat):
    """A question is known by its picture's name."""

    def read(self, sources: Sources) -> Annotations:
        """As `Format.read`."""
        return read_image_rows(sources.only_file())

    def examples(self, sources: Sources, content: Annotations) -> list[Example]:
        """As `Format.examples`."""
        path = sources.only_file()
        folder = sources.folder(path)
        examples = []
        for index, row in enumerate(content.rows):
            place = f"[{index}]"
            image = text_at(path, place, row, "image")
            try:
                answers = tuple(str(answer["answer"]) for answer in row["answers"])
            except (KeyError, TypeError) as error:
                raise DataError(path, "it must be a list of objects with an answer", f"{place}.answers") from error
            name = picture_name(path, place, sources.image_name or "{image}", row)
            question = text_at(path, place, row, "question")
            kind = type_at(path, place, row, "answer_type")
            examples.append(Example(image, folder / name, question, answers, kind, extra=extra_texts(row, *_KNOWN)))
        return examples

    def results(self, pairs: Pairs) -> bytes:
        """[{"image", "answer"}]."""
        return ascii_json([{"image": e.question_id, "answer": said(p)} for e, p in pairs])

    def answerability(self, pairs: Pairs) -> bytes | None:
        """[{"image", "answerable"}], the probability that the question can be answered.

        Where a reply gives no probability, it is 1 or 0 by what the reply says, and 1 where it says nothing.
        """
        rows = []
        for example, prediction in pairs:
            answerable = prediction.answerability
            if answerable is None:
                answerable = float(prediction.answerable is not False)
            rows.append({"image": example.question_id, "answerable": answerable})
        return ascii_json(rows)

    def part(self, content: Annotations, examples: Sequence[Example]) -> dict[str, bytes]:
        """As `Format.part`."""
        return {"annotations.json": ascii_json([content.by_id[example.question_id] for example in examples])}
