"""easy-VQA: an array of [question, answer, picture's number], pictures in `images/NUMBER.png` (vzhou842/easy-VQA)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from service.evaluation.records import Example, Prediction
from service.evaluation.running.formats.base import Pairs, PlainFormat, Sources, ascii_json, picture_name, said
from service.scoring.easyvqa import Question, read_questions
from service.scoring.scores import QuestionId

_PICTURE: Final = "{image}.png"


class EasyVqaFormat(PlainFormat):
    """A question is known by its place in the array, from 0."""

    def read(self, sources: Sources) -> list[Question]:
        """As `Format.read`."""
        return read_questions(sources.only_file())

    def examples(self, sources: Sources, content: list[Question]) -> list[Example]:
        """As `Format.examples`."""
        path = sources.only_file()
        folder = sources.folder(path)
        template = sources.image_name or _PICTURE
        examples = []
        for index, row in enumerate(content):
            name = picture_name(path, f"[{index}]", template, {"image": row.image_id})
            extra = {"picture": str(row.image_id)}
            answers = (row.answer,)
            examples.append(
                Example(index, folder / name, row.question, answers, row.answer_type, row.question_type, extra)
            )
        return examples

    def results(self, pairs: Pairs) -> bytes:
        """[{"question_id", "answer"}], where an id is a place among the questions that were asked."""
        return ascii_json([{"question_id": index, "answer": said(p)} for index, (_, p) in enumerate(pairs)])

    def part(self, content: list[Question], examples: Sequence[Example]) -> dict[str, bytes]:
        """As `Format.part`; questions get other places there, and so other ids."""
        asked = [content[int(example.question_id)] for example in examples]
        return {"questions.json": ascii_json([[row.question, row.answer, row.image_id] for row in asked])}

    def official(self, per_question: Mapping[QuestionId, float], pairs: Pairs) -> Iterator[tuple[Prediction, float]]:
        """By place."""
        return ((prediction, per_question[index]) for index, (_, prediction) in enumerate(pairs))
