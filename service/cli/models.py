"""`vqa models`: which models there are, what they are made of, and whether their files are whole."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from service.backends import ModelManifest, list_models, load_manifest, read_labels
from service.backends.classifier import ViltClassifier
from service.backends.digests import rewrite_digests
from service.cli.add import add_command
from service.cli.options import settings_options
from service.settings import load_settings


@click.group(epilog="Example: vqa models verify vilt-shapes")
def models() -> None:
    """List, show, verify and add models."""


models.add_command(add_command)


@models.command("list", epilog="Example: vqa models list --json")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@settings_options("models_dir")
def list_command(as_json: bool, **flags: Any) -> None:
    """List the models below the models folder."""
    found = [_summary(manifest) for manifest in list_models(load_settings(**flags).models_dir)]
    if as_json:
        click.echo(json.dumps(found))
        return
    table = Table(box=None)
    for column in ("name", "kind", "precision", "revision", "calibration", "description"):
        table.add_column(column, overflow="fold")
    for row in found:
        cells = row | {"calibration": row["calibration"] or "none"}
        table.add_row(*(cells[str(column.header)] for column in table.columns))
    Console().print(table)


@models.command("show", epilog="Example: vqa models show vilt-shapes")
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@settings_options("models_dir")
def show(name: str, as_json: bool, **flags: Any) -> None:
    """Show the model NAME: its manifest, its labels and its files."""
    manifest = load_manifest(load_settings(**flags).models_dir, name)
    details = _summary(manifest) | {
        "checkpoint": manifest.source.checkpoint or None,
        "checkpoint_revision": manifest.source.revision or None,
        "license": manifest.model.license,
        "scores": manifest.scores.kind,
        "max_tokens": manifest.tokenizer.max_tokens,
        "labels": read_labels(manifest),
        "files": manifest.files,
    }
    if as_json:
        click.echo(json.dumps(details, ensure_ascii=False))
        return
    for key, value in details.items():
        if key == "labels":
            value = f"{len(value)}: {', '.join(value[:20])}{', …' if len(value) > 20 else ''}"
        elif key == "files":
            value = ", ".join(value)
        click.echo(f"{key:20} {'none' if value is None else value}")


@models.command("verify", epilog="Example: vqa models verify vilt-shapes")
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@settings_options("models_dir")
def verify(name: str, as_json: bool, **flags: Any) -> None:
    """Check the files of the model NAME against their digests, load it and run real inferences.

    The exit code is 1 on a fault.
    """
    manifest = load_manifest(load_settings(**flags).models_dir, name)
    faults = manifest.faults()
    if not faults:
        faults = asyncio.run(_load_faults(manifest))
    if as_json:
        click.echo(json.dumps({"name": name, "ok": not faults, "faults": faults}))
    else:
        click.echo(f"{name}: " + ("ok" if not faults else "; ".join(faults)))
    if faults:
        raise click.exceptions.Exit(1)


@models.command("digest", epilog="Example: vqa models digest vilt-shapes")
@click.argument("name")
@settings_options("models_dir")
def digest(name: str, **flags: Any) -> None:
    """Accept the files of the model NAME as they are: compute the digests in its manifest anew.

    For a folder that you changed yourself; the model gets a new revision.
    """
    manifest = load_manifest(load_settings(**flags).models_dir, name)
    click.echo(f"{name}: revision {rewrite_digests(manifest.folder).revision}, was {manifest.revision}")


async def _load_faults(manifest: ModelManifest) -> list[str]:
    """What stops the model from being served; empty when a warm-up inference passed."""
    classifier = ViltClassifier(manifest, measured=False)
    try:
        await classifier.start()
    except Exception as error:  # noqa: BLE001 - whatever stops it from loading is the finding
        return [f"{type(error).__name__}: {error}"]
    finally:
        await classifier.stop()
    return []


def _summary(manifest: ModelManifest) -> dict[str, Any]:
    calibration = manifest.calibration
    return {
        "name": manifest.model.name,
        "kind": manifest.model.kind,
        "precision": manifest.source.precision,
        "revision": manifest.revision,
        "calibration": calibration.file if calibration else None,
        "demo": manifest.model.demo,
        "description": manifest.model.description,
    }
