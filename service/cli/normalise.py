"""`vqa normalise`: the official answer normalisation, for scripts."""

from __future__ import annotations

import json
import sys

import click

from service.answers import normalise


@click.command("normalise", epilog="Example: echo '\"The two dogs.\"' | vqa normalise --json")
@click.argument("texts", nargs=-1)
@click.option(
    "--code",
    type=click.Choice(["2021", "2016"]),
    default="2021",
    show_default=True,
    help="Which official code.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON string a line, in and out.")
def normalise_command(texts: tuple[str, ...], code: str, as_json: bool) -> None:
    """Normalise TEXTS, or the lines of standard input, as the official VQA evaluation does."""
    lines = texts or sys.stdin
    for number, line in enumerate(lines, 1):
        text = line if texts else line.rstrip("\n")
        if as_json:
            try:
                text = json.loads(text)
            except ValueError as error:
                raise click.ClickException(f"line {number}: not JSON: {error}") from error
            if not isinstance(text, str):
                raise click.ClickException(f"line {number}: not a JSON string")
        answer = normalise(text, code)
        click.echo(json.dumps(answer) if as_json else answer)
