"""Fixtures for all tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings as hypothesis_settings

from tests.support.serving import Running, serving

# A machine that others use too is slow at times; how long an example takes is no property under test.
hypothesis_settings.register_profile("any machine", deadline=None)
hypothesis_settings.load_profile("any machine")

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository's root."""
    return ROOT


@pytest.fixture(scope="session")
def served() -> Iterator[Running]:
    """A server with the embedded model; tests that change its settings make one of their own."""
    with serving() as running:
        yield running
