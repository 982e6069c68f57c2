"""Data files: reading them, plain or compressed with gzip, saying where one is broken, and writing them whole.

The parser is Python's own, as in the official loaders: what it takes (NaN, a lone surrogate, a key twice) is taken.
"""

from __future__ import annotations

import gc
import gzip
import json
import os
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from service.errors import DataError

_GZIP_MAGIC = b"\x1f\x8b"


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
        raise DataError(path, f"not UTF-8 (at byte {error.start})", f"line {line}") from error


def read_json(path: Path) -> Any:
    """A file's JSON value.

    Raises:
        DataError: as `read_text`, or it is not JSON; the place is line and column.
    """
    text = read_text(path)
    if not text.strip():
        raise DataError(path, "the file is empty")
    try:
        with uncollected():
            return json.loads(text)
    except json.JSONDecodeError as error:
        raise DataError(path, *_json_fault(text, error)) from error
    except RecursionError as error:
        raise DataError(path, "it is nested too deeply") from error


def read_rows(path: Path) -> list[tuple[str, Any]]:
    """The rows of a JSON array or of JSON Lines, each with its place (`[3]`, `line 4`).

    Raises:
        DataError: as `read_json`, or it is JSON and neither an array nor one object a line.
    """
    text = read_text(path)
    if text.lstrip().startswith("["):
        return [(f"[{index}]", row) for index, row in enumerate(read_json(path))]
    return list(_json_lines(path, text))


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


def _json_lines(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    """One value a line; empty lines count and are skipped."""
    if not text.strip():
        raise DataError(path, "the file is empty")
    # Only a line feed ends a line: JSON may hold the other separators that `splitlines` knows.
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            yield f"line {number}", json.loads(line)
        except json.JSONDecodeError as error:
            what, _ = _json_fault(line, error)
            raise DataError(path, what, f"line {number}, column {error.colno}") from error


def _json_fault(text: str, error: json.JSONDecodeError) -> tuple[str, str]:
    """What is wrong, and where."""
    place = f"line {error.lineno}, column {error.colno}"
    if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string"):
        return "the text ends in the middle of a value; the file is cut short", place
    return f"not JSON: {error.msg}", place


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that it is there whole or not at all, whatever stops the process.

    Raises:
        DataError: it cannot be written.
    """
    try:
        descriptor, part = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            Path(part).chmod(0o666 & ~_umask())
            Path(part).replace(path)
        except BaseException:
            Path(part).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise DataError(path, f"it cannot be written: {error.strerror}") from error


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
