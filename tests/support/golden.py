"""Values that the original public programs gave, for synthetic data sets."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).resolve().parents[1] / "golden"


def read(path: Path) -> Any:
    """A JSON value, or the values of JSON Lines, from a file that may be compressed."""
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        # Only a line feed ends a line: the texts hold every other separator that there is.
        return [json.loads(line) for line in text.split("\n") if line]


def golden(*parts: str) -> Any:
    """The JSON value of a golden file."""
    return json.loads(GOLDEN.joinpath(*parts).read_text("utf-8"))


def write(path: Path, value: Any) -> Path:
    """A JSON file; texts are written as they are."""
    path.write_text(value if isinstance(value, str) else json.dumps(value), "utf-8")
    return path


def write_lines(path: Path, rows: list[Any]) -> Path:
    """A JSON Lines file."""
    return write(path, "".join(f"{json.dumps(row)}\n" for row in rows))
