"""`vqa eval`: a model run over a data set, scored as the data set's authors do."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from service.answers import ACCURACY_CODES
from service.backends.cpus import available_cpus
from service.cli.options import settings_options
from service.cli.parameters import Filled, Place, Seconds, Template
from service.cli.progress import watcher
from service.errors import DataError, one_line
from service.evaluation.complete import check_libraries, complete
from service.evaluation.layout import BLIND
from service.evaluation.running.asker import Asker, InterruptedRunError, RunError
from service.evaluation.running.datasets import FORMATS, check_pictures, first_questions, load, select, with_pictures
from service.evaluation.running.evaluate import Plan, Stopped
from service.evaluation.running.fingerprint import Choices
from service.evaluation.running.formats.base import NoFileError, Sources
from service.evaluation.running.local import LocalAsker
from service.evaluation.running.remote import ServerAsker
from service.evaluation.running.run_files import RunFiles
from service.evaluation.running.runner import Pace
from service.evaluation.running.stopping import SignalError
from service.evaluation.running.views import make_views
from service.scoring.datasets import DATASETS
from service.settings import load_settings
from service.telemetry.logs import configure_logging

_FILE = Place(path_type=Path, exists=True)
_SERVER_REQUESTS = 4
# Settings of a model that is loaded here.
_LOCAL = ("models_dir", "device", "threads")


@click.command(
    "eval",
    epilog="Example: vqa eval --dataset vqav2 --questions questions.json --annotations annotations.json "
    "--images val2014 --out runs/val2014 --blind blank",
)
@click.option("--dataset", "name", type=click.Choice(list(FORMATS)), required=True, help="Whose format and rules.")
@click.option("--questions", type=_FILE, help="The questions, where the format keeps them apart.")
@click.option("--annotations", type=_FILE, help="The right answers, or the one file of the data set.")
@click.option("--images", type=_FILE, help="Folder of the pictures [default: images beside the file, or its folder].")
@click.option(
    "--image-name", type=Template(), metavar="TEMPLATE", help="A picture's name, as COCO_val2014_{image_id:012d}.jpg."
)
@click.option("--skip-missing", is_flag=True, help="Leave out questions whose picture is not there.")
@click.option("--out", type=Place(path_type=Path), required=True, help="Folder of the run; resumed if begun.")
@click.option("--fresh", is_flag=True, help="Throw away what an earlier run left in the folder.")
@click.option("--server", type=Filled(), metavar="URL", help="Ask this server instead of loading the model here.")
@click.option("--api-key-file", type=_FILE, help="File that holds the key for the server.")
@click.option("--model", "--classifier", "model", type=Filled(), metavar="NAME", help="The model that answers.")
@click.option("--blind", type=click.Choice(BLIND), multiple=True, help="Ask again without seeing; may be repeated.")
@click.option(
    "--only", metavar="KEY=VALUE", multiple=True, help="Only questions of which this is true; may be repeated."
)
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Only the first so many questions.")
@click.option("--concurrency", type=click.IntRange(1, 256), metavar="N", help="Pictures under way at once.")
@click.option(
    "--patience",
    type=Seconds(0),
    default=60,
    show_default=True,
    metavar="SECONDS",
    help="How long a server may stay away before the run stops.",
)
@click.option("--code", type=click.Choice(ACCURACY_CODES), default="2021", show_default=True, help="Which VQA code.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the views shuffled and noise.")
@click.option("--quiet", is_flag=True, help="Nothing on standard error.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@settings_options("policy", *_LOCAL)
def eval_command(name: str, out: Path, quiet: bool, as_json: bool, **flags: Any) -> None:
    """Ask a model all questions of a data set, and score the answers with the data set's own evaluator.

    The folder OUT gets every answer as it comes (predictions.jsonl), and at the end the results in the official format
    (results.json), a table of all (predictions.parquet), the scores (evaluation.json) and a report (report.html).
    Stopped at any moment, the same command goes on where it was.
    """
    logging.disable(logging.CRITICAL) if quiet else configure_logging("error", "text")
    say = _unsaid if quiet else _say
    try:
        plan, make_asker = _prepare(name, out, flags, say)
        outcome = complete(plan, make_asker, watcher(quiet=quiet), say)
    except NoFileError as error:
        raise click.UsageError(str(error)) from error
    except InterruptedRunError as error:
        raise click.ClickException(one_line(f"{str(error).rstrip('.')}. {_kept(out)}")) from error
    except RunError as error:
        raise click.ClickException(one_line(str(error))) from error
    except SignalError as error:
        say("stopped before anything was asked")
        raise click.exceptions.Exit(128 + error.signal) from error
    finally:
        logging.disable(logging.NOTSET)
    if isinstance(outcome, Stopped):
        if not quiet:
            done = f"stopped with {outcome.answered:,} of {outcome.questions:,} questions answered"
            click.echo(f"{done}. {_kept(out)}", err=True)
        raise click.exceptions.Exit(128 + outcome.signal)
    if as_json:
        click.echo(json.dumps(outcome, ensure_ascii=False))
    else:
        _print(outcome)
    counts = [view["counts"] for view in outcome["views"].values()]
    if all(each["failed"] == each["asked"] for each in counts):
        raise click.exceptions.Exit(1)


def _prepare(
    name: str, out: Path, flags: dict[str, Any], say: Callable[[str], None]
) -> tuple[Plan, Callable[[], Asker]]:
    """Everything that can be checked before any work."""
    check_libraries()
    if flags["code"] != "2021" and not DATASETS[name].codes:
        raise click.UsageError(f"--code makes no difference to {name}; leave it out")
    server = flags["server"]
    local = {setting: flags[setting] for setting in _LOCAL}
    if server and (given := [setting for setting, value in local.items() if value is not None]):
        raise click.UsageError(f"--{given[0].replace('_', '-')} is of a model that is loaded here; leave out --server")
    if flags["api_key_file"] and not server:
        raise click.UsageError("--api-key-file is for a server; give --server, too")
    for option in ("questions", "annotations", "images", "api_key_file"):
        if flags[option] is not None and flags[option].resolve().is_relative_to(out.resolve()):
            raise click.UsageError(f"--{option.replace('_', '-')} lies within --out, whose files are overwritten")
    concurrency = flags["concurrency"] or (_SERVER_REQUESTS if server else 2 * available_cpus())
    sources = Sources(flags["questions"], flags["annotations"], flags["images"], flags["image_name"])
    data = select(load(name, sources), [_pair(text) for text in flags["only"]])
    if flags["skip_missing"]:
        data, left_out = with_pictures(data)
        if left_out:
            say(f"{left_out:,} questions are left out: their pictures are missing")
    data = first_questions(data, flags["limit"])
    check_pictures(data)
    views = make_views(flags["blind"], [example.image for example in data.examples], flags["seed"])
    policy: str | None
    if server:
        key, policy = _key(flags["api_key_file"]), flags["policy"]
        options = {"key": key, "policy": policy, "model": flags["model"], "concurrency": concurrency}

        def make_asker() -> Asker:
            return ServerAsker(server, **options)
    else:
        settings = load_settings(policy=flags["policy"], classifier=flags["model"], **local)
        policy = settings.policy

        def make_asker() -> Asker:
            return LocalAsker(settings, concurrency)

    model = flags["model"] if server else None
    choices = Choices(policy, model, flags["only"], flags["limit"], flags["seed"])
    pace = Pace(concurrency, flags["patience"])
    plan = Plan(data.settled(), views, RunFiles(out), pace, choices, flags["code"], flags["fresh"])
    return plan, make_asker


def _say(text: str) -> None:
    click.echo(text, err=True)


def _unsaid(_: str) -> None:
    """Nothing: the run is quiet."""


def _kept(folder: Path) -> str:
    return f"What was answered is kept in {folder}; the same command again goes on from there."


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise click.UsageError(f"--only {text!r}: must be KEY=VALUE")
    return key, value


def _key(path: Path | None) -> str | None:
    if path is None:
        return None
    try:
        key = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeError) as error:
        raise DataError(path, "no key can be read from it") from error
    if not key or len(key.split()) > 1:
        raise DataError(path, "it must hold one key and nothing else")
    return key


def _print(document: dict[str, Any]) -> None:
    """The views side by side."""
    views: dict[str, dict[str, Any]] = document["views"]
    table = Table(box=None)
    table.add_column(document["dataset"], overflow="fold")
    for view in views:
        table.add_column(view, justify="right")

    def add(row: str, cells: Iterable[str]) -> None:
        # Plain texts: a type or a code may look like markup.
        table.add_row(Text(row), *map(Text, cells))

    scores = [view["scores"] for view in views.values()]
    counts = [view["counts"] for view in views.values()]
    add("accuracy", (_percent(each["accuracy"]) for each in scores))
    kinds = "per_answer_type" if scores[0]["per_answer_type"] else "per_question_type"
    for kind in scores[0][kinds]:
        add(f"  {kind}", (_percent(each[kinds].get(kind)) for each in scores))
    for row in ("asked", "unanswerable", "abstained", "failed"):
        add("questions" if row == "asked" else row, (f"{each[row]:,}" for each in counts))
    for code in dict.fromkeys(code for each in counts for code in each["failed_by_code"]):
        add(f"  {code}", (f"{each['failed_by_code'].get(code, 0):,}" for each in counts))
    sure = [view["mean_confidence"] for view in views.values()]
    add("mean confidence", ("-" if mean is None else f"{mean:.4f}" for mean in sure))
    Console().print(table)


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f} %"
