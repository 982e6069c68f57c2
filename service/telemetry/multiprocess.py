"""Metrics of several workers: each writes files into one folder, and whichever is scraped reads them all.

A counter's file stays when its worker has gone, so that counters never fall; the files of its live gauges are removed
by the next scrape.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from prometheus_client import Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

# The names that prometheus_client gives; other files of the folder, databases of somebody's perhaps, are left alone.
_FILE = re.compile(r"(?:counter|histogram|summary|gauge_(?P<live>live)?[a-z]+)_(?P<pid>\d+)\.db")


class WorkersCollector(Collector):
    """The sum over all workers, dead ones included where they count.

    Args:
        folder: the workers' common PROMETHEUS_MULTIPROC_DIR.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def collect(self) -> Iterable[Metric]:
        """The metrics as they stand in the files."""
        forget_dead(self._folder)
        # A worker that begins makes its file first and gives it a size then; an empty one cannot be read.
        files = [str(file) for file, _ in _metric_files(self._folder) if _size(file)]
        merged: Iterable[Metric] = MultiProcessCollector.merge(files)  # type: ignore[no-untyped-call]
        return merged


def empty(folder: Path) -> None:
    """Remove what the workers of an earlier run have left, or their counts would be counted again."""
    for file, _ in _metric_files(folder):
        file.unlink(missing_ok=True)


def forget_dead(folder: Path) -> None:
    """Remove the live gauges of workers that have died.

    As prometheus_client's `mark_process_dead`, but two workers that are scraped at once do not trip over each other.
    """
    alive: dict[str, bool] = {}
    for file, name in _metric_files(folder):
        pid = name["pid"]
        if name["live"] and not alive.setdefault(pid, _is_worker(pid)):
            file.unlink(missing_ok=True)


def _metric_files(folder: Path) -> Iterator[tuple[Path, re.Match[str]]]:
    for file in folder.iterdir():
        if name := _FILE.fullmatch(file.name):
            yield file, name


def _is_worker(pid: str) -> bool:
    """Whether a process runs (a zombie does not) beside this one; the number of a dead one may be another's by now."""
    try:
        # The command's name, in parentheses, may hold anything; after it come the state and the parent.
        state, parent = Path("/proc", pid, "stat").read_text(errors="replace").rpartition(")")[2].split()[:2]
    except (OSError, ValueError):
        return False
    return state not in ("Z", "X") and int(parent) == os.getppid()


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0
