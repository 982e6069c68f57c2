"""All questions and views of a run as one Parquet table, a row each.

`top_probability`, `margin` and `entropy` say how sure the model is among the candidates that a reply
lists, `TOP_K` at most.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from service.errors import DataError, needs
from service.evaluation.records import Scored
from service.files import whole
from service.scoring.rounding import total

_ROWS_AT_ONCE = 8192

# Name, Arrow type and value of each column. `accuracy` is 0 to 1 in the data set's own metric; times are milliseconds;
# `image` is absolute, so that reports find the pictures from anywhere.
_COLUMNS: tuple[tuple[str, str, Callable[[Scored], Any]], ...] = (
    ("image", "string", lambda row: str(row.example.image.absolute())),
    ("question", "string", lambda row: row.example.question),
    ("question_type", "string", lambda row: row.example.question_type),
    ("answer_type", "string", lambda row: row.example.answer_type),
    ("answers", "strings", lambda row: list(row.example.answers)),
    ("prediction", "string", lambda row: row.prediction.answer),
    ("accuracy", "double", lambda row: row.accuracy),
    ("confidence", "double", lambda row: row.prediction.confidence),
    ("calibrated", "bool", lambda row: row.prediction.calibrated),
    ("answerable", "bool", lambda row: row.prediction.answerable),
    ("answerability", "double", lambda row: row.prediction.answerability),
    ("abstained", "bool", lambda row: row.prediction.abstained),
    ("candidates", "candidates", lambda row: _candidates(row)),
    ("top_probability", "double", lambda row: _probability(row, 0)),
    ("margin", "double", lambda row: _margin(row)),
    ("entropy", "double", lambda row: _entropy(row)),
    ("off_set", "double", lambda row: row.prediction.off_set),
    ("raw_answer", "string", lambda row: row.prediction.raw_answer),
    ("predicted_type", "string", lambda row: row.prediction.answer_type),
    ("backend", "string", lambda row: row.prediction.backend),
    ("model", "string", lambda row: row.prediction.model),
    ("revision", "string", lambda row: row.prediction.revision),
    ("calibration", "string", lambda row: row.prediction.calibration),
    ("cached", "bool", lambda row: row.prediction.cached),
    ("warnings", "strings", lambda row: list(row.prediction.warnings)),
    ("hints", "strings", lambda row: list(row.prediction.hints)),
    ("image_sha256", "string", lambda row: row.prediction.image_sha256),
    ("width", "int64", lambda row: row.prediction.width),
    ("height", "int64", lambda row: row.prediction.height),
    ("decode_ms", "double", lambda row: row.prediction.decode_ms),
    ("queue_ms", "double", lambda row: row.prediction.queue_ms),
    ("inference_ms", "double", lambda row: row.prediction.inference_ms),
    ("total_ms", "double", lambda row: row.prediction.total_ms),
    ("error", "string", lambda row: row.prediction.error),
    ("detail", "string", lambda row: row.prediction.detail),
)


def write_table(path: Path, rows: Iterable[tuple[str, Scored]], *, ids_are_numbers: bool) -> None:
    """Write the table, whole or not at all.

    Args:
        path: the file.
        rows: each with the name of its view.
        ids_are_numbers: question ids are a column of integers, else of texts.

    Raises:
        DataError: it cannot be written, or a value does not fit its column.
        MissingExtraError: pyarrow is not installed.
    """
    with needs("pyarrow"):
        import pyarrow as pa
        from pyarrow import parquet

    types = {
        "string": pa.string(),
        "double": pa.float64(),
        "bool": pa.bool_(),
        "int64": pa.int64(),
        "strings": pa.list_(pa.string()),
        "candidates": pa.list_(pa.struct([("answer", pa.string()), ("probability", pa.float64())])),
    }
    id_type = pa.int64() if ids_are_numbers else pa.string()
    fields = [("question_id", id_type), ("view", pa.string())]
    schema = pa.schema(fields + [(name, types[kind]) for name, kind, _ in _COLUMNS])
    try:
        with whole(path) as file, parquet.ParquetWriter(file, schema, compression="zstd") as writer:
            for chunk in _chunks(rows):
                writer.write_table(pa.table(_values(chunk, ids_are_numbers), schema=schema))
    except (pa.ArrowException, OverflowError) as error:
        raise DataError(path, f"a value does not fit its column: {error}") from error


def _values(chunk: list[tuple[str, Scored]], ids_are_numbers: bool) -> dict[str, list[Any]]:
    identify: Callable[[Any], int | str] = int if ids_are_numbers else str
    values: dict[str, list[Any]] = {
        "question_id": [identify(row.example.question_id) for _, row in chunk],
        "view": [view for view, _ in chunk],
    }
    return values | {name: [_plain(value(row)) for _, row in chunk] for name, _, value in _COLUMNS}


def _plain(value: Any) -> Any:
    """A value that UTF-8 can hold: an unpaired surrogate, which JSON may hold, becomes a question mark."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return value


def _chunks(rows: Iterable[tuple[str, Scored]]) -> Iterator[list[tuple[str, Scored]]]:
    remaining = iter(rows)
    while chunk := list(islice(remaining, _ROWS_AT_ONCE)):
        yield chunk


def _candidates(row: Scored) -> list[dict[str, Any]]:
    return [{"answer": answer, "probability": probability} for answer, probability in row.prediction.candidates]


def _probability(row: Scored, place: int) -> float | None:
    candidates = row.prediction.candidates
    return candidates[place][1] if place < len(candidates) else None


def _margin(row: Scored) -> float | None:
    """How much more probable the first candidate is than the second."""
    first, second = _probability(row, 0), _probability(row, 1)
    return None if first is None else first - (second or 0.0)


def _entropy(row: Scored) -> float | None:
    """Shannon entropy in nats over the listed candidates alone, their probabilities scaled to add up to one.

    The rest of the distribution is not in the reply, so this is not the entropy of all answers.
    """
    probabilities = [probability for _, probability in row.prediction.candidates if probability > 0]
    listed = total(probabilities)
    if listed <= 0:
        return None
    return -total(p / listed * math.log(p / listed) for p in probabilities)
