"""How far long work is: a bar on a terminal, a plain line every ten seconds elsewhere, or nothing."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from service.evaluation.records import Prediction
from service.evaluation.running.evaluate import Watcher

EVERY_S = 10.0


class Silent:
    """Shows nothing."""

    def begin(self, view: str, total: int, done: int) -> None:
        """Nothing."""

    def advance(self, prediction: Prediction) -> None:
        """Nothing."""

    def end(self) -> None:
        """Nothing."""


class Lines:
    """Plain lines, at most one every `EVERY_S` seconds.

    Args:
        stream: where they go.
        clock: seconds.
    """

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._now = clock
        self._shown = clock()
        self._view = ""
        self._total = self._done = self._failed = self._before = 0
        self._began = self._shown

    def begin(self, view: str, total: int, done: int) -> None:
        """A view begins."""
        self._view, self._total, self._done, self._before, self._failed = view, total, done, done, 0
        self._began = self._now()

    def advance(self, prediction: Prediction) -> None:
        """One more question is done."""
        self._done += 1
        self._failed += prediction.error is not None
        now = self._now()
        if now - self._shown < EVERY_S:
            return
        self._shown = now
        rate = (self._done - self._before) / max(now - self._began, 1e-9)
        failed = f", {self._failed:,} failed" if self._failed else ""
        line = f"{self._view}: {self._done:,} of {self._total:,} questions{failed}, {rate:.1f}/s"
        print(line, file=self._stream, flush=True)

    def end(self) -> None:
        """Nothing: the result speaks for itself."""


class Bar:
    """A bar for a view."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bar: Progress | None = None
        self._task = TaskID(0)
        self._failed = 0

    def begin(self, view: str, total: int, done: int) -> None:
        """A view begins."""
        self._failed = 0
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[failed]}", style="red"),
        )
        self._bar = Progress(*columns, console=self._console)
        self._task = self._bar.add_task(view, total=total, completed=done, failed="")
        self._bar.start()

    def advance(self, prediction: Prediction) -> None:
        """One more question is done."""
        if self._bar is None:
            return
        if prediction.error is not None:
            self._failed += 1
            self._bar.update(self._task, failed=f"{self._failed:,} failed")
        self._bar.advance(self._task)

    def end(self) -> None:
        """The view is done, or the run stops."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def watcher(*, quiet: bool) -> Watcher:
    """What suits standard error."""
    if quiet or sys.stderr is None:
        return Silent()
    return Bar(Console(stderr=True)) if sys.stderr.isatty() else Lines(sys.stderr)
