"""A run from its first question to its report."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from service.errors import needs
from service.evaluation.reporting.report import write_report
from service.evaluation.running.asker import Asker
from service.evaluation.running.evaluate import Plan, Stopped, Watcher, evaluate
from service.evaluation.running.stopping import SignalError, ended_by_signals


def check_libraries() -> None:
    """Make sure that tables and reports can be written, before anything is asked.

    Raises:
        MissingExtraError: a library of the extra `eval` is not installed.
    """
    with needs("pyarrow"):
        import pyarrow  # noqa: F401
    with needs("jinja2"):
        import jinja2  # noqa: F401
    with needs("scikit-learn"):
        import sklearn  # noqa: F401


def complete(
    plan: Plan, make_asker: Callable[[], Asker], watcher: Watcher, say: Callable[[str], None]
) -> dict[str, Any] | Stopped:
    """Run a plan to its end and write the report, all while other runs are kept out of the folder.

    Args:
        plan: what to run.
        make_asker: makes who is asked.
        watcher: told how far the run is.
        say: told in a line of text what begins after the last question.

    Returns:
        What `evaluation.json` holds, or where a signal stopped the run.

    Raises:
        RunError, DataError, MissingExtraError, SignalError: as `evaluate` and `write_report`.
    """
    with plan.folder.locked():
        outcome = evaluate(plan, make_asker, watcher)
        if not isinstance(outcome, Stopped):
            say("writing the report")
            try:
                with ended_by_signals():
                    write_report(plan.folder.path)
            except SignalError as error:
                asked = len(plan.data.examples) * len(outcome["views"])
                return Stopped(error.signal, asked, asked)
        return outcome
