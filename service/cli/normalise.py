"""`vqa normalise`: the official answer normalisation, for scripts."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

import click

from service.answers import normalise


@click.command("normalise", epilog="Example: echo '\"The two dogs.\"' | vqa normalise --json")
@click.argument("texts", nargs=-1)
@click.option(
    "--code", type=click.Choice(["2021", "2016"]), default="2021", show_default=True, help="Which official code."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON string a line, in and out.")
def normalise_command(texts: tuple[str, ...], code: str, as_json: bool) -> None:
    """Normalise TEXTS, or the lines of standard input (UTF-8), as the official VQA evaluation does."""
    for number, text in enumerate(texts or _standard_input(), 1):
        answer = normalise(_json_string(text, number) if as_json else text, code)
        click.echo(json.dumps(answer) if as_json else answer)


def _standard_input() -> Iterator[str]:
    if sys.stdin is None:
        raise click.ClickException("there is no standard input; give the texts as arguments")
    for number, line in enumerate(sys.stdin.buffer, 1):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise click.ClickException(f"line {number}: not UTF-8 (at byte {error.start})") from error


def _json_string(text: str, number: int) -> str:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise click.ClickException(f"line {number}: not JSON") from error
    if not isinstance(value, str):
        raise click.ClickException(f"line {number}: not a JSON string")
    return value
