"""`vqa models add` stopped in the middle: no half model is seen, and the same command again makes the model."""

from __future__ import annotations

import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from models.vilt.add.scratch import scratch
from service.backends import list_models, load_manifest
from tests.support.checkpoints import add, environment, make_checkpoint, needs_export
from tests.support.process import VQA


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_checkpoint(tmp_path_factory.mktemp("checkpoints") / "tiny")


@contextmanager
def adding(step: str, *arguments: str | Path) -> Iterator[subprocess.Popen[str]]:
    """The command as a process that has begun a step, as it says itself."""
    command = [VQA, "models", "add", *map(str, arguments)]
    with subprocess.Popen(command, env=environment(), stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            said = []
            for line in process.stderr:
                said.append(line)
                if line.startswith(step):
                    break
            assert process.poll() is None, said
            yield process
        finally:
            process.kill()


@pytest.mark.export
@needs_export
@pytest.mark.parametrize("step", ["loading", "exporting", "asking"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_told_to_stop_it_leaves_nothing(step: str, number: signal.Signals, checkpoint: Path, tmp_path: Path) -> None:
    flags = ("--int8", "--agreement-questions", "2000") if step == "asking" else ()
    with adding(step, checkpoint, "--models-dir", tmp_path / "models", *flags) as process:
        process.send_signal(number)
        assert process.stderr is not None
        rest = process.stderr.read()
        assert process.wait(60) == 128 + number
    assert "stopped; nothing half made is left" in rest
    assert "Traceback" not in rest
    assert list((tmp_path / "models").iterdir()) == []


@pytest.mark.export
@needs_export
def test_what_a_killed_run_left_is_seen_by_nobody_and_removed_by_the_next(checkpoint: Path, tmp_path: Path) -> None:
    """An older model of the name stays as it was until the new one is whole."""
    models = tmp_path / "models"
    assert add(checkpoint, "--models-dir", models).returncode == 0
    before = load_manifest(models, "tiny").revision
    again = (checkpoint, "--models-dir", models, "--force", "--license", "MIT")
    # The int8 copy is made once the fp32 folder is whole, but not yet in its place.
    with adding("asking", *again, "--int8", "--name", "tiny", "--agreement-questions", "2000") as process:
        process.kill()
        process.wait(60)
    assert [model.model.name for model in list_models(models)] == ["tiny"]
    assert load_manifest(models, "tiny").revision == before
    left = [path.name for path in models.iterdir() if path.name != "tiny"]
    assert len(left) == 1
    done = add(*again)
    assert done.returncode == 0, done.stderr
    assert load_manifest(models, "tiny").revision != before
    assert [path.name for path in models.iterdir()] == ["tiny"]


def test_a_folder_that_another_run_uses_is_left_alone(tmp_path: Path) -> None:
    with scratch(tmp_path) as first:
        (first / "file").write_text("in use")
        left = tmp_path / f"{first.name}x"
        left.mkdir()
        (left / "model.onnx").write_text("half")
        with scratch(tmp_path) as second:
            assert not left.exists()
            assert (first / "file").read_text() == "in use"
            assert Path(tempfile.gettempdir()) == second
        assert not second.exists()
        assert Path(tempfile.gettempdir()) == first
    assert list(tmp_path.iterdir()) == []


def test_folders_on_their_way_are_no_models(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    for name in (".new-a", ".old-a", "a"):
        (tmp_path / name).mkdir()
        shutil.copyfile(root / "models" / "vilt-shapes" / "model.toml", tmp_path / name / "model.toml")
    assert [model.folder.name for model in list_models(tmp_path)] == ["a"]
