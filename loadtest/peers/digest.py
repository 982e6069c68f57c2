"""One table of a comparison, as the README has it: `python -m loadtest.peers.digest RESULTS.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from loadtest.peers.contestants import OURS
from loadtest.peers.load import ONE, OVERLOAD, PHOTOS, STEADY, TEN
from loadtest.peers.tables import AHEAD, BEHIND, TITLES

# A column's name, the scenario it is from, and the figure there.
COLUMNS = (
    ("questions/s", STEADY, "questions/s"),
    ("CPU ms each", STEADY, "cpu_ms_each"),
    ("memory, MiB", STEADY, "pss_mib"),
    ("12-megapixel, /s", PHOTOS, "questions/s"),
    ("ten a picture, /s", TEN, "questions/s"),
    ("in time at twice the capacity, /s", OVERLOAD, "questions/s"),
    ("one client, ms", ONE, "p50, ms"),
)


def digest(results: Mapping[str, Any]) -> str:
    """A Markdown table with a row for each contestant: medians, and the ratio of questions/s to this service's.

    What was not measured is left empty.

    Args:
        results: what `python -m loadtest.peers` wrote as JSON; `steady` must be in it.

    Raises:
        KeyError: it is something else, or without `steady`.
    """
    tables = results["tables"]
    found = {
        scenario: {line["contestant"]: line for line in tables.get(title, ())} for scenario, title in TITLES.items()
    }
    first, *rest = (name for name, _, _ in COLUMNS)
    lines = [f"| | {first} | times ours | {' | '.join(rest)} |", "|---" * (len(COLUMNS) + 2) + "|"]
    for steady in tables[TITLES[STEADY]]:
        name = steady["contestant"]
        rate, *others = (_short(found[scenario].get(name, {}).get(key)) for _, scenario, key in COLUMNS)
        shown = f"**{name}**" if name == OURS else name
        lines.append(f"| {shown} | {rate} | {_ratio(steady)} | {' | '.join(others)} |")
    return "\n".join(lines)


def _ratio(line: Mapping[str, Any]) -> str:
    if line["times ours"] is None:
        return ""
    # "0.9571 to 1.061 (98%)", or nothing of a single round.
    ends = [_short(float(end)) for end in line["interval of that"].partition(" (")[0].split(" to ") if end]
    interval = f" ({' to '.join(ends)})" if ends else ""
    verdict = f", {line['against ours']}" if line["against ours"] in (AHEAD, BEHIND) else ""
    return f"{_short(line['times ours'])}{interval}{verdict}"


def _short(value: float | None) -> str:
    if value is None:
        return ""
    digits = 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:,.{digits}f}"


@click.command()
@click.argument("results", type=click.Path(path_type=Path, exists=True, dir_okay=False))
def main(results: Path) -> None:
    """One table of a comparison, as the README has it."""
    click.echo(digest(json.loads(results.read_text("utf-8"))))


if __name__ == "__main__":
    main()
