"""Run folders that are whole are read; others are refused with the file and what is wrong with it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from service.errors import DataError
from service.evaluation.reporting.predictions import read_run
from tests.support.runs import row, write_run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [row(1, 0.3, confidence=0.8), row(2, 0.0, None, abstained=True), row(3, 0.0, None, error="saturated")]
    return write_run(
        tmp_path / "run", [r | {"view": view} for view in ("noise", "sighted", "blank") for r in rows], seed=4
    )


def test_what_is_read(folder: Path) -> None:
    run = read_run(folder)
    assert (run.label, run.dataset, run.about["fingerprint"]["seed"]) == ("run", "jsonl", 4)
    assert list(run.views) == ["sighted", "blank", "noise"]
    assert run.main_name == "sighted"
    view = run.main
    assert len(view) == 3
    assert view.accuracy.tolist() == [0.3, 0, 0]
    assert view.answered.tolist() == [True, False, False]
    assert view.abstained.tolist() == [False, True, False]
    assert view.failed.tolist() == [False, False, True]
    confidence = view.numbers("confidence")
    assert confidence[0] == 0.8
    assert np.isnan(confidence[1:]).all()
    assert np.unique(view.pictures).size == 3
    assert read_run(folder, "mine").label == "mine"


def test_other_writers_types_of_the_same_values_are_taken(folder: Path) -> None:
    path = folder / "predictions.parquet"
    table = pq.read_table(path)
    for name, kind in (("accuracy", pa.float32()), ("view", pa.dictionary(pa.int32(), pa.string()))):
        table = table.set_column(table.column_names.index(name), name, table[name].cast(kind))
    pq.write_table(table, path)
    assert read_run(folder).main.accuracy.tolist() == pytest.approx([0.3, 0, 0])


def edited(edit: Callable[[pa.Table], pa.Table]) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        path = folder / "predictions.parquet"
        pq.write_table(edit(pq.read_table(path)), path)

    return spoil


def replaced(table: pa.Table, name: str, values: list) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, pa.array(values))


def cut(folder: Path) -> None:
    path = folder / "predictions.parquet"
    path.write_bytes(path.read_bytes()[:-20])


def changed(name: str, change: Callable[[dict], object]) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        document = json.loads((folder / name).read_text())
        change(document)
        (folder / name).write_text(json.dumps(document))

    return spoil


def evaluation(change: Callable[[dict], object]) -> Callable[[Path], None]:
    return changed("evaluation.json", change)


def blank(part: str, **values: object) -> Callable[[Path], None]:
    return evaluation(lambda d: d["views"]["blank"][part].update(values))


SPOILT = {
    "no run.json": (lambda f: (f / "run.json").unlink(), "run.json: it is not there"),
    "no evaluation.json": (lambda f: (f / "evaluation.json").unlink(), "evaluation.json: it is not there"),
    "no predictions": (lambda f: (f / "predictions.parquet").unlink(), "predictions.parquet: it is not there"),
    "run.json is a list": (lambda f: (f / "run.json").write_text("[]"), "run.json: it must be an object"),
    "no fingerprint": (changed("run.json", lambda d: d.update(fingerprint=5)), "run.json: fingerprint: "),
    "no path": (changed("run.json", lambda d: d["facts"]["files"].update(questions=5)), "facts.files.questions: "),
    "evaluation.json is cut": (lambda f: (f / "evaluation.json").write_text('{"dataset": '), "cut short"),
    "no data set": (evaluation(lambda d: d.pop("dataset")), "evaluation.json: dataset: "),
    "no views": (evaluation(lambda d: d.update(views={})), "evaluation.json: views: "),
    "no scores": (evaluation(lambda d: d["views"]["blank"].pop("scores")), "views.blank.scores: "),
    "empty scores": (evaluation(lambda d: d["views"]["blank"]["scores"].clear()), "views.blank.scores.accuracy: "),
    "accuracy is a text": (blank("scores", accuracy="x"), "views.blank.scores.accuracy: "),
    "accuracy is no number": (blank("scores", accuracy=float("nan")), "views.blank.scores.accuracy: "),
    "types are a number": (blank("scores", per_answer_type=5), "views.blank.scores.per_answer_type: "),
    "notes are a number": (blank("scores", notes=5), "views.blank.scores.notes: "),
    "speed is a number": (evaluation(lambda d: d["views"]["blank"].update(speed=5)), "views.blank.speed: "),
    "rate is a text": (blank("speed", questions_per_second="x"), "views.blank.speed.questions_per_second: "),
    "empty counts": (evaluation(lambda d: d["views"]["blank"]["counts"].clear()), "views.blank.counts.asked: "),
    "of another run": (blank("counts", failed=2), "views.blank.counts.failed: it is 2, but 1 in predictions.parquet"),
    "a view without scores": (evaluation(lambda d: d["views"].pop("blank")), "no scores of the view blank"),
    "cut": (cut, "predictions.parquet: not a whole Parquet file"),
    "empty": (lambda f: (f / "predictions.parquet").write_bytes(b""), "not a whole Parquet file"),
    "text": (lambda f: (f / "predictions.parquet").write_text("question_id,view\n1,sighted"), "not a whole Parquet"),
    "columns missing": (edited(lambda t: t.drop_columns(["accuracy", "view"])), "columns are missing: view, accuracy"),
    "texts for numbers": (
        edited(lambda t: replaced(t, "accuracy", ["good"] * 9)),
        "column accuracy: its type is string",
    ),
    "no accuracy": (edited(lambda t: replaced(t, "accuracy", [None] * 9)), "column accuracy: values are missing"),
    "percent": (edited(lambda t: replaced(t, "accuracy", [30.0] * 9)), "column accuracy: every value must be within"),
    "not a number": (edited(lambda t: replaced(t, "confidence", [float("nan")] * 9)), "column confidence: every value"),
    "no rows": (edited(lambda t: t.slice(0, 0)), "there is no prediction in it"),
    "twice": (edited(lambda t: pa.concat_tables([t, t.slice(0, 1)])), "question 1 is there twice in the view sighted"),
}


@pytest.mark.parametrize(("spoil", "message"), SPOILT.values(), ids=SPOILT.keys())
def test_what_is_refused(folder: Path, spoil: Callable[[Path], object], message: str) -> None:
    spoil(folder)
    with pytest.raises(DataError) as refused:
        read_run(folder)
    assert message in str(refused.value)
    assert str(folder) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no such folder"):
        read_run(tmp_path / "none")
