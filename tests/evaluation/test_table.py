"""The table: what was not answered is empty, and texts that UTF-8 cannot hold do not stop it."""

from __future__ import annotations

import functools
import math
import operator
from pathlib import Path

import pytest
from pyarrow import parquet

from service.errors import DataError
from service.evaluation.records import Example, Prediction, Scored
from service.evaluation.running.table import write_table

EVEN = Prediction("b", answer="x", candidates=(("x", 0.4), ("y", 0.4)), warnings=("demo_model",))
ROWS = [
    (
        "sighted",
        Scored(Example("a", Path("a.png"), "q\ud800?", ("x", "y")), Prediction("a", error="backend_failed"), 0.0),
    ),
    ("sighted", Scored(Example("b", Path("b.png"), "q?", ("x",), "other", "what"), EVEN, 1.0)),
    ("blank", Scored(Example("b", Path("b.png"), "q?", ("x",), "other", "what"), Prediction("b", abstained=True), 0.0)),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "predictions.parquet"


def test_rows_and_their_summaries(path: Path) -> None:
    write_table(path, ROWS, ids_are_numbers=False)
    failed, even, abstained = parquet.read_table(path).to_pylist()
    assert (failed["question_id"], failed["question"], failed["error"]) == ("a", "q??", "backend_failed")
    for column in ("prediction", "confidence", "top_probability", "margin", "entropy", "answer_type", "total_ms"):
        assert failed[column] is None, column
    assert (failed["abstained"], failed["candidates"], failed["answers"]) == (False, [], ["x", "y"])
    assert even["candidates"][1] == {"answer": "y", "probability": 0.4}
    assert (even["top_probability"], even["margin"]) == (0.4, 0.0)
    assert even["entropy"] == pytest.approx(math.log(2)), "two equal candidates, whatever they add up to"
    assert (abstained["view"], abstained["abstained"], abstained["prediction"]) == ("blank", True, None)


def test_numbers_stay_numbers(path: Path) -> None:
    row = Scored(Example(7, Path("a.png"), "q?", ("x",)), Prediction(7, answer="x"), 1.0)
    write_table(path, [("sighted", row)], ids_are_numbers=True)
    assert parquet.read_table(path)["question_id"].to_pylist() == [7]


def test_a_table_that_fails_half_way_leaves_the_old_one(path: Path) -> None:
    write_table(path, ROWS, ids_are_numbers=False)
    before = path.read_bytes()

    def broken():
        yield ROWS[0]
        raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        write_table(path, broken(), ids_are_numbers=False)
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_a_picture_is_found_from_anywhere(path: Path) -> None:
    write_table(path, ROWS, ids_are_numbers=False)
    assert parquet.read_table(path)["image"].to_pylist()[0] == str(Path.cwd() / "a.png")


@pytest.mark.parametrize(
    ("example", "numbers"),
    [
        (Example("a", Path("a.png"), "q?", ("x",), 3), False),  # type: ignore[arg-type]
        (Example(1 << 63, Path("a.png"), "q?", ("x",)), True),
    ],
)
def test_what_no_column_holds_is_said_and_leaves_the_old_table(path: Path, example: Example, numbers: bool) -> None:
    write_table(path, ROWS, ids_are_numbers=False)
    before = path.read_bytes()
    with pytest.raises(DataError, match="does not fit its column"):
        write_table(path, [("sighted", Scored(example, EVEN, 1.0))], ids_are_numbers=numbers)
    assert path.read_bytes() == before


def test_entropy_is_added_from_left_to_right(path: Path) -> None:
    """As every Python before 3.12 adds, and no later `sum` does."""
    probabilities = [0.1] * 10
    answer = Prediction("b", candidates=tuple((str(n), p) for n, p in enumerate(probabilities)))
    write_table(path, [("sighted", Scored(ROWS[0][1].example, answer, 0.0))], ids_are_numbers=False)
    whole = functools.reduce(operator.add, probabilities, 0.0)
    assert whole != 1.0
    share = 0.1 / whole
    wanted = -functools.reduce(operator.add, [share * math.log(share)] * 10, 0.0)
    assert parquet.read_table(path)["entropy"].to_pylist() == [wanted]
