"""The official VQA file formats, checked as the official loader does (GT-Vision-Lab/VQA, vqa.py), with places.

    questions     {"task_type": "Open-Ended" | "Multiple Choice", "data_type": "mscoco", "data_subtype": …,
                   "questions": [{"question_id", "image_id", "question", "multiple_choices"?}]}
    annotations   {"annotations": [{"question_id", "image_id", "question_type", "answer_type",
                   "answers": [{"answer", "answer_confidence", "answer_id"}]}]}
    results       [{"question_id", "answer"}]

VQA-CP has the inner lists without the outer object. TextVQA's own files have both parts in one, under "data", with
answers as plain texts.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from service.errors import DataError
from service.files import read_json
from service.scoring.rows import id_of, kind_of, records
from service.scoring.scores import QuestionId

MULTIPLE_CHOICE: Final = "Multiple Choice"
_SHOWN: Final = 3  # so many ids are named in a message; the rest is counted


@dataclass(frozen=True)
class Questions:
    """A questions file: its rows by id, what its head says, and all ids in the file's order."""

    path: Path
    rows: Mapping[QuestionId, Mapping[str, Any]]
    head: Mapping[str, Any]
    ids: Sequence[QuestionId] = ()

    @property
    def multiple_choice(self) -> bool:
        """Whether the answers must be among the question's choices."""
        return self.head.get("task_type") == MULTIPLE_CHOICE


@dataclass(frozen=True)
class Annotations:
    """An annotations file.

    Attributes:
        rows: in the file's order; a question that is there twice is there twice here, too.
        by_id: the last row of each question, which is the one that the official code looks at.
        head: the outer object without its rows; empty for a plain list.
        key: under which a row has its id.
        notes: what a reader should know about the file.
    """

    path: Path
    rows: Sequence[Mapping[str, Any]]
    by_id: Mapping[QuestionId, Mapping[str, Any]]
    head: Mapping[str, Any] = field(default_factory=dict)
    key: str = "question_id"
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Results:
    """A results file: the last row of each question, and what a reader should know about the rest."""

    path: Path
    rows: Mapping[QuestionId, Mapping[str, Any]]
    notes: tuple[str, ...] = ()


def read_questions(path: Path) -> Questions:
    """Read a questions file.

    Raises:
        DataError: it is none, or a row has no `question_id`.
    """
    rows, head, prefix = _inner(path, "questions")
    return Questions(path, _by_id(path, rows, prefix=prefix), head, [row["question_id"] for row in rows])


def read_annotations(path: Path) -> Annotations:
    """Read an annotations file.

    Raises:
        DataError: it is none, has no rows, or a row lacks `question_id`.
    """
    rows, head, prefix = _inner(path, "annotations")
    if not rows:
        raise DataError(path, "there are no annotations in it")
    by_id = _by_id(path, rows, prefix=prefix)
    answers = rows[0].get("answers")
    if isinstance(answers, list) and answers and isinstance(answers[0], str):
        rows = [_with_records(path, f"{prefix}[{index}]", row) for index, row in enumerate(rows)]
        by_id = {row["question_id"]: row for row in rows}
    return Annotations(path, rows, by_id, head)


def read_image_rows(path: Path) -> Annotations:
    """Read VizWiz' annotations: an array whose rows are known by their `image`.

    Raises:
        DataError: it is no array of objects, has none, or a row lacks `image`.
    """
    rows = read_json(path)
    if not isinstance(rows, list) or not rows:
        raise DataError(path, "it must be an array with at least one annotation")
    by_id = _by_id(path, rows, "image")
    return Annotations(path, list(by_id.values()), by_id, key="image", notes=_repeated(path, rows, by_id, "image"))


def read_results(path: Path, key: str = "question_id") -> Results:
    """Read a results file: an array of objects. Of two answers to one question the last counts, as officially.

    Raises:
        DataError: it is no array of objects, or a row lacks `key`.
    """
    rows = read_json(path)
    if not isinstance(rows, list):
        raise DataError(path, f"the results are not an array of objects but {kind_of(rows)}")
    by_id = _by_id(path, rows, key)
    return Results(path, by_id, _repeated(path, rows, by_id, key))


def check_same_questions(annotations: Annotations, results: Results) -> None:
    """The official check: every annotated question is answered, and no other.

    Raises:
        DataError: which questions are missing or strange.
    """
    check_covered(annotations.by_id, results.rows, results.path, annotations.path)


def check_covered(wanted: Mapping[Any, Any], given: Mapping[Any, Any], results: Path, annotations: Path) -> None:
    """Whether results hold exactly the wanted keys.

    Raises:
        DataError: which are missing or strange.
    """
    if given.keys() == wanted.keys():
        return
    missing = [key for key in wanted if key not in given]
    strange = [key for key in given if key not in wanted]
    faults = []
    if missing:
        faults.append(f"{len(missing)} of {len(wanted)} have no answer ({some(missing)})")
    if strange:
        faults.append(f"{len(strange)} answered are not in {annotations} ({some(strange)})")
    if {str(key) for key in strange} & {str(key) for key in missing}:
        faults.append("ids are texts in one file and numbers in the other")
    raise DataError(results, "the results are not those of this set: " + "; ".join(faults))


