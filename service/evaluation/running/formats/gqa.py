"""GQA: one object of questions by id, perhaps in chunks (dorarad/gqa)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from service.errors import DataError
from service.evaluation.records import Example, Prediction
from service.evaluation.running.formats.base import (
    Pairs,
    PlainFormat,
    Sources,
    ascii_json,
    extra_texts,
    picture_name,
    said,
    text_at,
)
from service.scoring.gqa_files import read_objects
from service.scoring.scores import QuestionId

_KNOWN: Final = ("question", "answer", "fullAnswer")
_PICTURE: Final = "{imageId}.jpg"


class GqaFormat(PlainFormat):
    """All questions are asked, those outside the balanced set too: consistency is over both."""

    def read(self, sources: Sources) -> dict[str, Any]:
        """As `Format.read`."""
        return read_objects(sources.only_file(), "questions")

    def examples(self, sources: Sources, content: dict[str, Any]) -> list[Example]:
        """As `Format.examples`; the question type is GQA's structural type."""
        path = sources.only_file()
        folder = sources.folder(path)
        examples = []
        for question_id, row in content.items():
            place = f"question {question_id}"
            question, answer = text_at(path, place, row, "question"), text_at(path, place, row, "answer")
            types = row.get("types")
            if not isinstance(types, dict):
                raise DataError(path, "it must be an object", f"{place}.types")
            name = picture_name(path, place, sources.image_name or _PICTURE, row)
            extra = extra_texts({**row, **types}, *_KNOWN)
            kind = text_at(path, f"{place}.types", types, "structural")
            examples.append(Example(question_id, folder / name, question, (answer,), None, kind, extra))
        return examples

    def results(self, pairs: Pairs) -> bytes:
        """[{"questionId", "prediction"}]."""
        return ascii_json([{"questionId": e.question_id, "prediction": said(p)} for e, p in pairs])

    def part(self, content: dict[str, Any], examples: Sequence[Example]) -> dict[str, bytes]:
        """As `Format.part`; a part has no consistency where it entails what was not asked, and the scores say so."""
        wanted = {str(example.question_id) for example in examples}
        return {"questions.json": ascii_json({key: row for key, row in content.items() if key in wanted})}

    def official(self, per_question: Mapping[QuestionId, float], pairs: Pairs) -> Iterator[tuple[Prediction, float]]:
        """By id; outside the balanced set, which is all that the evaluator scores, an answer is right word for word."""
        for example, prediction in pairs:
            if example.extra.get("isBalanced") == "true" or example.question_id in per_question:
                yield prediction, per_question[example.question_id]
            else:
                yield prediction, float(prediction.answer in example.answers)
