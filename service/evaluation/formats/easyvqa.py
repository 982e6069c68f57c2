"""easy-VQA: an array of [question, answer, picture's number], pictures in `images/NUMBER.png` (vzhou842/easy-VQA)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from service.errors import DataError
from service.evaluation.formats.base import Pairs, Sources, json_bytes, picture_name, said
from service.evaluation.records import Example
from service.scoring.files import read_json, write_whole
from service.scoring.scores import QuestionId

_PICTURE: Final = "{image}.png"
_NEGATIONS: Final = frozenset(("no", "not"))


class EasyVqaFormat:
    """A question is known by its place in the array, from 0."""

    def load(self, sources: Sources) -> list[Example]:
        """As `Format.load`."""
        path = sources.only_file()
        folder = sources.folder(path)
        template = sources.image_name or _PICTURE
        examples = []
        for index, row in enumerate(_rows(path)):
            question, answer, number = row
            name = picture_name(path, f"[{index}]", template, {"image": number})
            kind = question_type(question)
            examples.append(Example(index, folder / name, question, (answer,), None, kind, {"picture": str(number)}))
        return examples

    def results(self, pairs: Pairs) -> bytes:
        """[{"question_id", "answer"}]."""
        return json_bytes([{"question_id": e.question_id, "answer": said(p)} for e, p in pairs])

    def answerability(self, pairs: Pairs) -> bytes | None:  # noqa: ARG002 - the protocol's
        """No such task."""
        return None

    def select(self, sources: Sources, examples: list[Example], folder: Path) -> Sources:
        """As `Format.select`; questions get other places there, and so other ids."""
        rows = _rows(sources.only_file())
        file = folder / "questions.json"
        write_whole(file, json_bytes([rows[int(example.question_id)] for example in examples]))
        return sources.at(file)

    def accuracies(self, per_question: Mapping[QuestionId, float], pairs: Pairs) -> dict[QuestionId, float]:
        """By place."""
        ids = [example.question_id for example, _ in pairs]
        return dict(zip(ids, per_question.values(), strict=True))


def question_type(question: str) -> str:
    """The kind of a question: colour, shape, or yes/no, plain or negated."""
    words = question.replace("?", "").split()
    if words[:1] == ["what"]:
        return "colour" if "color" in words else "shape"
    return "yes/no negated" if _NEGATIONS & set(words) else "yes/no"


def _rows(path: Path) -> list[Any]:
    rows = read_json(path)
    if not isinstance(rows, list) or not rows:
        raise DataError(path, "it must be an array with at least one [question, answer, picture's number]")
    for index, row in enumerate(rows):
        match row:
            case [str(), str(), int() | str()]:
                pass
            case _:
                raise DataError(path, "it must be [question, answer, picture's number]", f"[{index}]")
    return rows
