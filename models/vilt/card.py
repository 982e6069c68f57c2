"""The figures of a model card, written from what was measured, so that the two cannot differ."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined

HEADING = "## Figures\n"
TEMPLATE = Path(__file__).with_name("figures.md.jinja")


def with_figures(card: str, report: Mapping[str, Any]) -> str:
    """The card with its section of figures written anew from the content of evaluation.json.

    Raises ValueError for a card without such a section.
    """
    before, heading, rest = card.partition(HEADING)
    if not heading:
        raise ValueError(f"the card has no section {HEADING.strip()!r}")
    _, following, after = rest.partition("\n## ")
    return before + heading + figures(report) + following + after


def figures(report: Mapping[str, Any]) -> str:
    """The section's text; what was not measured is left out."""
    environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False)
    template = environment.from_string(TEMPLATE.read_text("utf-8"))
    return template.render(report=report, of_types=("yes/no", "number", "other"))
