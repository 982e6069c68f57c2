"""Where expected values come from: the collected cases and the golden files of the original evaluators."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.golden import GOLDEN, read

TESTS = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def golden() -> Callable[[str], list[dict[str, Any]]]:
    """Reads tests/golden/NAME."""
    return lambda name: read(GOLDEN / name)


@pytest.fixture(scope="session")
def case() -> Callable[[str], Any]:
    """Reads tests/cases/metrics/NAME: a list of objects for .jsonl, else the object."""

    return lambda name: read(TESTS / "cases" / "metrics" / name)
