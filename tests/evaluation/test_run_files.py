"""A run's folder: whose it is, and that nothing of anybody else is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from service.evaluation.running.asker import RunError
from service.evaluation.running.run_files import RunFiles

MINE = {"dataset": "jsonl", "seed": 0}


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize("name", ["results.json", "report.html", "predictions.jsonl", "run.json", "notes.txt"])
def test_a_folder_of_other_things_is_refused_and_left_alone(tmp_path: Path, name: str, fresh: bool) -> None:
    (tmp_path / name).write_text('"mine"')
    with pytest.raises(RunError, match=rf"not empty \({name}\); take another --out"):
        RunFiles(tmp_path).claim(MINE, {}, fresh=fresh)
    assert (tmp_path / name).read_text() == '"mine"'
    assert len(list(tmp_path.iterdir())) == 1


def test_fresh_removes_what_runs_make_and_nothing_else(tmp_path: Path) -> None:
    files = RunFiles(tmp_path)
    files.claim(MINE, {}, fresh=False)
    files.selection.mkdir()
    others = [tmp_path / "notes.txt", files.selection / "thesis.txt"]
    made = [files.journal("blank"), files.results("sighted"), files.parquet, files.selection / "annotations.json"]
    for path in (*others, *made, tmp_path / "report.html"):
        path.write_text("x")
    files.claim(MINE | {"seed": 1}, {}, fresh=True)
    left = {path for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {*others, files.run}


def test_the_same_run_goes_on_and_another_is_named(tmp_path: Path) -> None:
    files = RunFiles(tmp_path)
    files.claim(MINE, {}, fresh=False)
    files.journal("sighted").write_text("x")
    files.claim(MINE, {}, fresh=False)
    with pytest.raises(RunError, match="seed was 0 and is 1"):
        files.claim(MINE | {"seed": 1}, {}, fresh=False)
    assert files.journal("sighted").read_text() == "x"
