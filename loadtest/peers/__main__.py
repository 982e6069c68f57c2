"""Measure this service side by side with its peers: `make bench-peers`, or

    python -m loadtest.peers --comparison same --model models/vilt-shapes [--rounds 7] [--only ours --only mosec]

Rounds of all contestants, one after the other, in an order that is shuffled every round, so that what the machine does
besides hits all of them alike. Results are saved after every row; `--resume` goes on where an interrupted run was, and
with more `--rounds` adds to a finished one.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import get_args

import click

from loadtest import report
from loadtest.peers.bench import Bench, CannotResumeError, code, versions
from loadtest.peers.contestants import ENVIRONMENTS, Contestant, contestants
from loadtest.peers.given import Comparison
from loadtest.peers.load import SCENARIOS, Load, Sizes
from loadtest.peers.measuring import Lengths
from loadtest.peers.rounds import Plan, expected
from loadtest.peers.running import RefusedError
from loadtest.server import ROOT
from service.backends.cpus import available_cpus
from service.evaluation.running.stopping import SignalError, ended_by_signals

ROUNDS = 7
SMALL = Lengths()
LARGE = Lengths(warm_up=3, steady=15, one=3, photos=6, ten=8, overload=8, lead_in=2.0, deadline_s=2.0)
# Where each is several times another, shorter windows tell it as well.
LARGE_HOUR = replace(LARGE, steady=10, photos=5, ten=6, overload=6)
MINIATURE = Lengths(warm_up=1, steady=1, one=1, photos=1, ten=1, overload=1, lead_in=0.0)
# Above this a model is one of production size, with 100 ms a question and not 2.
LARGE_BYTES = 50e6
SAME_MODEL = ROOT / "models" / "vilt-shapes"
HOUR_MODEL = ROOT / "build" / "vilt-b32-checkpoint"
OURS_INT8 = ROOT / "build" / "vilt-b32-random-int8"
OURS_FP32 = ROOT / "build" / "vilt-b32-random"
QUICK_ONLY = ("bare", "ours", "fastapi")


def _large(model: Path) -> bool:
    return any(file.stat().st_size > LARGE_BYTES for file in model.iterdir())


def _knows_drawings(model: Path) -> bool:
    """Whether the labels are colours and shapes: such a model says the same of every photograph."""
    labels = model / "labels.json"
    return labels.is_file() and len(json.loads(labels.read_text())) < 1000


def _lengths(comparison: Comparison, model: Path, quick: bool, seconds: int | None) -> Lengths:
    large = LARGE_HOUR if comparison == "hour" else LARGE
    lengths = MINIATURE if quick else large if _large(model) else SMALL
    return replace(lengths, steady=seconds, photos=seconds, ten=seconds, overload=seconds) if seconds else lengths


def _chosen(people: list[Contestant], only: tuple[str, ...]) -> list[Contestant]:
    names = [one.name for one in people]
    if unknown := [name for name in only if name not in names]:
        raise click.BadParameter(
            f"no contestant is named {', '.join(unknown)}; there are {', '.join(names)}", param_hint="--only"
        )
    return [one for one in people if not only or one.name in only]


def _folder(_context: click.Context, option: click.Parameter, folder: Path | None) -> Path | None:
    if folder is not None and not folder.is_dir():
        raise click.BadParameter(
            f"{folder} is no folder; make bench-peers makes those of ViLT-B/32's size", param=option
        )
    return folder


FOLDER = click.Path(path_type=Path)


@click.command()
@click.option("--comparison", type=click.Choice(get_args(Comparison)), default="same", show_default=True)
@click.option("--model", type=FOLDER, callback=_folder, help="Folder that the peers serve; default by comparison.")
@click.option("--int8", type=FOLDER, callback=_folder, help="In `hour`, this service's model folder, int8.")
@click.option("--fp32", type=FOLDER, callback=_folder, help="In `hour`, this service's model folder, fp32.")
@click.option("--rounds", type=click.IntRange(1), help=f"Default {ROUNDS}.")
@click.option("--only", multiple=True, metavar="NAME", help="Of the contestants; repeatable.")
@click.option("--scenarios", multiple=True, type=click.Choice(SCENARIOS), help="In every round; repeatable.")
@click.option("--seconds", type=click.IntRange(1), help="Of each window, but that of `one`.")
@click.option("--quick", is_flag=True, help="A miniature without the peers' environments: measures nothing.")
@click.option("--resume", is_flag=True, help="Go on where the results on disk end.")
@click.option("--environments", type=FOLDER, default=ENVIRONMENTS, help="Of the peers; default build/peers.")
@click.option("--force", is_flag=True, help="Measure anew in place of the results on disk; --resume wins.")
@report.label_option
@report.results_option
def main(
    comparison: Comparison,
    model: Path | None,
    int8: Path | None,
    fp32: Path | None,
    rounds: int | None,
    only: tuple[str, ...],
    scenarios: tuple[str, ...],
    seconds: int | None,
    quick: bool,
    resume: bool,
    force: bool,
    environments: Path,
    results: Path,
) -> None:
    """Measure this service side by side with its peers."""
    if shutil.which("wrk") is None:
        raise click.ClickException("wrk is missing (Debian package wrk)")
    model = model or (SAME_MODEL if comparison == "same" else HOUR_MODEL)
    folders = [model, int8 or OURS_INT8, fp32 or OURS_FP32]
    if missing := [folder for folder in (folders if comparison == "hour" else folders[:1]) if not folder.is_dir()]:
        raise click.ClickException(f"no folder {missing[0]}; make bench-peers makes those of ViLT-B/32's size")
    everyone = contestants(comparison, *folders)
    people = _chosen(everyone, only or (QUICK_ONLY if quick else ()))
    lengths = _lengths(comparison, model, quick, seconds)
    plan = Plan(comparison, model, None if quick else environments, lengths, _knows_drawings(model), available_cpus())
    machine = report.Machine().known | {"client": _wrk_version()}
    bench = Bench(plan, people, everyone, scenarios or None, results, quick, machine, code())
    bench.versions = versions(people, plan)
    if resume:
        try:
            bench.resume()
        except CannotResumeError as error:
            raise click.ClickException(str(error)) from None
    elif bench.path.exists() and not force:
        raise click.ClickException(
            f"{bench.path} is there: --resume goes on with it, --force replaces it, --label TEXT writes beside it"
        )
    with tempfile.TemporaryDirectory(prefix="peers-load-") as folder:
        load = Load(Path(folder), Sizes(16, 2, 4) if quick else Sizes())
        try:
            answers = expected(plan, load)
            right = {one.name: expected(plan, load, one.model) if one.int8 else answers for one in people}
        except RefusedError as why:
            raise click.ClickException(f"the bare loop: {why}") from None
        click.echo(f"right answers: {', '.join(f'{one.text} ({one.score:.4f})' for one in answers)}")
        # Who stops this program stops the contestant's server, too.
        try:
            with ended_by_signals():
                bench.run(rounds or (1 if quick else ROUNDS), load, right, click.echo)
        except SignalError as error:
            sys.exit(128 + error.signal)
    bench.save(echo=True)


def _wrk_version() -> str:
    return subprocess.run(["wrk", "-v"], capture_output=True, text=True).stdout.split("[")[0].strip()


if __name__ == "__main__":
    main()
