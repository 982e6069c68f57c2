"""Where expected values come from: the collected cases and the golden files of the original evaluators."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parents[1]


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The objects of a .jsonl or .jsonl.gz file."""
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    return [json.loads(line) for line in text.split("\n") if line]


@pytest.fixture(scope="session")
def golden() -> Callable[[str], list[dict[str, Any]]]:
    """Reads tests/golden/NAME."""
    return lambda name: read_lines(TESTS / "golden" / name)


@pytest.fixture(scope="session")
def case() -> Callable[[str], Any]:
    """Reads tests/cases/metrics/NAME: a list of objects for .jsonl, else the object."""

    def read(name: str) -> Any:
        path = TESTS / "cases" / "metrics" / name
        return read_lines(path) if path.suffix == ".jsonl" else json.loads(path.read_text())

    return read
