"""Which predictions are shown, and how their pictures get onto the page."""

from __future__ import annotations

import base64
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image
from pyarrow import parquet

from service.errors import ImageError
from service.evaluation.reporting.examples import choose, show, thumbnail
from service.evaluation.reporting.predictions import View, read_run
from service.images import decode_image
from tests.support.runs import row, write_run


@pytest.fixture
def view(tmp_path: Path) -> View:
    rows = [row(f"wrong{n}", 0.0, confidence=n / 10) for n in range(9)]
    rows += [row(f"right{n}", 1.0, confidence=n / 10) for n in range(9)]
    rows += [row(f"half{n}", 0.6, confidence=0.99) for n in range(9)]
    rows += [
        row("held", 0.0, None, abstained=True),
        row("blind", 0.0, "unanswerable", answerable=False, confidence=1.0),
    ]
    rows += [row("gone", 0.0, None, error="saturated")]
    return read_run(write_run(tmp_path / "run", rows)).main


def chosen(view: View, **options: int) -> dict[str, list[str | None]]:
    ids = view.texts("question_id")
    return {kind: [ids[i] for i in rows] for kind, rows in choose(view, view.numbers("confidence"), **options).items()}


def test_what_is_chosen(view: View) -> None:
    found = chosen(view, each=3)
    assert found["confident_and_wrong"] == ["wrong8", "wrong7", "wrong6"]
    assert found["right_and_unsure"] == ["right0", "right1", "right2"]
    assert set(found["abstained"]) == {"held", "blind"}
    assert found["failed"] == ["gone"]
    assert len(found["random"]) == 3


def test_none_is_shown_twice(view: View) -> None:
    everything = [id_ for ids in chosen(view, each=len(view)).values() for id_ in ids]
    assert sorted(everything, key=str) == sorted(view.texts("question_id"), key=str)


def test_the_choice_is_fixed_and_the_seed_is_its_only_chance(view: View) -> None:
    assert chosen(view) == chosen(view)
    assert chosen(view)["random"] != chosen(view, seed=1)["random"]


def test_a_thumbnail_is_a_small_jpeg_and_never_enlarged(tmp_path: Path) -> None:
    for size, expected in (((960, 320), (240, 80)), ((30, 20), (30, 20))):
        path = tmp_path / "picture.png"
        Image.new("RGB", size, (200, 30, 30)).save(path)
        url, *shown = thumbnail(path)
        assert tuple(shown) == expected
        head, data = url.split(",")
        assert head == "data:image/jpeg;base64"
        decoded = decode_image(base64.b64decode(data))
        assert (decoded.format, decoded.width, decoded.height) == ("jpeg", *expected)
        assert np.abs(decoded.pixels.mean(axis=(0, 1)) - [200, 30, 30]).max() < 4


def test_a_picture_that_is_no_picture_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.png").write_text("no picture at all")
    with pytest.raises(ImageError):
        thumbnail(tmp_path / "text.png")


def test_without_its_picture_an_example_says_why(tmp_path: Path) -> None:
    view = read_run(write_run(tmp_path / "run", [row("gone"), row("text"), row("there")])).main
    gone, text, _ = (Path(view.row(index)["image"]) for index in range(3))
    gone.unlink()
    text.write_text("no picture at all")
    shown = {item.row["question_id"]: item for item in show(view, {"random": [0, 1, 2]}, tmp_path)}
    assert shown["gone"].missing == "the picture's file cannot be read: No such file or directory"
    assert str(shown["text"].missing).startswith("the picture cannot be shown: ")
    assert shown["gone"].picture is shown["text"].picture is None
    assert shown["there"].picture
    assert shown["there"].missing is None


def test_a_relative_path_starts_at_the_run_and_never_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_run(tmp_path / "run", [row("there"), row("here")])
    path = folder / "predictions.parquet"
    table = parquet.read_table(path)
    column = table.column_names.index("image")
    parquet.write_table(table.set_column(column, "image", pa.array(["there.png", "here.png"])), path)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    for name, place in (("there.png", folder), ("here.png", tmp_path / "elsewhere")):
        Image.new("RGB", (8, 8)).save(place / name)
    there, here = show(read_run(folder).main, {"random": [0, 1]}, folder)
    assert there.picture
    assert here.missing == "the picture's file cannot be read: No such file or directory"
