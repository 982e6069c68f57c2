"""What every measured command shares: its options, and its results as JSON and as a Markdown table."""

from __future__ import annotations

import json
import os
import platform
import resource
import shlex
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import click
import numpy as np
import onnxruntime

from loadtest.server import EMBEDDED, ROOT
from service.backends.cpus import available_cpus

F = TypeVar("F", bound=Callable[..., Any])
RESULTS = Path("loadtest") / "results"
Row = Mapping[str, object]


@dataclass(frozen=True)
class Table:
    """Rows with the same columns each, what they are called, and what is to be known when reading them."""

    name: str
    text: str
    rows: Sequence[Row]


_LABEL = f"{__name__}.label"


def _remember_label(context: click.Context, _: click.Parameter, label: str | None) -> None:
    context.meta[_LABEL] = label


def _make_folder(_context: click.Context, _option: click.Parameter, folder: Path) -> Path:
    """Make the folder of the results: before minutes of measuring, not after."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise click.BadParameter(f"{folder}: {error.strerror}") from None
    return folder


quick_option = click.option("--quick", is_flag=True, help="A miniature: shows that it works, measures nothing.")
results_option = click.option(
    "--results",
    type=click.Path(file_okay=False, path_type=Path),
    default=ROOT / RESULTS,
    callback=_make_folder,
    help=f"Folder of the results; default {RESULTS}.",
)
"""Where results go; for commands that measure no server."""
label_option = click.option(
    "--label",
    expose_value=False,
    callback=_remember_label,
    metavar="TEXT",
    help="A part of the results' name, to keep them beside those with other settings.",
)


def options(function: F) -> F:
    """The options of every measured command."""
    for option in reversed(
        (
            click.option(
                "--model", default=EMBEDDED, show_default=True, help="An embedded model, or a model's folder."
            ),
            quick_option,
            click.option("--setting", "settings", multiple=True, metavar="VQA_X=1", help="For the server; repeatable."),
            label_option,
            results_option,
        )
    ):
        function = option(function)
    return function


class Machine:
    """Where the figures come from, and how much of it others used while they were taken; made before measuring."""

    def __init__(self) -> None:
        self.known = _facts()
        self._started, self._busy, self._own = time.monotonic(), busy_s(), own_cpu_s()

    def facts(self) -> dict[str, Any]:
        """Everything, after the server has stopped: only then is its time counted as ours."""
        seconds = time.monotonic() - self._started
        others = (busy_s() - self._busy) - (own_cpu_s() - self._own)
        return self.known | {"seconds": round(seconds, 1), "cores_used_by_others": round(max(0, others) / seconds, 2)}


def _facts() -> dict[str, Any]:
    return {
        "when": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "cores": available_cpus(),
        "cpu": _cpu_name(),
        "load_average_before": round(os.getloadavg()[0], 2),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "onnxruntime": onnxruntime.__version__,
        "numpy": np.__version__,
    }


def write(
    name: str,
    model: str,
    folder: Path,
    *,
    machine: Machine | Mapping[str, Any],
    summary: Row,
    rows: Sequence[Row],
    quick: bool,
    module: str | None = None,
    tables: Mapping[str, Sequence[Row]] | None = None,
    more: Mapping[str, Any] | None = None,
    echo: bool = True,
) -> Path:
    """Write `NAME[-LABEL]-MODEL.json` and `.md`; returns the JSON's path.

    Args:
        name: of the command.
        model: as it was given; only its last part is told.
        folder: where to.
        machine: made before the measurement; or the facts themselves.
        summary: the figures that are read first.
        rows: all that was measured, with the same columns each.
        quick: whether this was the miniature.
        module: of the command below `loadtest`, where its name is another.
        tables: more tables between the summary and the rows, by their titles.
        more: what else the JSON holds.
        echo: whether to print the page.
    """
    short = Path(model).name
    data = {**_head(module or name, machine, quick), "model": short, "summary": summary, "rows": rows}
    data |= ({"tables": tables} if tables else {}) | dict(more or {})
    lines = [*_title(f"{name}: {short}", data), *summary_table(summary)]
    for title, each in (tables or {}).items():
        lines += ["", f"## {title}", "", *table(each)]
    if rows:
        lines += ["", *(["## All rows", ""] if tables else []), *table(rows)]
    return _write(path(name, model, folder), data, lines, echo=echo)


def path(name: str, model: str, folder: Path) -> Path:
    """Where `write` writes the JSON."""
    context = click.get_current_context(silent=True)
    label = context.meta.get(_LABEL) if context else None
    return folder / ("-".join(filter(None, (name, label, Path(model).name))) + ".json")


def write_page(
    name: str,
    folder: Path,
    *,
    machine: Machine,
    summary: Row,
    findings: Sequence[str],
    tables: Sequence[Table],
    quick: bool,
) -> Path:
    """Write `NAME.json` and `.md` of a command with many tables; returns the JSON's path.

    Args:
        name: of the command.
        folder: where to.
        machine: made before the work.
        summary: what went in.
        findings: sentences that are read first.
        tables: what was found.
        quick: whether this was the miniature.
    """
    data = {
        **_head(name, machine, quick),
        "findings": findings,
        "summary": summary,
        "tables": {each.name: {"text": each.text, "rows": each.rows} for each in tables},
    }
    lines = [*_title(name, data), *(f"- {finding}" for finding in findings)]
    lines += ["", "## What went in", "", *summary_table(summary)]
    for each in tables:
        lines += ["", f"## {each.name}", "", each.text, "", *table(each.rows)]
    return _write(folder / f"{name}.json", data, lines)


def table(rows: Sequence[Row]) -> list[str]:
    """Rows with the same columns each as the lines of a Markdown table."""
    columns = list(rows[0])
    lines = [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    return lines + [f"| {' | '.join(_cell(row.get(column)) for column in columns)} |" for row in rows]


def summary_table(summary: Row) -> list[str]:
    """Figures by name as the lines of a Markdown table."""
    return ["| figure | |", "|---|---|", *(f"| {key} | {_cell(value)} |" for key, value in summary.items())]


def _head(name: str, machine: Machine | Mapping[str, Any], quick: bool) -> dict[str, Any]:
    facts = machine.facts() if isinstance(machine, Machine) else dict(machine)
    return {"command": _command(name), "quick": quick, "machine": facts}


def _title(title: str, data: Mapping[str, Any]) -> list[str]:
    lines = [f"# {title}", ""]
    if data["quick"]:
        lines += ["A miniature (`--quick`): these figures say nothing.", ""]
    facts = "; ".join(f"{key} {value}" for key, value in data["machine"].items())
    return [*lines, f"`{data['command']}`", "", facts, ""]


def _write(file: Path, data: Mapping[str, Any], lines: Sequence[str], *, echo: bool = True) -> Path:
    _replace(file, json.dumps(data, indent=1, default=float) + "\n")
    text = "\n".join(lines) + "\n"
    _replace(file.with_suffix(".md"), text)
    if echo:
        click.echo(text)
    return file


def _replace(path: Path, text: str) -> None:
    """Write a file in one move: who interrupts finds the old one or the new one."""
    part = path.with_name(f"{path.name}.part")
    part.write_text(text)
    part.replace(path)


def _command(name: str) -> str:
    """The command line with no path of this machine in it."""
    words = iter(sys.argv[1:])
    kept: list[str] = []
    for word in words:
        if word == "--results":
            next(words, None)
        elif not word.startswith("--results="):
            kept.append(Path(word).name if "/" in word else word)
    return shlex.join(["python", "-m", f"loadtest.{name}", *kept])


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_cell(item)}" for key, item in value.items()) or "none"
    return "" if value is None else " ".join(str(value).replace("|", "\\|").split())


def busy_s() -> float:
    """CPU time of all processes and of the host's other guests since the machine started, in seconds."""
    user, nice, system, _, _, irq, softirq, steal, *_ = Path("/proc/stat").read_text().split()[1:]
    return sum(map(int, (user, nice, system, irq, softirq, steal))) / os.sysconf("SC_CLK_TCK")


def own_cpu_s() -> float:
    """CPU time of this process and of the children that have ended, in seconds."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


# Instructions that decide how fast a model is, and 8-bit ones of it above all.
_WIDE_INSTRUCTIONS = {"AVX2": {"avx2"}, "AVX-512": {"avx512f"}, "VNNI": {"avx512_vnni", "avx_vnni"}}


def _cpu_name() -> str:
    """Name, generation and instructions: in virtual machines many generations have the same name."""
    first = Path("/proc/cpuinfo").read_text().split("\n\n")[0]
    said = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in first.splitlines())}
    if "model name" not in said:
        return platform.machine()
    flags = set(said.get("flags", "").split())
    has = " ".join(name for name, any_of in _WIDE_INSTRUCTIONS.items() if flags & any_of)
    return f"{said['model name']}, family {said.get('cpu family')} model {said.get('model')}, {has}".rstrip(", ")
