"""`vqa report`: what came of runs, as a table, as JSON, or as a page."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from service.evaluation.reporting.figures import view_figures
from service.evaluation.reporting.report import comparison_figures, write_comparison, write_run_report
from service.evaluation.reporting.run_folder import Run, read_run

_HEAD = ("run", "view", "data set", "questions", "accuracy", "confidence", "ECE", "unanswerable", "abstained", "failed")
_TEXTS = 3  # so many columns stand to the left


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
    names = labels or _names(folders)
    runs = [read_run(folder, name) for folder, name in zip(folders, names, strict=True)]
    figures = _figures(runs, out, whole=as_json)
    click.echo(json.dumps(figures, ensure_ascii=False) if as_json else "\n".join(_table(figures["runs"])))


def _figures(runs: Sequence[Run], out: Path | None, *, whole: bool) -> dict[str, Any]:
    """What is printed; the pages are written on the way. Without a page a table takes only its own figures."""
    if out is not None:
        return write_comparison(runs, out) if len(runs) > 1 else {"runs": [write_run_report(runs[0], out)], "pairs": []}
    if whole:
        return comparison_figures(runs)
    return {
        "runs": [
            {"label": run.label, "dataset": run.dataset, "views": [view_figures(run, name) for name in run.views]}
            for run in runs
        ]
    }


def _names(folders: Sequence[Path]) -> list[str]:
    """The folders' names; with the path where two have the same."""
    names = [folder.resolve().name for folder in folders]
    return [str(folder) if Counter(names)[name] > 1 else name for folder, name in zip(folders, names, strict=True)]


def _table(runs: Sequence[dict[str, Any]]) -> list[str]:
    rows = [_HEAD, *(_row(run, view) for run in runs for view in run["views"])]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(_padded(row, widths)).rstrip() for row in rows]


def _padded(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    cells = enumerate(zip(row, widths, strict=True))
    return [text.ljust(width) if index < _TEXTS else text.rjust(width) for index, (text, width) in cells]


def _row(run: dict[str, Any], figures: dict[str, Any]) -> tuple[str, ...]:
    shares = (figures["accuracy"]["mean"], figures["mean_confidence"], figures["expected_calibration_error"])
    counts = (figures["unanswerable"], figures["abstained"], figures["failed"])
    return (
        run["label"],
        figures["view"],
        run["dataset"],
        f"{figures['questions']:,}",
        *("-" if share is None else f"{100 * share:.2f}" for share in shares),
        *(f"{number:,}" for number in counts),
    )
