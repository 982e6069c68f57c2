"""What the JSON files of a run must look like to be reported; what else they say is let through."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from service.errors import DataError
from service.files import read_json

_NO_OBJECT: Final = ("dict_type", "model_type")  # pydantic's words for it name our classes


class _Document(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True, allow_inf_nan=False)


class Fingerprint(_Document):
    """What the answers depend on; `files` are SHA-256 digests, of a folder's files by their names."""

    files: dict[str, str | dict[str, str]] = Field(default_factory=dict)


class Facts(_Document):
    """What else is worth knowing of a run; `concurrency` is how many pictures were under way at once."""

    version: str | None = None
    place: str | None = None
    files: dict[str, str] = Field(default_factory=dict)
    questions: int | None = None
    concurrency: int | None = None


class RunDocument(_Document):
    """run.json."""

    fingerprint: Fingerprint
    facts: Facts


class Counts(_Document):
    """How many questions of a view were asked, and what became of them."""

    asked: int
    abstained: int
    failed: int


class ScoresDocument(_Document):
    """A view's scores by the official evaluator, in percent, as `service.scoring.scores.Scores.document`."""

    accuracy: float | None
    questions: int
    per_answer_type: dict[str, float]
    per_question_type: dict[str, float]
    notes: list[str]
    code: str | None = None


class Speed(_Document):
    """How fast the last start of a run was; nothing where it asked nothing."""

    questions_per_second: float | None = None


class ViewDocument(_Document):
    """What came of a view."""

    counts: Counts
    scores: ScoresDocument
    speed: Speed = Field(default_factory=Speed)


class EvaluationDocument(_Document):
    """evaluation.json."""

    dataset: str
    views: dict[str, ViewDocument] = Field(min_length=1)


def read_document(path: Path, kind: type[BaseModel]) -> dict[str, Any]:
    """A JSON file that is as `kind` says, as it is.

    Raises:
        DataError: it cannot be read, or is otherwise; the message says where.
    """
    document = read_json(path)
    try:
        kind.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"])) or None
        what = "it must be an object" if first["type"] in _NO_OBJECT else first["msg"][:1].lower() + first["msg"][1:]
        raise DataError(path, f"{what}; was it written by `vqa eval`?", place) from error
    return dict(document)
