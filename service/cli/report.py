"""`vqa report`: what came of runs, as a table, as JSON, or as a page."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from service.evaluation.reporting.figures import view_summary
from service.evaluation.reporting.predictions import Run, read_run
from service.evaluation.reporting.report import comparison_figures, write_comparison, write_run_report

_HEAD = ("run", "view", "data set", "questions", "accuracy", "confidence", "ECE", "unanswerable", "abstained", "failed")
_TEXTS = 3  # so many columns stand to the left
# Ten columns do not fit into the 80 characters that rich gives a pipe: it would break numbers into two lines.
_WIDE = 10_000


@click.command("report", epilog="Example: vqa report runs/vilt-b32 runs/vilt-shapes --out comparison.html")
@click.argument("folders", metavar="RUN...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="FILE.html", help="Write a page, and its figures as FILE.json."
)
@click.option("--label", "labels", multiple=True, metavar="NAME", help="What to call a run; once for each, in order.")
@click.option("--json", "as_json", is_flag=True, help="Print all figures as one JSON object.")
def report_command(folders: tuple[Path, ...], out: Path | None, labels: tuple[str, ...], as_json: bool) -> None:
    """Show what came of each RUN, a folder that `vqa eval` wrote.

    The page of one run is its report; that of several compares the first with each other. Accuracy, mean confidence
    and expected calibration error (ECE) are in percent.
    """
    if labels and len(labels) != len(folders):
        raise click.UsageError(
            f"--label is given {len(labels)} times for {len(folders)} runs; give one for each, or none"
        )
    if out is not None and out.suffix.lower() not in (".html", ".htm"):
        raise click.UsageError(f"--out is {out}; its name must end in .html, since the figures go to .json beside it")
    if len(set(labels)) < len(labels) or not all(labels):
        raise click.UsageError("--label must be another name for each run, and not empty")
    names = labels or _names(folders)
    runs = [read_run(folder, name) for folder, name in zip(folders, names, strict=True)]
    figures = _figures(runs, out, needed=as_json)
    if as_json:
        click.echo(json.dumps(figures, ensure_ascii=False))
    else:
        _print(runs)


def _figures(runs: Sequence[Run], out: Path | None, *, needed: bool) -> dict[str, Any]:
    """All figures, where a page or JSON needs them; the page is written on the way."""
    if out is None:
        return comparison_figures(runs) if needed else {}
    return write_comparison(runs, out) if len(runs) > 1 else {"runs": [write_run_report(runs[0], out)], "pairs": []}


def _names(folders: Sequence[Path]) -> list[str]:
    """The folders' names; with the path where two have the same."""
    names = [folder.resolve().name for folder in folders]
    return [str(folder) if Counter(names)[name] > 1 else name for folder, name in zip(folders, names, strict=True)]


def _print(runs: Sequence[Run]) -> None:
    """A row a view."""
    table = Table(box=None, pad_edge=False)
    for index, name in enumerate(_HEAD):
        table.add_column(name, justify="left" if index < _TEXTS else "right", no_wrap=True)
    for run in runs:
        for name, view in run.views.items():
            table.add_row(*map(Text, (run.label, name, run.dataset)), *_numbers(view_summary(view)))
    Console(width=_WIDE).print(table)


def _numbers(summary: Mapping[str, Any]) -> list[str]:
    shares = [summary[name] for name in ("mean_accuracy", "mean_confidence", "expected_calibration_error")]
    counts = [summary[name] for name in ("unanswerable", "abstained", "failed")]
    return [
        f"{summary['questions']:,}",
        *("-" if share is None else f"{100 * share:.2f} %" for share in shares),
        *(f"{number:,}" for number in counts),
    ]
