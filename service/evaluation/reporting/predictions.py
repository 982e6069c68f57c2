"""Reading what `vqa eval` left: run.json, evaluation.json, predictions.parquet, checked before they are used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from service.errors import DataError, needs
from service.evaluation.layout import EVALUATION_FILE, PREDICTIONS_FILE, RUN_FILE, VIEWS
from service.evaluation.reporting.documents import EvaluationDocument, RunDocument, read_document

if TYPE_CHECKING:
    import pyarrow as pa

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Indexes = NDArray[np.int64]

_TEXTS = (
    "question_id",
    "view",
    "image",
    "question",
    "question_type",
    "answer_type",
    "prediction",
    "backend",
    "model",
    "revision",
    "calibration",
    "image_sha256",
    "error",
    "detail",
)
_LISTS = ("answers", "warnings", "hints")
_SINCE_THEN_NEW = ("hints",)  # not in older runs
_NUMBERS = (
    "accuracy",
    "confidence",
    "answerability",
    "top_probability",
    "off_set",
    "decode_ms",
    "queue_ms",
    "inference_ms",
    "total_ms",
)
_FLAGS = ("answerable", "abstained", "cached")
_COMPLETE = ("question_id", "view", "image", "question", "accuracy", "abstained", "cached")
_SHARES = ("accuracy", "confidence", "answerability", "top_probability", "off_set")


class View:
    """The predictions of one view; all arrays are (n,), in the order of the file.

    Args:
        table: the rows, with the columns checked and cast.
    """

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def texts(self, column: str) -> list[str | None]:
        """A column of texts."""
        return list(self.table[column].to_pylist())

    def numbers(self, column: str) -> Floats:
        """A column of numbers; NaN where there is none."""
        return np.asarray(self.table[column].to_numpy(), dtype=np.float64)

    def flags(self, column: str) -> Flags:
        """A column of yes and no; no where there is neither."""
        return np.asarray(self.table[column].fill_null(False).to_numpy(), dtype=np.bool_)

    def lists(self, column: str) -> list[list[str]]:
        """A column of lists of texts; empty where there is none."""
        return [[text for text in texts or () if text is not None] for texts in self.table[column].to_pylist()]

    def known(self, column: str) -> Flags:
        """Where a column has a value."""
        return np.asarray(self.table[column].is_valid().to_numpy(), dtype=np.bool_)

    def row(self, index: int) -> dict[str, Any]:
        """One prediction."""
        return dict(self.table.slice(index, 1).to_pylist()[0])

    @cached_property
    def answers(self) -> list[list[str]]:
        """What people said, question by question."""
        return self.lists("answers")

    @cached_property
    def accuracy(self) -> Floats:
        """0 to 1 in the data set's own metric."""
        return self.numbers("accuracy")

    @cached_property
    def answered(self) -> Flags:
        """Where an answer was given: neither abstained nor failed."""
        return self.known("prediction")

    @cached_property
    def failed(self) -> Flags:
        """Where an error came back."""
        return self.known("error")

    @cached_property
    def abstained(self) -> Flags:
        """Where the service held its answer back."""
        return self.flags("abstained") & ~self.failed

    @cached_property
    def unanswerable(self) -> Flags:
        """Where the answer is that the question cannot be answered."""
        return self.answered & self.known("answerable") & ~self.flags("answerable")

    @cached_property
    def pictures(self) -> Indexes:
        """Which picture each question is about, numbered from 0."""
        return self.numbered("image")[0]

    def numbered(self, column: str) -> tuple[Indexes, list[str]]:
        """A column of texts as numbers from 0 (-1 where there is none) and the texts that they stand for."""
        encoded = self.table[column].combine_chunks().dictionary_encode()
        numbers = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return np.asarray(numbers, dtype=np.int64), list(encoded.dictionary.to_pylist())


@dataclass(frozen=True)
class Run:
    """One run of a model over a data set.

    Attributes:
        label: what tables call it.
        about: run.json, what was run.
        documents: for each view what evaluation.json says: its `scores`, and what else is known of it.
        views: the predictions, in the order of `VIEWS`.
    """

    folder: Path
    label: str
    dataset: str
    about: Mapping[str, Any]
    documents: Mapping[str, Mapping[str, Any]]
    views: Mapping[str, View]

    @property
    def main(self) -> View:
        """The view that calibration, examples and the like are about: the pictures as they are, where asked."""
        return self.views[self.main_name]

    @property
    def main_name(self) -> str:
        """The name of `main`."""
        return next(iter(self.views))


