"""Larger files that tests use where they are there: real annotations, and what the original programs gave for them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def shared(*parts: str) -> Path:
    """A path below `VQA_SHARED` or, without it, the folder `shared` beside the repository; skips where absent."""
    path = Path(os.environ.get("VQA_SHARED", ROOT.parent / "shared")).joinpath(*parts)
    if not path.exists():
        pytest.skip(f"{'/'.join(parts)} is not there")
    return path
