"""What a run folder holds, by name: `vqa eval` writes it, and reports are made of it."""

from __future__ import annotations

from typing import Final

SIGHTED: Final = "sighted"
BLIND: Final = ("blank", "shuffled", "noise")
VIEWS: Final = (SIGHTED, *BLIND)
"""The views of a run, in the order in which they are asked and shown."""

RUN_FILE: Final = "run.json"
"""What the run is: its fingerprint and facts."""
PREDICTIONS_FILE: Final = "predictions.parquet"
"""All questions and views as a table."""
EVALUATION_FILE: Final = "evaluation.json"
"""The outcome."""
PAGE: Final = "report.html"
FIGURES: Final = "report.json"
"""The report's page and its figures."""
SELECTION: Final = "selection"
"""Folder of the data set's files cut down to what was asked, where that is less than all."""

SELECTED: Final = ("questions.json", "annotations.json", "annotations.jsonl")
"""What that folder may hold."""


def suffix(view: str) -> str:
    """What a view adds to the names of its files."""
    return "" if view == SIGHTED else f"-{view}"
