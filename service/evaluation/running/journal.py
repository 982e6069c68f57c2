"""The answers of one view as they come in, one line each, so that whatever stops a run loses next to nothing.

A line is appended in one write and flushed. Only an index is kept in memory; the answers stay in the file.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

from service.errors import DataError
from service.evaluation.records import Prediction
from service.evaluation.running.checked import prediction as checked
from service.files import json_bytes
from service.scoring.scores import QuestionId

_DEFAULTS = {
    field.name: field.default for field in dataclasses.fields(Prediction) if field.default is not dataclasses.MISSING
}


class Journal:
    """A journal that is open for reading and appending.

    Args:
        path: the file; made where there is none. A last line that is torn is cut off.

    Raises:
        DataError: a line before the last is none of a journal, or the file cannot be used.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lines: dict[QuestionId, tuple[int, int]] = {}
        self._failed: set[QuestionId] = set()
        try:
            self._file = path.open("a+b", buffering=0)
        except OSError as error:
            raise DataError(path, f"it cannot be opened: {error.strerror}") from error
        try:
            self._end = self._read()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __contains__(self, question_id: QuestionId) -> bool:
        """Whether the question has an answer that is no failure."""
        return question_id in self._lines and question_id not in self._failed

    def covers(self, question_ids: Iterable[QuestionId]) -> bool:
        """Whether every one of these questions was asked, whatever came of it."""
        return all(question_id in self._lines for question_id in question_ids)

    def append(self, prediction: Prediction) -> None:
        """Add a prediction; an earlier one of the same question counts no more.

        Raises:
            DataError: it cannot be written.
        """
        line = _line(prediction)
        try:
            written = self._file.write(line)
            if written != len(line):
                raise OSError(0, "the disk took only a part of a line")
        except OSError as error:
            self._cut(self._end)
            raise DataError(self.path, f"it cannot be written: {error.strerror}") from error
        self._note(prediction, self._end, len(line))
        self._end += len(line)

    def get(self, question_id: QuestionId) -> Prediction | None:
        """The last prediction of a question."""
        if question_id not in self._lines:
            return None
        offset, length = self._lines[question_id]
        return _prediction(os.pread(self._file.fileno(), length, offset))

    def _read(self) -> int:
        """Index the whole lines; returns the file's length, which ends with a line feed."""
        self._file.seek(0)
        end = 0
        with os.fdopen(os.dup(self._file.fileno()), "rb") as lines:
            for number, line in enumerate(lines, 1):
                if line.endswith(b"\n") and not line.strip():
                    end += len(line)
                    continue
                try:
                    prediction = _prediction(line)
                except (ValueError, RecursionError) as error:
                    if not line.endswith(b"\n"):
                        self._cut(end)
                        return end
                    what = f"no line of a journal ({error}); mend or remove it, and its question is asked again"
                    raise DataError(self.path, what, f"line {number}") from error
                self._note(prediction, end, len(line))
                end += len(line)
                if not line.endswith(b"\n"):
                    # Whole, but for its end; what follows now is no line of its own.
                    self._file.write(b"\n")
                    return end + 1
        return end

    def _note(self, prediction: Prediction, offset: int, length: int) -> None:
        question_id = prediction.question_id
        self._lines[question_id] = (offset, length)
        if prediction.error is None:
            self._failed.discard(question_id)
        else:
            self._failed.add(question_id)

    def _cut(self, length: int) -> None:
        os.ftruncate(self._file.fileno(), length)


def _line(prediction: Prediction) -> bytes:
    """A prediction as a line; what is as by default is left out."""
    row: dict[str, Any] = {"question_id": prediction.question_id}
    for name, default in _DEFAULTS.items():
        value = getattr(prediction, name)
        if value != default:
            row[name] = value
    return json_bytes(row)


def _prediction(line: bytes) -> Prediction:
    """A line as a prediction.

    Raises:
        ValueError: it is none.
    """
    row = json.loads(line.decode("utf-8"))
    if not isinstance(row, dict):
        raise ValueError("it must be an object")
    return checked(row)
