"""Predictions as what calibration is fitted to: evidence, how right the best answer is, whether one can be given."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from service.answers import (
    UNANSWERABLE,
    Evidence,
    agreement,
    answer_type,
    evidence_of_candidates,
    is_unanswerable,
    match_key,
    mostly_unanswerable,
)
from service.backends.base import QUESTION_NOT_UNDERSTOOD
from service.errors import DataError
from service.evaluation.layout import PREDICTIONS_FILE, SIGHTED
from service.evaluation.reporting.predictions import read_run
from service.images import picture_statistics, read_picture

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Statistics = Mapping[str, float]

_THREADS: Final = 4
_COLUMNS: Final = ("question_id", "image", "image_sha256", "candidates", "off_set", "answers", "model", "revision")


@dataclass(frozen=True)
class Samples:
    """Questions that a model was asked; n entries each.

    Attributes:
        evidence: as serving would have it.
        kinds: the answer type of the best answerable answer.
        accuracy: of that answer, in [0, 1] (`service.answers.agreement`).
        answerable: whether people could answer it: whether most of them said something else than "unanswerable".
        pictures: which picture each is about, numbered from 0.
        statistics: of each picture.
        off_set_known: whether the scores are parts of one distribution.
        models: names and revisions of the models that were asked.
    """

    evidence: Sequence[Evidence]
    kinds: Sequence[str]
    accuracy: Floats
    answerable: Flags
    pictures: NDArray[np.int64]
    statistics: Sequence[Statistics]
    off_set_known: bool
    models: frozenset[tuple[str, str]]

    def __len__(self) -> int:
        return len(self.evidence)


def read_samples(folder: Path, advance: Callable[[int], None] = lambda _: None) -> Samples:
    """The predictions in a folder of `vqa eval`, of the pictures as they are.

    Args:
        folder: the run's; or its predictions.parquet.
        advance: told of each so many pictures that were looked at.

    Raises:
        DataError: a file is missing or broken, a picture cannot be read, or nothing was answered.
        MissingExtraError: a library of the extra `eval` is not installed.
    """
    folder = run_folder(folder)
    run = read_run(folder)
    place = folder / PREDICTIONS_FILE
    if SIGHTED not in run.views:
        raise DataError(place, "the pictures were never shown (no view `sighted`); nothing can be fitted to that")
    view = run.views[SIGHTED]
    # What the model cannot read is held back whatever its evidence says.
    unread = np.array([QUESTION_NOT_UNDERSTOOD in codes for codes in view.lists("warnings")])
    used = np.flatnonzero(~view.failed & ~unread)
    if not len(used):
        raise DataError(
            place,
            f"no question was answered: {int(view.failed.sum())} failed, and of {int(unread.sum())} the model knows no "
            "word",
        )
    columns = {name: view.table[name].to_pylist() for name in _COLUMNS}
    rows = [_row(place, {name: values[int(k)] for name, values in columns.items()}) for k in used]
    images, numbers = np.unique(np.array([(row.image, row.sha256) for row in rows]), axis=0, return_inverse=True)
    statistics = _statistics([(Path(image), sha256) for image, sha256 in images], advance)
    return Samples(
        evidence=[
            evidence_of_candidates(row.candidates, row.off_set, statistics[int(k)])
            for row, k in zip(rows, numbers, strict=True)
        ],
        kinds=[row.kind for row in rows],
        accuracy=np.array([row.accuracy for row in rows]),
        answerable=np.array([row.answerable for row in rows]),
        pictures=numbers.astype(np.int64),
        statistics=statistics,
        off_set_known=all(row.off_set is not None for row in rows),
        models=frozenset((row.model, row.revision) for row in rows),
    )


def run_folder(predictions: Path) -> Path:
    """The folder of a run, whole, from itself or from the file of its predictions."""
    place = predictions.resolve()
    return place.parent if place.name == PREDICTIONS_FILE else place


@dataclass(frozen=True, slots=True)
class _Row:
    image: str
    sha256: str
    candidates: list[tuple[bool, float]]
    off_set: float | None
    kind: str
    accuracy: float
    answerable: bool
    model: str
    revision: str


def _row(place: Path, row: Mapping[str, Any]) -> _Row:
    listed = [(c["answer"], c["probability"]) for c in row["candidates"] or ()]
    answers = [answer for answer in row["answers"] or () if answer is not None]
    if not listed or not answers:
        missing = "candidates" if not listed else "answers"
        raise DataError(
            place, f"there are none; a calibration needs them ({missing})", f"question {row['question_id']}"
        )
    best = next((answer for answer, _ in listed if not is_unanswerable(answer)), "")
    return _Row(
        image=row["image"],
        sha256=row["image_sha256"] or "",
        candidates=[(is_unanswerable(answer), probability) for answer, probability in listed],
        off_set=row["off_set"],
        kind=answer_type(match_key(best)),
        accuracy=_accuracy(best, answers),
        answerable=not mostly_unanswerable(answers),
        model=row["model"] or "",
        revision=row["revision"] or "",
    )


def _accuracy(best: str, answers: Sequence[str]) -> float:
    if not best:
        return 0.0
    # The family of "unanswerable" is one answer to the service, and never the best answerable one.
    said = [UNANSWERABLE if is_unanswerable(answer) else match_key(answer) for answer in answers]
    return agreement(match_key(best), said)


def _statistics(images: Sequence[tuple[Path, str]], advance: Callable[[int], None]) -> list[Statistics]:
    found = []
    with ThreadPoolExecutor(_THREADS) as pool:
        for statistics in pool.map(_look_at, images):
            found.append(statistics)
            advance(1)
    return found


def _look_at(image: tuple[Path, str]) -> Statistics:
    path, sha256 = image
    decoded, data = read_picture(path)
    if sha256 and hashlib.sha256(data).hexdigest() != sha256:
        raise DataError(path, "it is not the picture any more that was asked about; run `vqa eval` again")
    return picture_statistics(decoded.picture)
