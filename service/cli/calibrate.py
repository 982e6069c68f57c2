"""`vqa calibrate`: fit how much a model's answers are to be trusted, from what it said where the answers are known."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from service.backends import load_manifest
from service.cli.options import settings_options
from service.cli.parameters import Filled, Place
from service.evaluation.calibrating.calibrate import calibrate
from service.evaluation.calibrating.samples import run_folder
from service.settings import load_settings


@click.command("calibrate", epilog="Example: vqa calibrate runs/held-out --model vilt-shapes")
@click.argument("predictions", type=Place(path_type=Path))
@click.option("--model", "name", required=True, type=Filled(), help="Name of the model whose predictions they are.")
@click.option(
    "--fitted-on",
    type=Filled(),
    help="What the questions are, in words, for the model's record; default: the name of the run's folder.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@settings_options("models_dir")
def calibrate_command(predictions: Path, name: str, fitted_on: str | None, as_json: bool, **flags: Any) -> None:
    """Fit a model's calibration to PREDICTIONS, a folder that `vqa eval` wrote, and put it into the model's folder.

    The questions must be ones that the model was not trained on. Fitted are the confidence, by answer type (the
    probability as it is, temperature, logistic, beta, isotonic, or several features: whichever predicts best what it
    was not fitted on), whether a question can be answered, and which pictures are of the kind that the model knows.
    """
    manifest = load_manifest(load_settings(**flags).models_dir, name)
    with Progress(console=Console(stderr=True), transient=True, disable=not Console(stderr=True).is_terminal) as bar:
        task = bar.add_task("looking at the pictures", total=None)
        report = calibrate(
            predictions, manifest, fitted_on or run_folder(predictions).name, lambda n: bar.advance(task, n)
        )
    if as_json:
        click.echo(json.dumps(report, ensure_ascii=False))
    else:
        _print(report)


def _print(report: Mapping[str, Any]) -> None:
    """The Brier score of each kind of map, on questions that it was not fitted on; the chosen one last."""
    table = Table(box=None, pad_edge=False)
    kinds = list(dict.fromkeys(kind for scores in report["cross_validated_brier"].values() for kind in scores))
    for column in ("Brier score", *kinds, "chosen"):
        table.add_column(column, justify="left" if column in ("Brier score", "chosen") else "right", no_wrap=True)
    for what, scores in report["cross_validated_brier"].items():
        cells = ["" if scores.get(kind) is None else f"{scores[kind]:.5f}" for kind in kinds]
        table.add_row(what, *cells, report["chosen"][what])
    Console(width=10_000).print(table)
    for what, why in report["not_fitted"].items():
        click.echo(f"{what}: not fitted, {why}")
    domain = report["domain"]
    if "components" in domain:
        click.echo(f"domain: {domain['pictures']:,} pictures, {domain['components']} components")
    click.echo(
        f"{report['model']}: {report['questions']:,} questions, {report['unanswerable']:,} of them unanswerable; "
        f"calibration {report['calibration']}, revision {report['revision']}"
    )