def read_run(folder: Path, label: str | None = None) -> Run:
    """Read a run folder.

    Args:
        folder: what `vqa eval` wrote.
        label: what to call the run; the folder's name where none is given.

    Raises:
        DataError: a file is missing, damaged, or holds something else; the message says which and what.
        MissingExtraError: pyarrow is not installed.
    """
    if not folder.is_dir():
        raise DataError(folder, "there is no such folder; name a folder that `vqa eval` wrote")
    for name in (RUN_FILE, EVALUATION_FILE, PREDICTIONS_FILE):
        if not (folder / name).exists():
            raise DataError(folder / name, "it is not there; name a folder in which `vqa eval` came to its end")
    about = read_document(folder / RUN_FILE, RunDocument)
    evaluation = read_document(folder / EVALUATION_FILE, EvaluationDocument)
    views = _predictions(folder / PREDICTIONS_FILE)
    for name, view in views.items():
        _check_counts(folder / EVALUATION_FILE, evaluation["views"], name, view)
    return Run(folder, label or folder.resolve().name, evaluation["dataset"], about, evaluation["views"], views)


def _check_counts(path: Path, documents: Mapping[str, Any], name: str, view: View) -> None:
    """Make sure that a view's scores are of these predictions: a run that is stopped may leave those of two runs."""
    if name not in documents:
        raise DataError(path, f"it has no scores of the view {name}", f"views.{name}")
    there = {"asked": len(view), "abstained": int(view.abstained.sum()), "failed": int(view.failed.sum())}
    for what, number in there.items():
        if (told := documents[name]["counts"][what]) != number:
            message = f"it is {told}, but {number} in {PREDICTIONS_FILE}; run the same `vqa eval` again"
            raise DataError(path, message, f"views.{name}.counts.{what}")


def _predictions(path: Path) -> dict[str, View]:
    """The views in the order of `VIEWS`; others behind them."""
    table = _checked(path, _read_table(path))
    named = np.array(table["view"].to_pylist(), dtype=object)
    names = sorted(set(named), key=lambda name: (VIEWS.index(name) if name in VIEWS else len(VIEWS), name))
    views = {}
    for name in names:
        view = View(table.filter(named == name))
        ids = view.texts("question_id")
        if len(set(ids)) < len(ids):
            twice = Counter(ids).most_common(1)[0][0]
            raise DataError(path, f"question {twice} is there twice in the view {name}")
        views[name] = view
    return views


def _read_table(path: Path) -> pa.Table:
    with needs("pyarrow"):
        import pyarrow as pa
        import pyarrow.parquet as pq
    try:
        # One reader for one file: with `read_table` a folder of that name would be taken for a data set.
        return pq.ParquetFile(path).read()
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(path, f"not a whole Parquet file ({reason}); run `vqa eval` again") from error


def _checked(path: Path, table: pa.Table) -> pa.Table:
    """The columns that the report needs, in the types that it needs."""
    import pyarrow as pa
    import pyarrow.compute as pc

    types = dict.fromkeys(_TEXTS, pa.string()) | dict.fromkeys(_NUMBERS, pa.float64())
    candidate = pa.struct([("answer", pa.string()), ("probability", pa.float64())])
    types |= dict.fromkeys(_FLAGS, pa.bool_()) | dict.fromkeys(_LISTS, pa.list_(pa.string()))
    types |= {"candidates": pa.list_(candidate)}
    for name in _SINCE_THEN_NEW:
        if name not in table.column_names:
            table = table.append_column(name, pa.nulls(table.num_rows, types[name]))
    missing = [name for name in types if name not in table.column_names]
    if missing:
        raise DataError(path, f"columns are missing: {', '.join(missing)}; was it written by `vqa eval`?")
    columns = {}
    for name, kind in types.items():
        try:
            columns[name] = table[name].cast(kind)
        except pa.ArrowException as error:
            raise DataError(path, f"its type is {table[name].type}; it must be {kind}", f"column {name}") from error
    for name in _COMPLETE:
        if columns[name].null_count:
            raise DataError(path, "values are missing", f"column {name}")
    for name in _SHARES:
        values = columns[name].drop_null()
        if not pc.all(pc.and_(pc.greater_equal(values, 0), pc.less_equal(values, 1)), min_count=0).as_py():
            raise DataError(path, "every value must be within 0 and 1", f"column {name}")
    if not table.num_rows:
        raise DataError(path, "there is no prediction in it")
    return pa.table(columns)
