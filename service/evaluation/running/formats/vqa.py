"""The official VQA format: VQA v1 and v2, OK-VQA, TextVQA, VQA-CP, AdVQA."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from service.errors import DataError
from service.evaluation.records import Example
from service.evaluation.running.formats.base import (
    NoFileError,
    Pairs,
    PlainFormat,
    Sources,
    ascii_json,
    check_distinct,
    extra_texts,
    picture_name,
    said,
    text_at,
    type_at,
)
from service.scoring.scores import QuestionId
from service.scoring.vqa_format import Annotations, Questions, read_annotations, read_questions

Content = tuple[Questions, Annotations]

_KNOWN: Final = ("question_id", "question", "question_type", "answer_type")
_COCO: Final = "mscoco"


class VqaFormat(PlainFormat):
    """Questions and annotations in two files, or both in one where a row holds both (TextVQA)."""

    def read(self, sources: Sources) -> Content:
        """As `Format.read`."""
        if sources.annotations is None:
            raise NoFileError("the annotations are missing; give them with --annotations")
        annotations = read_annotations(sources.annotations)
        if sources.questions is None and not isinstance(annotations.rows[0].get("question"), str):
            raise NoFileError(f"{sources.annotations} holds no questions; give them with --questions")
        return read_questions(sources.questions or sources.annotations), annotations

    def examples(self, sources: Sources, content: Content) -> list[Example]:
        """As `Format.examples`."""
        questions, annotations = content
        if questions.multiple_choice:
            raise DataError(questions.path, "multiple-choice questions are not asked; give the open-ended ones")
        for path, ids in ((questions.path, questions.ids), (annotations.path, _ids(annotations))):
            places = [(f"[{index}]", question_id) for index, question_id in enumerate(ids)]
            check_distinct(path, places)
        missing = [row["question_id"] for row in annotations.rows if row["question_id"] not in questions.rows]
        if missing:
            what = f"{len(missing)} annotated questions are not in {questions.path} (question {missing[0]!r})"
            raise DataError(annotations.path, what)
        folder = sources.folder(questions.path)
        heads = {**annotations.head, **questions.head}
        examples = []
        for row in annotations.rows:
            question_id = row["question_id"]
            asked = {**row, **questions.rows[question_id]}
            where = f"question {question_id!r}"
            text = text_at(questions.path, where, asked, "question")
            name = _name(questions.path, where, sources.image_name, heads, asked)
            examples.append(
                Example(
                    question_id,
                    folder / name,
                    text,
                    _answers(annotations.path, where, row),
                    type_at(annotations.path, where, row, "answer_type"),
                    type_at(annotations.path, where, row, "question_type"),
                    extra_texts(asked, *_KNOWN),
                )
            )
        return examples

    def results(self, pairs: Pairs) -> bytes:
        """[{"question_id", "answer"}]."""
        return ascii_json([{"question_id": e.question_id, "answer": said(p)} for e, p in pairs])

    def part(self, content: Content, examples: Sequence[Example]) -> dict[str, bytes]:
        """As `Format.part`."""
        questions, annotations = content
        rows = [annotations.by_id[example.question_id] for example in examples]
        asked = [questions.rows[example.question_id] for example in examples]
        return {
            "questions.json": ascii_json({**questions.head, "questions": asked}),
            "annotations.json": ascii_json({**annotations.head, "annotations": rows}),
        }


def _ids(annotations: Annotations) -> list[QuestionId]:
    return [row["question_id"] for row in annotations.rows]


def _answers(path: Path, where: str, row: Mapping[str, Any]) -> tuple[str, ...]:
    try:
        answers = tuple(answer["answer"] for answer in row["answers"])
    except (KeyError, TypeError) as error:
        raise DataError(path, 'it must be a list of objects with a text under "answer"', f"{where}.answers") from error
    if not answers or not all(isinstance(answer, str) for answer in answers):
        raise DataError(path, 'it must be a list of objects with a text under "answer"', f"{where}.answers")
    return answers


def _name(path: Path, where: str, template: str | None, heads: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    """A picture's name: by the template, or as the data set's own pictures are named.

    COCO of 2014 and 2015 is `COCO_val2014_000000000042.jpg`, of 2017 `000000000042.jpg`; the abstract scenes of VQA v1
    are `abstract_v002_val2015_000000000042.png`; TextVQA's ids are names. VQA-CP says the part of COCO in each row.
    """
    fields = {**heads, **row}
    if "image_id" not in row:
        raise DataError(path, "it is missing", f"{where}.image_id")
    subtype = row.get("coco_split") or heads.get("data_subtype")
    kind = _COCO if "coco_split" in row else heads.get("data_type")
    if template is None and isinstance(row["image_id"], str):
        template = "{image_id}.jpg"
    elif template is None and kind and subtype:
        fields |= {"data_subtype": subtype, "data_type": "COCO" if kind == _COCO else kind}
        template = "{data_type}_{data_subtype}_{image_id:012d}" + (".jpg" if kind == _COCO else ".png")
        if kind == _COCO and str(subtype).endswith("2017"):
            template = "{image_id:012d}.jpg"
    elif template is None:
        what = "the file does not say how its pictures are named; give --image-name 'COCO_val2014_{image_id:012d}.jpg'"
        raise DataError(path, what)
    return picture_name(path, where, template, fields)
