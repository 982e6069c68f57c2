"""Reading GQA's files: questions, perhaps in chunks; predictions; and what `eval.py` needs of a question."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from service.errors import DataError
from service.files import read_json
from service.scoring.rows import kind_of, read_array, records, text_of

# Steps whose text holds one of these only name the result, and do not count as reasoning.
_FINAL_STEPS = ("exist", "query: name", "choose name")


@dataclass(frozen=True, slots=True)
class Question:
    """What the evaluation needs of one question of the balanced set."""

    answer: str
    words: int
    steps: int
    structural: str
    semantic: str
    common: bool
    group: str | None
    whole_scene: bool
    image: str
    pointers: tuple[str, ...] | None
    """Ids of the objects that question and answer point at; None where the file does not say."""


def read_objects(path: Path, what: str) -> dict[str, Any]:
    """A file with one JSON object, or a folder of them: `NAME/NAME_0.json`, `NAME/NAME_1.json` and so on.

    The official loader takes the folder where `NAME.json` does not exist, and so does this; the folder itself may be
    named, too. Chunks are read in the order of their numbers.

    Args:
        path: the file or folder.
        what: what it holds, for messages ("questions").

    Raises:
        DataError: it cannot be read, or holds no object.
    """
    stem = path.name.split(".")[0]
    folder = path if path.is_dir() or not stem else path.with_name(stem)
    if path.is_file() or not folder.is_dir():
        return _object(path, what)
    chunks = sorted(folder.glob(f"{folder.name}_*.json*"), key=lambda chunk: (len(chunk.name), chunk.name))
    if not chunks:
        raise DataError(folder, f"the folder holds no file named {folder.name}_*.json")
    objects: dict[str, Any] = {}
    for chunk in chunks:
        objects.update(_object(chunk, what))
    return objects


def _object(path: Path, what: str) -> dict[str, Any]:
    value = read_json(path)
    if not isinstance(value, dict):
        raise DataError(path, f"expected a JSON object of {what} by id, and this is {kind_of(value)}")
    return value


def read_predictions(path: Path) -> tuple[dict[str, Any], list[str]]:
    """The predictions by question id, and what a reader must know about them.

    As in the official program the last of two predictions for one question counts, and a prediction that is a number,
    a boolean or null is wrong.

    Raises:
        DataError: it is no array of `{"questionId", "prediction"}`, or a prediction is an array or an object.
    """
    rows = list(records(path, read_array(path, '{"questionId", "prediction"}'), "questionId", "prediction"))
    predictions: dict[str, Any] = {}
    for place, row in rows:
        for name in ("questionId", "prediction"):
            if isinstance(row[name], list | dict):
                raise DataError(path, f"expected a text, and this is {kind_of(row[name])}", f"{place}.{name}")
        predictions[row["questionId"]] = row["prediction"]
    notes = []
    if repeated := len(rows) - len(predictions):
        notes.append(f"{repeated} predictions repeat a questionId; the last one counts, as in the official program")
    if odd := sum(not isinstance(answer, str) for answer in predictions.values()):
        notes.append(f"{odd} predictions are not texts; they count as wrong, as in the official program")
    return predictions, notes


def is_balanced(path: Path, qid: str, record: Any) -> bool:
    """Whether a question belongs to the balanced set, over which all scores are.

    Raises:
        DataError: the record does not say.
    """
    try:
        return bool(record["isBalanced"])
    except (KeyError, TypeError) as error:
        raise DataError(path, "this is no GQA question: 'isBalanced' is missing", f"question {qid}") from error


def parse_question(path: Path, qid: str, record: Mapping[str, Any]) -> Question:
    """A balanced question.

    Raises:
        DataError: a part that the official program reads is missing; the place is the question's id.
    """
    place = f"question {qid}"
    try:
        steps = [f"{step['operation']}: {step['argument']}" for step in record["semantic"]]
        types, pointers = record["types"], record.get("annotations")
        group = record["groups"]["global"]
        for name in ("structural", "semantic"):
            text_of(path, f"{place}.types", types, name)
        if group is not None:
            text_of(path, f"{place}.groups", record["groups"], "global")
        return Question(
            answer=text_of(path, place, record, "answer"),
            words=len(record["question"].split()),
            steps=sum(not any(final in step for final in _FINAL_STEPS) for step in steps),
            structural=types["structural"],
            semantic=types["semantic"],
            common="Common" in types["detailed"],
            group=group,
            # The official test asks whether a step has the key "scene". No step of GQA has, so it never holds.
            whole_scene=any("scene" in step for step in record["semantic"]),
            image=text_of(path, place, record, "imageId") if "imageId" in record else "",
            pointers=None if pointers is None else (*pointers["question"].values(), *pointers["fullAnswer"].values()),
        )
    except KeyError as error:
        raise DataError(path, f"the key {error} is missing", place) from error
    except (TypeError, AttributeError) as error:
        raise DataError(path, f"this is no GQA question ({error})", place) from error
