"""`make fine-tune` in miniature: an operator's CSV to a calibrated model that a server answers with.

The commands are the Makefile's, in its order, with fewer pictures and steps.
"""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.process import VQA, vqa_serve

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "models" / "vilt-shapes"
EXPORT = os.environ.get("VQA_EXPORT_PYTHON") or str(ROOT / ".venv-export" / "bin" / "python")
PICTURES = 120
# Eighteen of them for calibration and as many for the test, with four questions each; four of each again, ruined.
ASKED, UNANSWERABLE = 18 * 4 + 4 * 4, 18 + 4 * 4
SAID = {"yes", "no", "nothing", "broken", "missing", "red", "white", "black", "blue", "unanswerable"}

pytestmark = [
    pytest.mark.export,
    pytest.mark.skipif(
        not Path(EXPORT).is_file(),
        reason="no export environment: set VQA_EXPORT_PYTHON to an interpreter with models/constraints.txt installed",
    ),
]


@dataclass(frozen=True)
class _Made:
    folder: Path
    calibrated: dict

    @property
    def models(self) -> Path:
        return self.folder / "models"


def _run(*command: str | Path) -> str:
    done = subprocess.run([*map(str, command)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (command, done.stderr[-3000:])
    return done.stdout


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> _Made:
    folder = tmp_path_factory.mktemp("fine-tune")
    data, run, models = folder / "data", folder / "run", folder / "made"
    _run(sys.executable, "-m", "models.line_camera", "--out", folder, "--count", str(PICTURES))
    with (folder / "seal.csv").open("a", newline="") as file:
        writer = csv.writer(file)
        for number in range(PICTURES):
            writer.writerow((f"pictures/jar-{number:05d}.jpg", "What does the label say?", "unanswerable"))
    _run(sys.executable, "-m", "models.vilt.own_data", folder / "seal.csv", "--out", data)
    _run(
        EXPORT, "-m", "models.vilt.train", "--out", run, "--dataset", "jsonl", "--annotations", data / "train.jsonl",
        "--checkpoint", FOLDER, "--ruined", "0.1", "--questions-a-picture", "3", "--rate", "0.3",
        "--steps", "20", "--pictures", "8", "--evaluate-every", "10",
    )  # fmt: skip
    _run(EXPORT, "-m", "models.vilt.package", run, "--out", models / "seal", "--description", "Fine-tuned on seal.csv")
    evaluate = [VQA, "eval", "--fresh", "--models-dir", models, "--model", "seal", "--dataset", "jsonl"]
    _run(*evaluate, "--annotations", data / "calibration.jsonl", "--out", folder / "runs" / "calibration")
    report = _run(
        VQA, "calibrate", folder / "runs" / "calibration", "--models-dir", models, "--model", "seal", "--json",
        "--fitted-on", "held-out pictures of seal.csv",
    )  # fmt: skip
    _run(*evaluate, "--annotations", data / "test.jsonl", "--out", folder / "runs" / "test", "--blind", "blank")
    served = folder / "models"
    served.mkdir()
    place = [sys.executable, "-m", "models.vilt.place", "--models-dir", served]
    _run(*place, "--", "seal")
    _run(*place, "--take", models / "seal", "--", "seal")
    assert not (models / "seal").exists()
    return _Made(folder, json.loads(report))


def test_the_model_has_the_files_answers_for_labels(made: _Made) -> None:
    labels = json.loads((made.models / "seal" / "labels.json").read_text())
    assert labels[-1] == "unanswerable"
    assert set(labels) <= SAID
    with (made.folder / "seal.csv").open(newline="") as file:
        pictures = {row["picture"] for row in csv.DictReader(file)}
    assert len(pictures) == PICTURES
    rows = list(csv.DictReader((made.models / "seal" / "curve.csv").open()))
    assert [row["step"] for row in rows] == ["10", "20"]
    assert set(json.loads(rows[-1]["accuracy"])) == {"held_out"}


def test_it_is_calibrated_on_pictures_of_its_own(made: _Made) -> None:
    assert made.calibrated["model"] == "seal"
    assert made.calibrated["questions"] == ASKED
    assert made.calibrated["unanswerable"] == UNANSWERABLE
    calibration = json.loads((made.models / "seal" / "calibration.json").read_text())
    assert {"confidence", "answerability"} <= set(calibration)
    assert calibration["fitted_on"] == "held-out pictures of seal.csv"
    done = subprocess.run(
        [VQA, "models", "verify", "seal", "--models-dir", made.models], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "seal: ok\n"), done.stderr


def test_the_test_has_a_report_sighted_and_blank(made: _Made) -> None:
    run = made.folder / "runs" / "test"
    evaluation = json.loads((run / "evaluation.json").read_text())
    assert set(evaluation["views"]) == {"sighted", "blank"}
    assert evaluation["views"]["sighted"]["counts"]["asked"] == ASKED
    assert (run / "report.html").stat().st_size > 10_000


def test_a_server_answers_with_it(made: _Made) -> None:
    labels = set(json.loads((made.models / "seal" / "labels.json").read_text()))
    with vqa_serve("--models-dir", str(made.models), "--classifier", "seal") as served:
        for number in range(4):
            picture = (made.folder / "pictures" / f"jar-{number:05d}.jpg").read_bytes()
            reply = served.client.post("/answer", files={"image": picture}, data={"question": "Is the seal intact?"})
            assert reply.status_code == 200, reply.text
            said = reply.json()
            assert said["model"]["id"] == "seal"
            assert said["model"]["calibration"] == made.calibrated["calibration"]
            assert said["model"]["revision"] == made.calibrated["revision"]
            assert said["calibrated"] is True
            assert 0 <= said["confidence"] <= 1
            assert said["answer"] in labels
            assert {candidate["answer"] for candidate in said["candidates"]} <= labels
            assert not any("demo" in warning["code"] for warning in said["warnings"])


def test_the_makefile_runs_these_commands() -> None:
    """What is passed here is what `make fine-tune` passes, numbers and paths apart."""
    done = subprocess.run(
        ["make", "--dry-run", "fine-tune", "DATA=seal.csv", "NAME=seal"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    text = re.sub(r"\\\n\s*", "", done.stdout)
    for part in (
        'models.vilt.own_data "seal.csv" --out build/seal/data',
        "models.vilt.train --out build/seal/run --dataset jsonl --annotations build/seal/data/train.jsonl --checkpoint "
        '"models/vilt-shapes" --ruined 0.1 --questions-a-picture 3',
        "models.vilt.package build/seal/run --out build/seal/models/seal",
        "--models-dir build/seal/models --model seal "
        "--dataset jsonl --annotations build/seal/data/calibration.jsonl --out build/seal/runs/calibration",
        "vqa calibrate build/seal/runs/calibration --models-dir build/seal/models --model seal",
        "--dataset jsonl --annotations build/seal/data/test.jsonl --out build/seal/runs/test --blind blank",
        'models.vilt.place --take build/seal/models/seal -- "seal"',
    ):
        assert part in text, part
    refused = subprocess.run(["make", "--dry-run", "fine-tune"], cwd=ROOT, capture_output=True, text=True)
    assert refused.returncode != 0
    assert "DATA=" in refused.stderr
