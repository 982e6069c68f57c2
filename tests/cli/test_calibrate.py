"""`vqa calibrate` as a person runs it: from what the embedded model said, into a copy of its folder."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from service.answers import Calibration
from service.backends import load_manifest
from tests.support.process import VQA
from tests.support.runs import drawn_run, row, write_run
from tests.support.serving import serving

NAME = "vilt-shapes"
PICTURES = 70


def vqa(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([VQA, *map(str, arguments)], capture_output=True, text=True, timeout=120, cwd=cwd)


def calibrate(run: Path, models: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    return vqa("calibrate", run, "--model", NAME, "--models-dir", models, *arguments)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return drawn_run(tmp_path_factory.mktemp("runs") / "held-out", pictures=PICTURES)


@pytest.fixture
def models(root: Path, tmp_path: Path) -> Path:
    """A folder of models with a copy of the embedded one."""
    shutil.copytree(root / "models" / NAME, tmp_path / "models" / NAME, ignore=shutil.ignore_patterns("checkpoint"))
    return tmp_path / "models"


def test_from_a_run_to_calibrated_replies(run: Path, models: Path) -> None:
    before = load_manifest(models, NAME)
    done = calibrate(run, models, "--json", "--fitted-on", "drawn shapes")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert done.stdout.count("\n") == 1
    after = load_manifest(models, NAME)
    fitted = Calibration.load(models / NAME / "calibration.json")
    assert report["calibration"] == fitted.id
    assert report["revision"] == after.revision != before.revision
    assert (fitted.fitted_on, fitted.questions) == ("drawn shapes", report["questions"])
    assert report["questions"] == PICTURES * 3
    assert 50 <= report["domain"]["pictures"] <= PICTURES  # without the few that are ruined
    assert fitted.domain is not None
    assert set(after.files) == set(before.files) | {"calibration.json"}
    verified = vqa("models", "verify", NAME, "--models-dir", models)
    assert (verified.returncode, verified.stdout) == (0, f"{NAME}: ok\n")

    pictures = sorted((run.with_name("held-out-data") / "images").iterdir())[:8]
    with serving(models_dir=models) as served:
        replies = [
            served.client.post("/answer", files={"image": picture.read_bytes()}, data={"question": "is it red?"}).json()
            for picture in pictures
        ]
    for reply in replies:
        assert (reply["model"]["calibration"], reply["model"]["revision"]) == (fitted.id, after.revision)
        assert reply["calibrated"] == (reply["confidence"] is not None)
    inside = [reply for reply in replies if not reply["hints"] and reply["answerable"]]
    assert inside
    assert all(reply["calibrated"] and 0 <= reply["confidence"] <= 1 for reply in inside)


def test_again_is_the_same_and_the_file_of_predictions_will_do(run: Path, models: Path) -> None:
    first, second = (json.loads(calibrate(run, models, "--json").stdout) for _ in range(2))
    assert first == second
    assert Calibration.load(models / NAME / "calibration.json").fitted_on == "held-out"
    by_file = calibrate(run / "predictions.parquet", models, "--json")
    assert by_file.returncode == 0, by_file.stderr
    assert json.loads(by_file.stdout) == first


def test_for_a_person(run: Path, models: Path) -> None:
    done = calibrate(run, models)
    assert done.returncode == 0, done.stderr
    fitted, manifest = Calibration.load(models / NAME / "calibration.json"), load_manifest(models, NAME)
    assert f"calibration {fitted.id}, revision {manifest.revision}" in done.stdout
    assert "Brier score" in done.stdout
    assert re.search(r"domain: \d+ pictures, \d+ components", done.stdout)
    assert "default" in done.stdout
    assert done.stderr == ""


def test_a_model_that_had_none_gets_one(run: Path, models: Path) -> None:
    manifest = models / NAME / "model.toml"
    text = manifest.read_text()
    text = text.replace('\n[calibration]\nfile = "calibration.json"\n', "")
    text = "".join(line for line in text.splitlines(keepends=True) if not line.startswith('"calibration.json"'))
    manifest.write_text(text)
    (models / NAME / "calibration.json").unlink(missing_ok=True)
    assert load_manifest(models, NAME).calibration is None
    done = calibrate(run, models)
    assert done.returncode == 0, done.stderr
    assert load_manifest(models, NAME).calibration.file == "calibration.json"
    assert load_manifest(models, NAME).faults() == []


def test_a_folder_that_was_changed_by_hand_is_accepted(models: Path) -> None:
    before = load_manifest(models, NAME)
    (models / NAME / "calibration.json").write_text(
        json.dumps({"version": 1, "fitted_on": "nothing", "questions": 0, "target": "none"})
    )
    broken = vqa("models", "verify", NAME, "--models-dir", models)
    assert (broken.returncode, "calibration.json: SHA-256" in broken.stdout) == (1, True)
    done = vqa("models", "digest", NAME, "--models-dir", models)
    assert done.returncode == 0, done.stderr
    after = load_manifest(models, NAME)
    assert done.stdout == f"{NAME}: revision {after.revision}, was {before.revision}\n"
    assert after.revision != before.revision
    assert vqa("models", "verify", NAME, "--models-dir", models).returncode == 0
    # once more changes nothing
    vqa("models", "digest", NAME, "--models-dir", models)
    assert load_manifest(models, NAME).revision == after.revision


def assert_refused(done: subprocess.CompletedProcess[str], *words: str) -> None:
    """In one clear line; the model's folder is as it was."""
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    for word in words:
        assert word in done.stderr


