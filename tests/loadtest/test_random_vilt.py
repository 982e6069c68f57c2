"""The folder of the random ViLT-B/32 in miniature: all of it but the 117 M weights, loaded as a server would."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from service.backends.layout import Way
from service.backends.manifest import read_labels, read_manifest
from service.backends.tokenizer import QuestionTokenizer
from service.backends.vilt import ViltModel

ROOT = Path(__file__).resolve().parent.parent.parent
PYTHON = os.environ.get("VQA_EXPORT_PYTHON") or str(ROOT / ".venv-export" / "bin" / "python")
# The same shapes of input and output, with two thin layers.
THIN = """
import sys
from pathlib import Path
from loadtest.random_vilt import labels, make, random_b32
sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
make(lambda: random_b32(labels(), **sizes), Path(sys.argv[1]), Path(sys.argv[2]), "sigmoid")
"""

pytestmark = [
    pytest.mark.export,
    pytest.mark.skipif(not Path(PYTHON).is_file(), reason="no export environment: see tests/models/test_recipe.py"),
]


def make_thin(checkpoint: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PYTHON, "-W", "ignore", "-c", THIN, str(checkpoint), str(folder)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )


def test_a_name_that_is_taken_leaves_no_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "thin").mkdir()
    done = make_thin(tmp_path / "checkpoint", tmp_path / "thin")
    assert done.returncode == 1
    assert f"{tmp_path / 'thin'} is there already" in done.stderr
    assert not (tmp_path / "checkpoint").exists()


def test_the_folder_is_one_that_can_be_served(tmp_path: Path) -> None:
    folder = tmp_path / "thin"
    done = make_thin(tmp_path / "checkpoint", folder)
    assert done.returncode == 0, done.stderr[-3000:]
    manifest = read_manifest(folder)
    assert manifest.faults() == []
    assert manifest.model.demo
    assert (tmp_path / "checkpoint" / "model.safetensors").is_file()
    assert len(set(read_labels(manifest))) == 3129
    model = ViltModel.open(manifest, "cpu", 0, {Way.WIDE: 1})
    assert model.processor.target_size(3024, 4032) == (384, 512)
    assert (model.processor.shortest_edge, model.processor.longest_edge) == (384, 608)
    model.probe(Way.WIDE, [model.grey((384, 608))] * 2)
    words = QuestionTokenizer(folder / "tokenizer.json", 40).encode("what color is the circle?")
    assert (words.unknown, words.cut) == (0, 0)
    vocabulary = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    assert sorted(vocabulary.values()) == list(range(30522))