def only_these(annotations: Annotations, path: Path) -> Annotations:
    """The annotations of the question ids in a JSON array, in its order.

    Raises:
        DataError: it is no array of ids, is empty, or names a question that is not annotated.
    """
    ids = read_json(path)
    if not isinstance(ids, list) or not ids:
        raise DataError(path, "it must be an array with at least one question id")
    for index, key in enumerate(ids):
        if not isinstance(key, Hashable) or key not in annotations.by_id:
            raise DataError(path, f"question {key!r} is not in {annotations.path}", f"[{index}]")
    return replace(annotations, rows=[annotations.by_id[key] for key in ids])


def check_choices(questions: Questions, results: Results) -> None:
    """For multiple choice: each answer is one of its question's choices, letter for letter.

    Raises:
        DataError: the first answer that is none, or a question that is unknown or has no choices.
    """
    for key, row in results.rows.items():
        question = questions.rows.get(key)
        if question is None:
            raise DataError(questions.path, f"question {key!r} of {results.path} is not in it")
        choices = question.get("multiple_choices")
        if not isinstance(choices, list):
            raise DataError(questions.path, f"question {key!r} has no multiple_choices")
        if row.get("answer") not in choices:
            raise DataError(results.path, f"the answer to question {key!r} is none of its {len(choices)} choices")


def explain(annotations: Annotations, results: Results) -> DataError:
    """Which row of either file made the scoring fail."""
    for key, row in results.rows.items():
        if "answer" not in row:
            return DataError(results.path, f"question {key!r} has no answer")
        if not isinstance(row["answer"], str):
            return DataError(
                results.path, f"the answer to question {key!r} must be a text, and is {kind_of(row['answer'])}"
            )
    for row in annotations.rows:
        place, answers = f"{annotations.key} {row[annotations.key]!r}", row.get("answers")
        if not isinstance(answers, list) or not answers:
            return DataError(annotations.path, "its answers must be a list with one at least", place)
        for number, record in enumerate(answers):
            if not isinstance(record, dict) or not isinstance(record.get("answer"), str):
                what = f'answers[{number}] must be an object with a text under "answer"'
                return DataError(annotations.path, what, place)
    return DataError(annotations.path, "it cannot be scored")


def column(rows: Sequence[Mapping[str, Any]], key: str) -> list[str]:
    """A type of each row; empty where the row does not say."""
    return [kind if isinstance(kind := row.get(key), str) else "" for row in rows]


def some(keys: Sequence[object]) -> str:
    """A few of many keys, for a message."""
    named = ", ".join(repr(key) for key in keys[:_SHOWN])
    return named if len(keys) <= _SHOWN else f"{named}, …"


def _inner(path: Path, name: str) -> tuple[list[Any], dict[str, Any], str]:
    """Rows, head, and the rows' key, of a file that holds them under `name` (or TextVQA's "data"), or a plain list."""
    content = read_json(path)
    if isinstance(content, list):
        return content, {}, ""
    if isinstance(content, dict):
        for key in (name, "data"):
            if isinstance(content.get(key), list):
                return content[key], {k: v for k, v in content.items() if k != key}, key
    raise DataError(path, f'it must be an array, or an object with an array "{name}"')


def _by_id(path: Path, rows: Sequence[Any], key: str = "question_id", prefix: str = "") -> dict[QuestionId, Any]:
    """The last row of each id; the fast way first, and row by row where a row is none or an id is no id."""
    try:
        if {type(row[key]) for row in rows} <= {int, str}:
            return {row[key]: row for row in rows}
    except (KeyError, TypeError, IndexError):
        pass
    places = ((f"{prefix}[{index}]", row) for index, row in enumerate(rows))
    return {id_of(path, place, row, key): row for place, row in records(path, places, key)}


def _repeated(path: Path, rows: Sequence[Mapping[str, Any]], by_id: Mapping[Any, Any], key: str) -> tuple[str, ...]:
    """A note on rows whose id another row has, too; none where there is none."""
    if len(by_id) == len(rows):
        return ()
    seen: dict[QuestionId, int] = {}
    for index, row in enumerate(rows):
        if row[key] in seen:
            break
        seen[row[key]] = index
    return (
        f"{path}: {len(rows) - len(by_id)} rows repeat a {key} (the first is [{index}], {row[key]!r}, also at "
        f"[{seen[row[key]]}]); the last one counts, as in the official loader",
    )


def _with_records(path: Path, place: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of TextVQA's own format with records in the place of plain answers."""
    answers = row.get("answers")
    if not isinstance(answers, list) or not all(isinstance(answer, str) for answer in answers):
        raise DataError(path, "must be a list of texts", f"{place}.answers")
    return {**row, "answers": [{"answer": answer, "answer_id": i} for i, answer in enumerate(answers, 1)]}
