"""The collected real-world cases: input files with what must come of them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CASES = Path(__file__).resolve().parents[1] / "cases"


@dataclass(frozen=True)
class Case:
    """One input file."""

    file: str
    case: str
    expected: dict[str, Any]
    use: str

    @property
    def data(self) -> bytes:
        return (CASES / self.file).read_bytes()

    @property
    def name(self) -> str:
        return Path(self.file).name

    @property
    def allowed(self) -> list[int]:
        """Every status that counts as right."""
        return self.expected.get("status_ok") or [self.expected["status"]]


def cases(kind: str) -> list[Case]:
    """All inputs of a kind: image, requests, ssrf or metrics."""
    rows = map(json.loads, (CASES / "manifest.jsonl").read_text("utf-8").splitlines())
    return [
        Case(r["file"], r["case"], r["expected"], r.get("use", "")) for r in rows if r["file"].startswith(f"{kind}/")
    ]
