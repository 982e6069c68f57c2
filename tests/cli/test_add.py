"""`vqa models add` as far as it goes without an export environment."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from service.cli.add import NoExportEnvironmentError, export_python
from tests.support.process import VQA

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(bool(find_spec("torch")), reason="this environment is an export environment itself")
def test_which_interpreter_runs_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("VQA_EXPORT_PYTHON", sys.executable)
    assert export_python() == sys.executable
    for wrong in (tmp_path, tmp_path / "nothing"):
        monkeypatch.setenv("VQA_EXPORT_PYTHON", str(wrong))
        with pytest.raises(NoExportEnvironmentError, match="make install-export"):
            export_python()


def run(*arguments: str, **given: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in (os.environ | given).items() if value}
    return subprocess.run([VQA, "models", "add", *arguments], env=environment, capture_output=True, text=True)


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_needs_no_export_environment(flag: str) -> None:
    done = run(flag, VQA_EXPORT_PYTHON="/nowhere/python")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("usage: vqa models add")
    assert "vqa models add dandelin/vilt-b32-finetuned-vqa --int8" in done.stdout


def test_it_is_listed_with_the_other_commands() -> None:
    done = subprocess.run([VQA, "models", "--help"], capture_output=True, text=True)
    assert "add " in done.stdout


@pytest.mark.skipif(bool(find_spec("torch")), reason="this environment is an export environment itself")
def test_without_an_export_environment_it_says_how_to_get_one(tmp_path: Path) -> None:
    done = run(str(tmp_path), VQA_EXPORT_PYTHON="/nowhere/python")
    assert (done.returncode, done.stdout) == (2, "")
    assert "VQA_EXPORT_PYTHON is /nowhere/python, which is no program: make install-export" in done.stderr
    if not (ROOT / ".venv-export").exists():
        done = run(str(tmp_path), VQA_EXPORT_PYTHON="")
        assert done.returncode == 2
        assert "make install-export" in done.stderr


def test_arguments_output_and_exit_code_are_the_other_programs(tmp_path: Path) -> None:
    """A program in the interpreter's place says what it was run with."""
    program = tmp_path / "python"
    program.write_text(
        f"#!{sys.executable}\nimport os, sys\nprint(sys.argv[1:], os.environ['PYTHONPATH'])\nsys.exit(7)\n"
    )
    program.chmod(0o755)
    done = run("a b", "--name", "x", "--int8", "--unheard-of=1", "--", "-y", VQA_EXPORT_PYTHON=str(program))
    assert done.returncode == 7
    assert done.stdout.startswith("['-P', '-m', 'models.vilt.add', 'a b', '--name', 'x', '--int8', '--unheard-of=1', ")
    assert done.stdout.split()[-1].split(os.pathsep)[0] == str(ROOT)


@pytest.mark.skipif(bool(find_spec("torch")), reason="this environment is an export environment itself")
def test_an_interpreter_without_torch_is_told(tmp_path: Path) -> None:
    done = run("owner/name", "--models-dir", str(tmp_path), VQA_EXPORT_PYTHON=sys.executable)
    assert done.returncode == 1
    assert f"{sys.executable} has no torch" in done.stderr
    assert "make install-export" in done.stderr
