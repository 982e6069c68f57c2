"""The report on a run, and the comparison of several: one page that needs nothing else, and its figures as JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from service.errors import DataError
from service.evaluation.layout import PAGE
from service.evaluation.reporting.bootstrap import Bootstrap
from service.evaluation.reporting.examples import KINDS, choose, show
from service.evaluation.reporting.figures import paired_figures, run_figures, sureness
from service.evaluation.reporting.page import render
from service.evaluation.reporting.predictions import Run, read_run
from service.files import json_bytes, write_whole

_FORMAT: Final = "figures of vqa report"
_BEGIN: Final = f'{{\n "format": "{_FORMAT}",'


def write_report(folder: Path) -> None:
    """Write report.html and report.json into a run folder, each whole or not at all.

    Raises:
        DataError: the folder is no run that came to its end, or it cannot be written to.
        MissingExtraError: a library of the extra `eval` is not installed.
    """
    _write_run(read_run(folder), folder / PAGE)


def write_run_report(run: Run, page: Path) -> dict[str, Any]:
    """Write the report on one run to `page`, and its figures beside it (`.json` in the place of `.html`).

    Returns:
        The figures.

    Raises:
        DataError: a file cannot be written, or the figures would overwrite something else.
        MissingExtraError: as `write_report`.
    """
    _check_free(page)
    return _write_run(run, page)


def _write_run(run: Run, page: Path) -> dict[str, Any]:
    figures: dict[str, Any] = _without_nan(run_figures(run, Bootstrap()))
    found = sureness(run.main)
    score = run.main.numbers("confidence") if found is None else found[1]
    examples = list(show(run.main, choose(run.main, score), run.folder))
    _write(page, render("report.html", figures=figures, examples=examples, kinds=KINDS), figures)
    return figures


def comparison_figures(runs: Sequence[Run]) -> dict[str, Any]:
    """The figures of several runs, and the paired bootstrap of the first against each other, view by view."""
    first, *others = runs
    bootstrap = Bootstrap()
    pairs = [
        {
            "run": number,
            "label": other.label,
            "view": name,
            "pair": paired_figures(first.views[name], other.views[name], bootstrap),
        }
        for number, other in enumerate(others, 1)
        for name in first.views
        if name in other.views
    ]
    figures: dict[str, Any] = _without_nan({"runs": [run_figures(run, bootstrap) for run in runs], "pairs": pairs})
    return figures


def write_comparison(runs: Sequence[Run], page: Path) -> dict[str, Any]:
    """Write the page that compares two or more runs, and its figures beside it.

    Returns:
        The figures, as `comparison_figures`.

    Raises:
        DataError: as `write_run_report`.
        MissingExtraError: as `write_report`.
    """
    _check_free(page)
    figures = comparison_figures(runs)
    _write(page, render("comparison.html", figures=figures), figures)
    return figures


def _without_nan(value: Any) -> Any:
    """The same with None in the place of what is not a number: JSON has none, and a page shows both alike."""
    if isinstance(value, Mapping):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _check_free(page: Path) -> None:
    """Make sure that the figures' file is not there, or holds figures: `questions.json` may be beside a page, too."""
    path = page.with_suffix(".json")
    try:
        with path.open("rb") as file:
            begun = file.read(len(_BEGIN))
    except FileNotFoundError:
        return
    except OSError as error:
        raise DataError(path, f"it cannot be read: {error.strerror}") from error
    if begun != _BEGIN.encode():
        raise DataError(path, f"it holds no figures, which would overwrite it; give {page.name} another name")


def _write(page: Path, html: bytes, figures: Mapping[str, Any]) -> None:
    # The larger one first: where it finds no room, nothing is changed.
    write_whole(page, html)
    write_whole(page.with_suffix(".json"), json_bytes({"format": _FORMAT, **figures}, indent=1))
