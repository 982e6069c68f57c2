"""What every format has: where its files lie, how its pictures are named, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from service.errors import DataError
from service.evaluation.records import Example, Prediction
from service.scoring.rows import kind_of
from service.scoring.scores import QuestionId

Pairs = Iterable[tuple[Example, Prediction]]


class NoFileError(Exception):
    """A file of a data set is not given, or one too many; the message names the option."""


@dataclass(frozen=True)
class Sources:
    """Where a data set lies.

    Attributes:
        questions, annotations: its files; where a format has one file, either.
        images: the folder of its pictures; None takes `images` beside the file where there is one, else its folder.
        image_name: a picture's name, with fields in braces; None takes the format's own.
    """

    questions: Path | None = None
    annotations: Path | None = None
    images: Path | None = None
    image_name: str | None = None

    @property
    def files(self) -> dict[str, Path]:
        """The files by what they are."""
        named = {"questions": self.questions, "annotations": self.annotations}
        return {name: path for name, path in named.items() if path is not None}

    def only_file(self) -> Path:
        """The file of a format that has one.

        Raises:
            NoFileError: none is given, or two are.
        """
        files = set(self.files.values())
        if len(files) != 1:
            which = "instead of two" if files else "and none is given"
            raise NoFileError(f"one file holds this data set, {which}; give it with --annotations")
        return files.pop()

    def folder(self, file: Path) -> Path:
        """The folder of the pictures."""
        beside = file.parent / "images"
        return self.images or (beside if beside.is_dir() else file.parent)

    def within(self, folder: Path, names: Iterable[str]) -> Sources:
        """The same with other files, by their names in a folder."""
        files = {Path(name).stem: folder / name for name in names}
        return replace(self, questions=files.get("questions"), annotations=files.get("annotations"))


class Format(Protocol):
    """How a data set is read and its results are written."""

    def read(self, sources: Sources) -> Any:
        """What its files hold; large files are read this once.

        Raises:
            DataError: a file is missing or broken.
            NoFileError: one is not given.
        """

    def examples(self, sources: Sources, content: Any) -> list[Example]:
        """Its questions, in the order of the annotations.

        Args:
            sources: where it lies.
            content: what `read` gave.

        Raises:
            DataError: a question cannot be asked, or is there twice.
        """

    def results(self, pairs: Pairs) -> bytes:
        """The answers in the results format; "" where there is none."""

    def answerability(self, pairs: Pairs) -> bytes | None:
        """The results of the answerability task; None where the data set has no such task."""

    def part(self, content: Any, examples: Sequence[Example]) -> dict[str, bytes]:
        """The files of these examples alone, by name; a name begins as the field of `Sources` that it is for."""

    def accuracies(self, per_question: Mapping[QuestionId, float], pairs: Pairs) -> dict[QuestionId, float]:
        """The accuracy of each question, 0 to 1, from what the evaluator says of single questions.

        A question without an answer has 0, even where the evaluator takes the empty text for a right answer.
        """

    def notes(self, per_question: Mapping[QuestionId, float], pairs: Pairs) -> list[str]:
        """Where the evaluator's numbers take a question without an answer for more than that."""


class PlainFormat:
    """What most formats do alike."""

    def answerability(self, pairs: Pairs) -> bytes | None:  # noqa: ARG002 - the protocol's
        """No such task."""
        return None

    def official(self, per_question: Mapping[QuestionId, float], pairs: Pairs) -> Iterator[tuple[Prediction, float]]:
        """Each prediction with what the evaluator says of its question."""
        return ((prediction, per_question[example.question_id]) for example, prediction in pairs)

    def accuracies(self, per_question: Mapping[QuestionId, float], pairs: Pairs) -> dict[QuestionId, float]:
        """As `Format.accuracies`."""
        return {
            prediction.question_id: 0.0 if prediction.answer is None else accuracy
            for prediction, accuracy in self.official(per_question, pairs)
        }

    def notes(self, per_question: Mapping[QuestionId, float], pairs: Pairs) -> list[str]:
        """As `Format.notes`: how many questions an empty answer is right for."""
        found = sum(p.answer is None and accuracy > 0 for p, accuracy in self.official(per_question, pairs))
        if not found:
            return []
        return [f"questions without an answer that these numbers take for right, as the empty text is: {found:,}"]


def ascii_json(value: Any) -> bytes:
    """A value as a JSON file for evaluators elsewhere, which may read it in any encoding: ASCII."""
    return json.dumps(value).encode() + b"\n"


def json_lines(rows: Iterable[Any]) -> bytes:
    """Values as JSON Lines."""
    return b"".join(ascii_json(row) for row in rows)


def said(prediction: Prediction) -> str:
    """The answer as results files hold it: "" where the service abstained or failed."""
    return prediction.answer or ""


def extra_texts(row: Mapping[str, Any], *known: str) -> dict[str, str]:
    """What a row says beside what is known of it, as texts to select by; lists and objects are left out."""
    return {
        name: json.dumps(value) if isinstance(value, bool) else str(value)
        for name, value in row.items()
        if name not in known and isinstance(value, str | int | float)
    }


def picture_name(path: Path, place: str, template: str, fields: Mapping[str, Any]) -> str:
    """A picture's name by a template such as `COCO_val2014_{image_id:012d}.jpg`.

    Raises:
        DataError: the template asks for what the row does not have.
    """
    try:
        return template.format_map(fields)
    except (KeyError, IndexError, AttributeError, TypeError, ValueError) as error:
        what = f"its picture cannot be named by {template!r} ({type(error).__name__}: {error}); see --image-name"
        raise DataError(path, what, place) from error


def text_at(path: Path, place: str, row: Any, name: str) -> str:
    """The text under a key.

    Raises:
        DataError: the row is no object, or there is no text.
    """
    if not isinstance(row, dict):
        raise DataError(path, "it must be an object", place)
    if not isinstance(row.get(name), str):
        raise DataError(path, "it must be a text" if name in row else "it is missing", f"{place}.{name}")
    return str(row[name])


def type_at(path: Path, place: str, row: Mapping[str, Any], name: str) -> str | None:
    """The type under a key; None where there is none.

    Raises:
        DataError: it is there and no text.
    """
    value = row.get(name)
    if value is not None and not isinstance(value, str):
        raise DataError(path, f"it must be a text, and is {kind_of(value)}", f"{place}.{name}")
    return value


def check_distinct(path: Path, ids: Iterable[tuple[str, QuestionId]]) -> None:
    """Refuse a question id that is there twice; the number 7 and the text "7" are the same in a table.

    Raises:
        DataError: with both places.
    """
    seen: dict[str, str] = {}
    for place, question_id in ids:
        if str(question_id) in seen:
            what = f"question {question_id!r} is there twice, also at {seen[str(question_id)]}"
            raise DataError(path, what, place)
        seen[str(question_id)] = place
