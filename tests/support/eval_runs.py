"""`vqa eval` as a process."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.support.process import VQA

SHAPES, QUESTIONS_EACH = 12, 3
LONG = 900


def of_shapes(folder: Path, out: Path) -> list[str]:
    files = ["--questions", str(folder / "questions.json"), "--annotations", str(folder / "annotations.json")]
    return ["--dataset", "vqav2", *files, "--out", str(out)]


def of_lines(path: Path, out: Path) -> list[str]:
    return ["--dataset", "jsonl", "--annotations", str(path), "--out", str(out)]


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    env = os.environ | environment
    return subprocess.run([VQA, "eval", *arguments], capture_output=True, text=True, timeout=120, env=env)


def lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def read_terminal(end: int) -> bytes:
    """All that comes out of one end of a pseudo-terminal until its other end is closed; this one is closed, too."""
    shown = b""
    try:
        while data := os.read(end, 65536):
            shown += data
    except OSError:
        pass  # so Linux says that the other end was closed
    os.close(end)
    return shown
