"""`vqa models add`: handed on to the recipe, which runs in the export environment (torch, Optimum)."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

import click

import service

INTERPRETER = "VQA_EXPORT_PYTHON"
_ROOT = Path(service.__file__).resolve().parent.parent
_RECIPE = "models.vilt.add"
_HELP = ("-h", "--help")


class NoExportEnvironmentError(click.ClickException):
    """What makes models is not there."""

    exit_code = 2


@click.command(
    "add",
    context_settings={"ignore_unknown_options": True},
    add_help_option=False,
    short_help="Make a model of a ViLT checkpoint, from the hub or a folder.",
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def add_command(arguments: tuple[str, ...]) -> None:
    """Make a model of a ViLT checkpoint, from the hub or a folder.

    Its arguments are the recipe's, which says and checks them itself. This process becomes the recipe's, so that
    output, exit code and signals are its own.
    """
    if not (_ROOT / "models" / "vilt" / "add").is_dir():
        raise NoExportEnvironmentError(
            "the recipes are not part of an installed package; run this from a clone of the repository"
        )
    python = sys.executable if any(word in arguments for word in _HELP) else export_python()
    path = os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH"))))
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    # -P: the current folder may have modules of the same names.
    try:
        os.execve(python, [python, "-P", "-m", _RECIPE, *arguments], os.environ | {"PYTHONPATH": path})
    except OSError as error:
        raise NoExportEnvironmentError(f"{python} cannot be run: {error.strerror}") from error


def export_python() -> str:
    """The interpreter of the export environment: this one, `VQA_EXPORT_PYTHON`, or that of `make install-export`.

    Raises:
        NoExportEnvironmentError: there is none.
    """
    if find_spec("torch") and find_spec("optimum"):
        return sys.executable
    named = os.environ.get(INTERPRETER)
    python = named or str(_ROOT / ".venv-export" / "bin" / "python")
    if os.access(python, os.X_OK) and Path(python).is_file():
        return python
    wrong = f"{INTERPRETER} is {named}, which is no program" if named else "it is not there"
    raise NoExportEnvironmentError(
        f"the export environment (torch, Optimum) makes models, and {wrong}: make install-export"
    )
