"""The command `vqa` and how it fails: one line on standard error, exit code 1 (2 for wrong usage)."""

from __future__ import annotations

import sys

import click

import service
from service.backends import ManifestError
from service.cli.ask import ask
from service.cli.models import models
from service.cli.normalise import normalise_command
from service.cli.serve import serve
from service.errors import SettingsError, VQAError


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(service.__version__, prog_name="vqa")
def cli() -> None:
    """Visual question answering: ask about pictures, serve answers, look after models."""


cli.add_command(serve)
cli.add_command(ask)
cli.add_command(models)
cli.add_command(normalise_command)


def main() -> None:
    """Run the command line; what went wrong is one clear line, never a traceback."""
    try:
        cli(prog_name="vqa")
    except VQAError as error:
        place = f" ({error.field})" if error.field else ""
        _fail(f"{error.code.value}{place}: {error.detail}")
    except (SettingsError, ManifestError) as error:
        _fail(str(error))


def _fail(message: str) -> None:
    print(f"vqa: {message}", file=sys.stderr)
    sys.exit(1)


if __name__ == "__main__":
    main()
