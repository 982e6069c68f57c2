"""The commands together, and their errors in one line; exit code 1 (2 for wrong usage)."""

from __future__ import annotations

import codecs
import io
import sys

import click

import service
from service.answers import CalibrationError
from service.backends import ManifestError
from service.cli.ask import ask
from service.cli.calibrate import calibrate_command
from service.cli.evaluate import eval_command
from service.cli.models import models
from service.cli.normalise import normalise_command
from service.cli.report import report_command
from service.cli.score import score_command
from service.cli.serve import serve
from service.errors import DataError, MissingExtraError, SettingsError, VQAError, one_line


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(service.__version__, prog_name="vqa")
def cli() -> None:
    """Visual question answering: ask about pictures, serve answers, look after models."""


cli.add_command(serve)
cli.add_command(ask)
cli.add_command(models)
cli.add_command(normalise_command)
cli.add_command(eval_command)
cli.add_command(score_command)
cli.add_command(report_command)
cli.add_command(calibrate_command)


def run() -> None:
    """Run the command line; what went wrong is one clear line."""
    codecs.register_error("vqa-escape", _escape)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # What a stream cannot show is written as JSON escapes it, so that JSON stays JSON.
            stream.reconfigure(errors="vqa-escape")
    try:
        # In this mode click gives back the code of an `Exit` where it would else end the process.
        code = cli(prog_name="vqa", standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
        if code:
            sys.exit(code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        raise KeyboardInterrupt from None
    except VQAError as error:
        place = f" ({error.field})" if error.field else ""
        _fail(f"{error.code.value}{place}: {error.detail}")
    except (CalibrationError, DataError, MissingExtraError, SettingsError, ManifestError) as error:
        _fail(str(error))
    except BrokenPipeError:
        # Whoever read our output has enough; nothing more can be written, not even at exit.
        sys.stdout = io.StringIO()
        sys.exit(1)
    except OSError as error:
        sys.stdout = io.StringIO()
        reason = error.strerror or str(error)
        _fail(f"{error.filename}: {reason}" if error.filename else reason)


def _escape(error: UnicodeError) -> tuple[str, int]:
    """Letters that a stream cannot show, as JSON's escapes."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2)), error.end


def _fail(message: str) -> None:
    click.echo(f"vqa: {one_line(message)}", err=True)
    sys.exit(1)
