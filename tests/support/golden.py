"""Values that the original public programs gave, for synthetic data sets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).resolve().parents[1] / "golden"


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
