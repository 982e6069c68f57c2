"""Rows of data files: objects that hold what an evaluator needs, or an error that names the place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from service.errors import DataError
from service.files import read_json
from service.scoring.scores import QuestionId


def read_array(path: Path, of: str) -> list[tuple[str, Any]]:
    """The elements of a file that is one JSON array, each with its place (`[3]`).

    Args:
        path: the file.
        of: what the elements look like, for the message (`{"questionId", "prediction"}`).

    Raises:
        DataError: as `read_json`, or the value is no array.
    """
    value = read_json(path)
    if not isinstance(value, list):
        raise DataError(path, f"expected a JSON array of {of}, and this is {kind_of(value)}")
    return [(f"[{index}]", row) for index, row in enumerate(value)]


def records(path: Path, rows: Iterable[tuple[str, Any]], *needs: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows as objects that hold the keys `needs`.

    Raises:
        DataError: a row is no object or lacks a key; the place is the row's.
    """
    for place, row in rows:
        if not isinstance(row, dict):
            raise DataError(path, f"expected an object with {', '.join(needs)}, and this is {kind_of(row)}", place)
        for name in needs:
            if name not in row:
                raise DataError(path, f"the key {name!r} is missing", place)
        yield place, row


def text_of(path: Path, place: str, row: Mapping[str, Any], name: str) -> str:
    """The text under a key.

    Raises:
        DataError: it is no text.
    """
    value = row[name]
    if not isinstance(value, str):
        raise DataError(path, f"expected a text, and this is {kind_of(value)}", f"{place}.{name}")
    return value


def id_of(path: Path, place: str, row: Mapping[str, Any], name: str) -> QuestionId:
    """The question id under a key.

    Raises:
        DataError: it is neither a whole number nor a text.
    """
    value = row[name]
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise DataError(path, f"expected a whole number or a text, and this is {kind_of(value)}", f"{place}.{name}")
    return value


def kind_of(value: object) -> str:
    """What a JSON value is, for a message."""
    if value is None:
        return "null"
    names = {bool: "true or false", int: "a number", float: "a number", str: "a text", list: "an array"}
    return names.get(type(value), "an object")
