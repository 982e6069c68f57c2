"""`vqa report` as a person or a program calls it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from service.cli.main import cli
from service.errors import DataError
from tests.support.runs import row, write_run

VQA = [sys.executable, "-c", "from service.cli import main; main()"]


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["report", *map(str, arguments)])


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    sighted = [row(n, [1.0, 0.3, 0.0][n % 3], confidence=0.5) for n in range(9)]
    blank = [row(n, 0.0, None, view="blank", abstained=True) for n in range(7)]
    blank += [row(7, 0.0, "unanswerable", view="blank", answerable=False)]
    blank += [row(8, 0.0, None, view="blank", error="saturated")]
    first = write_run(tmp_path / "a" / "run", [*blank, *sighted])
    return [first, write_run(tmp_path / "b" / "run", [row(n, 1.0) for n in range(1, 9)])]


def test_the_table(runs: list[Path]) -> None:
    result = run(*runs, "--label", "old :dog:", "--label", "[new] one")
    assert result.exit_code == 0, result.output
    assert [" ".join(line.split()) for line in result.output.splitlines()] == [
        "run view data set questions accuracy confidence ECE unanswerable abstained failed",
        "old :dog: sighted jsonl 9 43.33 % 50.00 % 6.67 % 0 0 0",
        "old :dog: blank jsonl 9 0.00 % - - 1 7 1",
        "[new] one sighted jsonl 8 100.00 % - - 0 0 0",
    ]


def test_runs_of_one_name_are_told_apart(runs: list[Path]) -> None:
    output = run(*runs).output
    assert str(runs[0]) in output
    assert str(runs[1]) in output


def test_json_and_pages(runs: list[Path], tmp_path: Path) -> None:
    result = run(*runs, "--json", "--out", tmp_path / "both.html")
    printed = json.loads(result.output)
    assert printed | {"format": "figures of vqa report"} == json.loads((tmp_path / "both.json").read_text("utf-8"))
    assert printed["pairs"][0]["pair"]["difference"]["questions"] == 8
    assert "runs compared" in (tmp_path / "both.html").read_text("utf-8")
    assert run(runs[0], "--out", tmp_path / "one.html").exit_code == 0
    assert "Views side by side" in (tmp_path / "one.html").read_text("utf-8")
    assert json.loads((tmp_path / "one.json").read_text("utf-8"))["dataset"] == "jsonl"


def test_wrong_usage(runs: list[Path], tmp_path: Path) -> None:
    for arguments in ([], [*runs, "--label", "one"], [runs[0], "--out", tmp_path / "page.json"]):
        assert run(*arguments).exit_code == 2
    assert not (tmp_path / "page.json").exists()


def test_figures_overwrite_figures_and_nothing_else(runs: list[Path], tmp_path: Path) -> None:
    (tmp_path / "questions.json").write_text("{}")
    for page in (runs[0] / "evaluation.html", runs[0] / "run.html", tmp_path / "questions.html"):
        before = page.with_suffix(".json").read_bytes()
        for folders in (runs, runs[:1]):
            result = run(*folders, "--out", page)
            assert isinstance(result.exception, DataError)
            assert f"give {page.name} another name" in str(result.exception)
        assert page.with_suffix(".json").read_bytes() == before
        assert not page.exists()
    for folders in (runs, runs[:1], runs):
        assert run(*folders, "--out", tmp_path / "page.html").exit_code == 0


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda folder: (folder / "evaluation.json").unlink(), "evaluation.json: it is not there"),
        (lambda folder: (folder / "predictions.parquet").write_bytes(b"PAR1 and no more"), "not a whole Parquet file"),
        (lambda folder: [path.unlink() for path in folder.iterdir()] and folder.rmdir(), "there is no such folder"),
    ],
)
def test_a_bad_folder_is_one_sentence(runs: list[Path], root: Path, spoil, said: str) -> None:
    spoil(runs[0])
    done = subprocess.run([*VQA, "report", str(runs[0])], capture_output=True, text=True, cwd=root, timeout=60)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("vqa: ")
    assert done.stderr.count("\n") == 1
    assert said in done.stderr


@pytest.mark.parametrize(
    ("library", "arguments"), [("pyarrow", []), ("jinja2", ["--out", "page.html"]), ("sklearn", ["--json"])]
)
def test_without_the_extra_it_says_what_to_install(
    runs: list[Path], root: Path, tmp_path: Path, library: str, arguments: list[str]
) -> None:
    code = f"import sys; sys.modules[{library!r}] = None; from service.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "report", str(runs[0]), *arguments],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(root)},
        timeout=60,
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("vqa: ")
    assert "comes with the extra [eval]" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.glob("page.*"))


def test_a_table_needs_no_more_than_reading(runs: list[Path], root: Path) -> None:
    code = "import sys; sys.modules['jinja2'] = sys.modules['sklearn'] = None; from service.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "report", str(runs[0])], capture_output=True, text=True, cwd=root, timeout=60
    )
    assert (done.returncode, done.stdout.count("\n")) == (0, 3)


def test_labels_tell_runs_apart(runs: list[Path]) -> None:
    for labels in (["--label", "A", "--label", "A"], ["--label", "", "--label", "B"]):
        result = run(*runs, *labels)
        assert result.exit_code == 2
        assert "another name for each run" in result.output
