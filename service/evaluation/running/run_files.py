"""The folder of a run: what lies in it, and whether what lies there belongs to this run."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from service.errors import DataError
from service.evaluation.layout import (
    EVALUATION_FILE,
    FIGURES,
    PAGE,
    PREDICTIONS_FILE,
    RUN_FILE,
    SELECTED,
    SELECTION,
    VIEWS,
    suffix,
)
from service.evaluation.running.asker import RunError
from service.files import json_bytes, read_json, write_whole

_SHOWN = 5


class RunFiles:
    """The files of a run.

    Args:
        path: the folder; made where there is none.

    Raises:
        DataError: it cannot be made.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(path, f"the folder cannot be made: {error.strerror}") from error

    @property
    def run(self) -> Path:
        """What the run is: its fingerprint and facts."""
        return self.path / RUN_FILE

    @property
    def parquet(self) -> Path:
        """All questions and views as a table."""
        return self.path / PREDICTIONS_FILE

    @property
    def evaluation(self) -> Path:
        """The outcome."""
        return self.path / EVALUATION_FILE

    @property
    def selection(self) -> Path:
        """The data set's files cut down to what was asked, where that is less than all."""
        return self.path / SELECTION

    def journal(self, view: str) -> Path:
        """A view's journal."""
        return self.path / f"predictions{suffix(view)}.jsonl"

    def results(self, view: str) -> Path:
        """A view's answers in the data set's results format."""
        return self.path / f"results{suffix(view)}.json"

    def answerability(self, view: str) -> Path:
        """A view's results of the answerability task, where the data set has one."""
        return self.path / f"answerability{suffix(view)}.json"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other runs out of the folder for the time of the block.

        Raises:
            RunError: another one is at work in it.
        """
        descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise RunError(f"another run is at work in {self.path}") from error
        else:
            yield
        finally:
            os.close(descriptor)

    def claim(self, fingerprint: Mapping[str, Any], facts: Mapping[str, Any], *, fresh: bool) -> None:
        """Make the folder this run's, or find that it is so already.

        Args:
            fingerprint: all that the answers depend on; JSON values.
            facts: what else is worth knowing of the run; kept from its first start.
            fresh: throw away what an earlier run has left.

        Raises:
            RunError: another run's answers lie here, and the message names what differs; or files that are no run's.
            DataError: a file cannot be written or removed.
        """
        earlier = self._earlier()
        if earlier is not None and not fresh:
            differences = _differences(earlier, _plain(fingerprint))
            if differences:
                raise RunError(
                    f"{self.path} holds answers of another run: {'; '.join(differences)}. "
                    "Take another --out, or --fresh to start anew."
                )
            return
        if fresh:
            self._clear()
        document = {"fingerprint": fingerprint, "facts": facts}
        write_whole(self.run, json_bytes(document, indent=2))

    def _earlier(self) -> dict[str, Any] | None:
        """The fingerprint of the run whose folder this is; None where the folder is empty.

        Raises:
            RunError: it holds something else than a run; nothing of that may be lost.
        """
        try:
            about = read_json(self.run) if self.run.exists() else None
        except DataError:
            about = None
        if isinstance(about, dict) and isinstance(about.get("fingerprint"), dict):
            return dict(about["fingerprint"])
        strange = sorted(path.name for path in self.path.iterdir() if not path.name.startswith("."))
        if strange:
            shown = ", ".join(strange[:_SHOWN]) + (", …" if len(strange) > _SHOWN else "")
            raise RunError(f"{self.path} is no folder of a run and not empty ({shown}); take another --out")
        return None

    def _clear(self) -> None:
        """Remove what an earlier run has left, by name; journals first, as long as `run.json` says whose they are."""
        files = [make(view) for make in (self.journal, self.results, self.answerability) for view in VIEWS]
        files += [self.path / PAGE, self.path / FIGURES, self.parquet, self.evaluation]
        files += [*(self.selection / name for name in SELECTED), self.run]
        try:
            for path in files:
                path.unlink(missing_ok=True)
        except OSError as error:
            raise DataError(path, f"it cannot be removed: {error.strerror}") from error


def _plain(value: Any) -> Any:
    """A value as it would come back from a JSON file."""
    return json.loads(json.dumps(value))


def _differences(was: Any, now: Any, place: str = "") -> Sequence[str]:
    """What differs between two JSON values, each with its place, in words."""
    if isinstance(was, dict) and isinstance(now, dict):
        found: list[str] = []
        for key in sorted(was.keys() | now.keys()):
            found += _differences(was.get(key), now.get(key), f"{place}.{key}" if place else key)
        return found
    if isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        found = []
        for index, (before, after) in enumerate(zip(was, now, strict=True)):
            found += _differences(before, after, f"{place}[{index}]")
        return found
    return [] if was == now else [f"{place} was {json.dumps(was)} and is {json.dumps(now)}"]
