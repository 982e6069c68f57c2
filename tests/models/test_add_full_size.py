"""`vqa models add --int8` at the size of `dandelin/vilt-b32-finetuned-vqa`: 117.6 M parameters, 3,129 answers, 470 MB.

The weights are random; the answers are those of VQA v2 where they are there. Some two minutes on two cores.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.support.checkpoints import add, export_python, needs_export
from tests.support.pictures import drawn_circle
from tests.support.process import VQA, vqa_serve

pytestmark = [pytest.mark.export, needs_export]

ROOT = Path(__file__).resolve().parents[2]
MAKE = """
import json, sys
from pathlib import Path
from loadtest.random_vilt import random_b32, write_checkpoint
write_checkpoint(Path(sys.argv[1]), random_b32(json.loads(Path(sys.argv[2]).read_text())))
"""


def answers() -> list[str]:
    path = Path(os.environ.get("VQA_SHARED", ROOT.parent / "shared")) / "data" / "vqa_v2_answers_3129.txt"
    if not path.is_file():
        return ["", *(f"thing {number}" for number in range(1, 3129))]
    return path.read_text("utf-8").splitlines()


def test_a_checkpoint_of_full_size_is_added_and_served(tmp_path: Path) -> None:
    labels = answers()
    assert len(set(labels)) == 3129
    (tmp_path / "answers.json").write_text(json.dumps(labels))
    export_python("-c", MAKE, tmp_path / "vilt-b32", tmp_path / "answers.json")
    weights = tmp_path / "vilt-b32" / "model.safetensors"
    assert weights.stat().st_size > 470e6

    models = tmp_path / "models"
    done = add(tmp_path / "vilt-b32", "--models-dir", models, "--int8", "--agreement-questions", "10", "--json")
    weights.unlink()
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    parity = said["parity"]
    assert parity["ok"]
    assert parity["parameters"] == pytest.approx(117.6e6, rel=0.001)
    assert {"384x384", "384x608", "608x384", "32x608"} <= set(parity["cases"])
    assert max(parity["cases"].values()) == parity["largest_difference"] <= 1e-4
    assert min(parity["power"].values()) > 1e-3
    assert parity["logits_standard_deviation"] > 0.05
    assert said["agreement"]["questions"] == 10
    assert said["agreement"]["bytes"]["fp32"] > 470e6
    assert said["megabytes"] < 130
    [folder] = models.iterdir()
    assert json.loads((folder / "labels.json").read_text("utf-8")) == labels

    verified = subprocess.run(
        [VQA, "models", "verify", "vilt-b32-int8", "--models-dir", models], capture_output=True, text=True
    )
    assert (verified.returncode, verified.stdout) == (0, "vilt-b32-int8: ok\n")
    with vqa_serve("--models-dir", str(models), "--classifier", "vilt-b32-int8") as served:
        reply = served.client.post(
            "/answer", files={"image": drawn_circle(size=(640, 480))}, data={"question": "what color is the circle?"}
        )
        assert reply.status_code == 200, reply.text
        assert reply.json()["raw_answer"] in labels
