"""`make serve MODEL=…`: what it runs, and one run of it from a checkpoint folder to an answer."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from tests.support.checkpoints import ANSWERS, environment, make_checkpoint, needs_export
from tests.support.process import VQA, vqa_serve

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def environments(tmp_path: Path) -> list[str]:
    """Variables of make that name environments which are made already: nothing is installed."""
    names = {"VENV": tmp_path / "venv", "EXPORT_VENV": tmp_path / "export"}
    (tmp_path / "venv" / "bin").mkdir(parents=True)
    (tmp_path / "export").mkdir()
    for stamp in ("venv/.core-cpu", "export/.installed"):
        (tmp_path / stamp).touch()
    command = tmp_path / "venv" / "bin" / "vqa"
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(VQA)} "$@"\n')
    command.chmod(0o755)
    return [f"{name}={path}" for name, path in names.items()]


def lines(environments: list[str], *variables: str) -> list[str]:
    """The commands of `vqa` that make would run."""
    done = subprocess.run(
        ["make", "--dry-run", "serve", *environments, *variables], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return [line.partition("/bin/")[2] for line in done.stdout.splitlines() if "/bin/vqa" in line]


@pytest.mark.parametrize(
    ("variables", "added", "served"),
    [
        ((), None, "vilt-shapes"),
        (("MODEL=vilt-shapes",), None, "vilt-shapes"),
        (("MODEL=owner/a-vilt",), "owner/a-vilt", "a-vilt"),
        (("MODEL=owner/a-vilt", "INT8=1"), "owner/a-vilt", "a-vilt-int8"),
        (("MODEL=owner/a-vilt", "INT8=0"), "owner/a-vilt", "a-vilt"),
        (("MODEL=tests/cases/",), "tests/cases/", "cases"),
    ],
)
def test_what_it_runs(environments: list[str], variables: tuple[str, ...], added: str | None, served: str) -> None:
    *before, last = lines(environments, *variables)
    assert last == f'vqa serve --host 127.0.0.1 --port 8000 --classifier "{served}"'
    int8 = " --int8" if "INT8=1" in variables else ""
    assert [line.rstrip() for line in before] == (
        [f'vqa models add "{added}" --name "{served}" --keep{int8}'] if added else []
    )


def test_a_link_is_called_as_what_it_leads_to(environments: list[str], tmp_path: Path) -> None:
    (tmp_path / "run-3").mkdir()
    (tmp_path / "latest").symlink_to("run-3")
    assert lines(environments, f"MODEL={tmp_path / 'latest'}")[-1].endswith('--classifier "run-3"')


def test_int8_of_a_model_that_is_there_is_refused(environments: list[str]) -> None:
    done = subprocess.run(["make", "serve", "INT8=1", *environments], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert "INT8=1 makes a model of a source" in done.stderr


def test_a_model_that_is_there_needs_no_export_environment(environments: list[str]) -> None:
    done = subprocess.run(["make", "--dry-run", "serve", environments[0]], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "export" not in done.stdout


@pytest.mark.export
@needs_export
def test_a_checkpoint_folder_is_added_once_and_served(environments: list[str], tmp_path: Path) -> None:
    checkpoint = make_checkpoint(tmp_path / "tiny")
    command = ["make", "serve", f"MODEL={checkpoint}", "INT8=1", "PORT=0", *environments]
    settings = environment(VQA_MODELS_DIR=str(tmp_path / "models"), PYTHONPATH=str(ROOT))
    for there in (False, True):
        with vqa_serve(command=command, cwd=ROOT, start_s=180, **settings) as served:
            reply = served.ask("what is in the picture?")
            assert reply.status_code == 200, reply.text
            assert reply.json()["answer"] in ANSWERS
            assert reply.json()["model"]["id"] == "tiny-int8"
        assert any("is there already, of the same source" in line for line in served.log) == there, served.log
