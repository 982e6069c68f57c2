"""`vqa score`: a results file in a data set's official format, scored as its authors' code does."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from service.answers.accuracy import ACCURACY_CODES
from service.cli.options import Command
from service.scoring.datasets import DATASETS, PROGRAMS, evaluator
from service.scoring.rules import OFFICIAL
from service.scoring.scores import Inputs, Scores, leaves

_FILE = click.Path(path_type=Path)
_FURTHER = frozenset().union(*(dataset.takes for dataset in DATASETS.values()))


def _file(name: str, help_text: str, *, required: bool = False) -> Callable[[Command], Command]:
    return click.option(name, type=_FILE, metavar="FILE", help=help_text, required=required)


@click.command(
    "score",
    epilog="Example: vqa score --dataset vqav2 --annotations v2_mscoco_val2014_annotations.json --results results.json",
)
@click.option("--dataset", required=True, type=click.Choice(sorted(DATASETS)), help="Whose format and rules.")
@_file("--annotations", "The right answers, in the data set's own format; .gz is read, too. GQA: the questions.")
@_file("--results", "The answers to score, in the data set's results format.", required=True)
@_file("--questions", "The questions, where the format keeps them apart (needed for multiple choice).")
@click.option(
    "--code",
    type=click.Choice(ACCURACY_CODES),
    default="2021",
    show_default=True,
    help="Which VQA code: the official 2021 (normalises where annotators differ) or 2016; always normalises all.",
)
@click.option(
    "--like",
    type=click.Choice((OFFICIAL, *PROGRAMS)),
    default=OFFICIAL,
    show_default=True,
    help="Whose evaluator: the data set's own, or this program's.",
)
@_file(
    "--question-ids",
    "VQA formats and jsonl: a JSON array of the only question ids to score; the results still cover the whole set.",
)
@_file("--pairs", "VQA v2: the complementary pairs; how often both questions of a pair are right.")
@_file("--train", "AdVQA: the annotations that give the majority baselines (default: the ones scored).")
@_file("--answerability", "VizWiz: results of the answerability task.")
@_file("--thresholds", "reliable-vqa: results on which the thresholds of effective reliability are chosen.")
@_file("--choices", "GQA: valid and plausible answers.")
@_file("--scenes", "GQA: scene graphs, for grounding.")
@_file("--attentions", "GQA: attention maps, for grounding.")
@click.option("--per-question", is_flag=True, help="Add each question's score to the JSON, as `evalQA` (percent).")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def score_command(dataset: str, per_question: bool, as_json: bool, **inputs: Any) -> None:
    """Score a results file as the data set's authors do, to the last digit."""
    _check(dataset, inputs)
    scores = evaluator(dataset)(Inputs(**inputs))
    if as_json or per_question:
        document = scores.document()
        if per_question:
            document["evalQA"] = {
                str(key): round(scores.percent([value]), 2) for key, value in scores.per_question.items()
            }
        click.echo(json.dumps(document, ensure_ascii=False))
    else:
        _print(scores)
    for note in scores.notes:
        click.echo(f"note: {note}", err=True)


def _check(dataset: str, inputs: dict[str, Any]) -> None:
    """Refuse what would be left aside in silence; GQA's one file may come under either name."""
    chosen, like = DATASETS[dataset], inputs["like"]
    if dataset == "gqa" and inputs["annotations"] is None:
        inputs["annotations"] = inputs["questions"]
    if inputs["annotations"] is None:
        raise click.UsageError("Missing option '--annotations'.")
    for name in _FURTHER:
        if inputs[name] is not None and name not in chosen.takes:
            raise click.UsageError(f"--{name.replace('_', '-')} is not for {dataset}; leave it out")
    if like != OFFICIAL and like not in chosen.like:
        known = ", ".join(chosen.like) or "none"
        raise click.UsageError(f"{like} has no evaluator for {dataset}; there are: {known}")
    if inputs["code"] != "2021" and not (chosen.codes and like == OFFICIAL):
        raise click.UsageError(f"--code makes no difference to {dataset if like == OFFICIAL else like}; leave it out")


def _print(scores: Scores) -> None:
    """For a person: what the official program prints, or a table."""
    if scores.official:
        click.echo("\n".join(scores.official))
        return
    table = Table(box=None, show_header=False)
    table.add_column(overflow="fold")
    table.add_column(justify="right")
    table.add_row("questions", f"{scores.questions:,}")
    if scores.accuracy is not None:
        table.add_row("accuracy", f"{scores.accuracy:.2f} %")
    for title, group in (("answer type", scores.per_answer_type), ("question type", scores.per_question_type)):
        for kind, value in group.items():
            table.add_row(Text(f"{title}: {kind}"), f"{value:.2f} %")  # a type's name is no markup
    for name, value in leaves(scores.metrics, "."):
        table.add_row(Text(name), Text(f"{value:.2f}" if isinstance(value, float) else str(value)))
    Console().print(table)
