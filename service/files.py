"""Data files: reading them, plain or compressed with gzip, saying where one is broken, and writing them whole.

The parser is Python's own, as in the official loaders: what it takes (NaN, a lone surrogate, a key twice) is taken.
"""

from __future__ import annotations

import gc
import gzip
import json
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from service.errors import DataError

_GZIP_MAGIC = b"\x1f\x8b"
_EMPTY = "the file is empty"


def read_bytes(path: Path) -> bytes:
    """A file's content, decompressed where it begins as gzip does, whatever its name.

    Raises:
        DataError: it cannot be read, or is a gzip file that is cut short or damaged.
    """
    try:
        data = path.read_bytes()
        return gzip.decompress(data) if data.startswith(_GZIP_MAGIC) else data
    except EOFError as error:
        raise DataError(path, "the compressed data end early; the file is cut short") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise DataError(path, f"the compressed data are damaged ({error})") from error
    except OSError as error:
        raise DataError(path, f"it cannot be read: {error.strerror}") from error


def read_text(path: Path) -> str:
    """A file's text (UTF-8, with or without a byte order mark).

    Raises:
        DataError: as `read_bytes`, or it is not UTF-8.
    """
    data = read_bytes(path)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError(path, f"not UTF-8 (at byte {error.start}); save it as UTF-8", f"line {line}") from error


def read_json(path: Path) -> Any:
    """A file's JSON value.

    Raises:
        DataError: as `read_text`, or it is not JSON; the place is line and column.
    """
    return _whole(path, read_text(path))


def read_rows(path: Path) -> list[tuple[str, Any]]:
    """The rows of a JSON array or of JSON Lines, each with its place (`[3]`, `line 4`).

    Raises:
        DataError: as `read_json`, or it is one value that is no array, over several lines.
    """
    text = read_text(path)
    if text.lstrip().startswith("["):
        return [(f"[{index}]", row) for index, row in enumerate(_whole(path, text))]
    if not text.strip():
        raise DataError(path, _EMPTY)
    # Only a line feed ends a line: JSON may hold the other separators that `splitlines` knows.
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    try:
        return [(f"line {number}", _parsed(path, line, number)) for number, line in lines]
    except DataError:
        if len(lines) > 1 and _is_json(text):
            raise DataError(path, "it is one JSON value; expected an array, or a value a line") from None
        raise


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _whole(path: Path, text: str) -> Any:
    if not text.strip():
        raise DataError(path, _EMPTY)
    with uncollected():
        return _parsed(path, text)


def _parsed(path: Path, text: str, line: int = 1) -> Any:
    """A JSON value; `line` is where the text begins.

    Raises:
        DataError: it is none; the place is line and column.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        place = f"line {line + error.lineno - 1}, column {error.colno}"
        cut = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string")
        what = "the text ends in the middle of a value; the file is cut short" if cut else f"not JSON: {error.msg}"
        raise DataError(path, what, place) from error
    except RecursionError as error:
        raise DataError(path, "it is nested too deeply", f"line {line}") from error
    except ValueError as error:
        raise DataError(path, "a number in it has more digits than can be read", f"line {line}") from error


@contextmanager
def uncollected() -> Iterator[None]:
    """No garbage collection meanwhile: of millions of new objects it would look at all, again and again, in vain.

    An annotations file of 335 MB is parsed in 2 s instead of 7.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@contextmanager
def whole(path: Path) -> Iterator[BinaryIO]:
    """A file to write, which is there under its name once the block has ended without an error, and not before.

    Raises:
        DataError: it cannot be written.
    """
    part = path.with_name(f".{path.name}.part")
    try:
        try:
            with part.open("wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise DataError(path, f"it cannot be written: {error.strerror or error}") from error


def json_bytes(value: Any, indent: int | None = None) -> bytes:
    """A JSON value as UTF-8 with a line end behind it.

    A lone surrogate, which a file's name or a text from JSON may hold and UTF-8 may not, is written as JSON escapes it.
    """
    return (json.dumps(value, ensure_ascii=False, indent=indent) + "\n").encode("utf-8", "backslashreplace")


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that it is there whole or not at all, whatever stops the process.

    Raises:
        DataError: it cannot be written.
    """
    with whole(path) as file:
        file.write(data)