@pytest.fixture
def untouched(models: Path):
    before = {path.name: path.read_bytes() for path in (models / NAME).glob("*.*") if path.is_file()}
    yield models
    assert {path.name: path.read_bytes() for path in (models / NAME).glob("*.*") if path.is_file()} == before


def test_no_such_run(tmp_path: Path, untouched: Path) -> None:
    assert_refused(calibrate(tmp_path / "nothing", untouched), "nothing", "no such folder")
    assert_refused(calibrate(tmp_path, untouched), "run.json", "not there")
    assert_refused(calibrate(tmp_path / "no" / "predictions.parquet", untouched), "no such folder")


def test_no_such_model(run: Path, untouched: Path) -> None:
    done = vqa("calibrate", run, "--model", "vilt-b32", "--models-dir", untouched)
    assert_refused(done, "vilt-b32", NAME)


def test_a_run_of_another_model(tmp_path: Path, untouched: Path) -> None:
    candidates = (("red", 0.9), ("blue", 0.1))
    other = write_run(tmp_path / "other", [row("a", candidates=candidates, off_set=0.0, model="big", revision="1")])
    assert_refused(calibrate(other, untouched), "big", NAME)


def test_a_run_without_the_pictures(run: Path, tmp_path: Path, untouched: Path) -> None:
    import pyarrow.compute as pc
    from pyarrow import parquet

    blind = tmp_path / "blind"
    shutil.copytree(run, blind)
    table = parquet.read_table(blind / "predictions.parquet")
    parquet.write_table(table.filter(pc.not_equal(table["view"], "sighted")), blind / "predictions.parquet")
    assert_refused(calibrate(blind, untouched), "predictions.parquet", "sighted")


def test_pictures_that_are_gone(tmp_path: Path, untouched: Path) -> None:
    candidates = (("red", 0.9), ("blue", 0.1))
    rows = [row(name, candidates=candidates, off_set=0.0, model=NAME, revision="1") for name in "ab"]
    folder = write_run(tmp_path / "gone", rows)
    (tmp_path / "gone-data" / "b.png").unlink()
    assert_refused(calibrate(folder, untouched), "b.png", "cannot be read")


@pytest.mark.parametrize(("arguments", "message"), [([], "--model"), (["--model", ""], "empty")])
def test_wrong_usage(tmp_path: Path, arguments: list[str], message: str) -> None:
    done = vqa("calibrate", tmp_path, *arguments)
    assert done.returncode == 2
    assert message in done.stderr


def test_forty_questions_about_one_picture(tmp_path: Path, models: Path) -> None:
    """There is nothing to compare by, and too little for more; what was left out is told, in JSON and in words."""
    told = {"candidates": (("red", 0.9), ("blue", 0.1)), "off_set": 0.0, "model": NAME, "revision": "1"}
    rows = [row(f"q{k}", accuracy=1.0 if k % 4 else 0.0, image="one.png", **told) for k in range(40)]
    folder = write_run(tmp_path / "one", rows)
    done = calibrate(folder, models, "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout, parse_constant=_not_json)
    assert report["chosen"] == {"default": "identity"}
    assert list(report["not_fitted"]) == ["answerability", "domain"]
    fitted = Calibration.load(models / NAME / "calibration.json")
    assert (fitted.confidence is None, fitted.answerability, fitted.domain) == (False, None, None)
    done = calibrate(folder, models)
    assert "answerability: not fitted, 40 questions that can be answered and 0 that cannot" in done.stdout
    assert "domain: not fitted, 1 pictures, 50 needed" in done.stdout


def test_a_calibration_that_is_gone_is_fitted_anew(run: Path, models: Path) -> None:
    (models / NAME / "calibration.json").unlink()
    assert calibrate(run, models).returncode == 0
    assert load_manifest(models, NAME).faults() == []


def test_questions_that_the_model_cannot_read(tmp_path: Path, untouched: Path) -> None:
    told = {"candidates": (("red", 0.9), ("blue", 0.1)), "off_set": 0.0, "model": NAME, "revision": "1"}
    rows = [row(name, warnings=("question_not_understood",), **told) for name in "abc"]
    assert_refused(calibrate(write_run(tmp_path / "unread", rows), untouched), "of 3 the model knows no word")


def _not_json(text: str) -> None:
    raise AssertionError(f"{text} is not JSON")
