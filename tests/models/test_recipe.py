"""The recipe in the export environment, by subprocess: train, export, compare with PyTorch, make a model folder.

The interpreter is VQA_EXPORT_PYTHON, or .venv-export/bin/python; without one these tests are skipped.
"""

from __future__ import annotations

import csv
import json
import math
import os
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from service.backends import load_manifest, read_labels
from tests.support.process import VQA

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "models" / "vilt-shapes"
SMALL = ROOT / "models" / "vilt" / "small"
PYTHON = os.environ.get("VQA_EXPORT_PYTHON") or str(ROOT / ".venv-export" / "bin" / "python")

pytestmark = [
    pytest.mark.export,
    pytest.mark.skipif(
        not Path(PYTHON).is_file(),
        reason="no export environment: set VQA_EXPORT_PYTHON to an interpreter with models/constraints.txt installed",
    ),
]


def _python(*arguments: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [PYTHON, "-W", "ignore", *map(str, arguments)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if check:
        assert done.returncode == 0, done.stderr[-3000:]
    return done


def _check_parity(report: dict, pictures: list[str]) -> None:
    assert report["ok"]
    assert len(report["cases"]) >= 9
    assert all(value <= 1e-4 for value in report["cases"].values())
    assert max(report["cases"].values()) == report["largest_difference"]
    assert set(pictures) <= {size for name in report["cases"] for size in name.split("+")}
    for mistake, difference in report["power"].items():
        assert difference > 1e-3, f"the check does not notice {mistake}"
    assert report["logits_standard_deviation"] > 0.05


def test_embedded_onnx_equals_stock_pytorch() -> None:
    done = _python("-m", "models.vilt.parity", "--checkpoint", FOLDER / "checkpoint", "--onnx", FOLDER / "model.onnx")
    _check_parity(json.loads(done.stdout), ["64x64", "64x104", "104x64", "8x104"])


@pytest.fixture(scope="module")
def smoke_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("smoke")
    _python("-m", "models.vilt.train", "--smoke", "--out", run)
    _python("-m", "models.vilt.export", run / "checkpoint", "--out", run)
    return run


def test_smoke_training_to_export_to_parity(smoke_run: Path) -> None:
    rows = list(csv.DictReader((smoke_run / "curve.csv").open()))
    assert list(rows[0]) == ["step", "seconds", "questions", "learning_rate", "loss", "accuracy", "topics"]
    assert [(row["step"], row["questions"]) for row in rows] == [("6", "384"), ("12", "768")]  # 32 pictures, 2 each
    assert set(json.loads(rows[0]["accuracy"])) == {"easy_vqa", "drawn"}
    assert {"easy_vqa: color", "easy_vqa: yes/no", "drawn: present"} <= set(json.loads(rows[0]["topics"]))
    done = _python(
        "-m", "models.vilt.parity", "--checkpoint", smoke_run / "checkpoint", "--onnx", smoke_run / "model.onnx"
    )
    _check_parity(json.loads(done.stdout), ["64x64"])


def test_parity_fails_on_another_models_file(smoke_run: Path, tmp_path: Path) -> None:
    """The same network with other random weights."""
    code = f"""
from pathlib import Path
from models.vilt.model import SMALL, fresh_model, load_model, read_config
names = load_model(Path({str(smoke_run / "checkpoint")!r})).config.id2label
fresh_model(read_config(SMALL), [names[k] for k in range(len(names))], seed=1).save_pretrained({str(tmp_path)!r})
"""
    _python("-c", code)
    done = _python(
        "-m", "models.vilt.parity", "--checkpoint", tmp_path, "--onnx", smoke_run / "model.onnx", check=False
    )
    assert done.returncode == 1
    report = json.loads(done.stdout)
    assert not report["ok"]
    assert report["largest_difference"] > 1e-2


def test_parity_fails_where_the_graph_gives_what_is_no_number() -> None:
    """Whichever case it is in: Python's max() would drop it."""
    code = f"""
import numpy as np, onnxruntime
from pathlib import Path
from models.vilt import parity
from models.vilt.model import load_model
class Session:
    def __init__(self, *arguments, **options):
        self.real, self.calls = onnx_session(*arguments, **options), 0
    def run(self, names, inputs):
        [logits] = self.real.run(names, inputs)
        self.calls += 1
        if inputs["pixel_values"].shape[2:] == (104, 64):
            logits[:] = np.nan
        return [logits]
onnx_session = onnxruntime.InferenceSession
onnxruntime.InferenceSession = Session
folder = Path({str(FOLDER)!r})
print(parity.compare(load_model(folder / "checkpoint"), folder / "model.onnx")["ok"])
"""
    assert _python("-c", code).stdout.strip() == "False"


def test_a_resumed_run_gives_the_very_weights_of_an_unbroken_one(smoke_run: Path, tmp_path: Path) -> None:
    script = f"""
from pathlib import Path
import torch
from models.vilt.tasks import shapes_task
from models.vilt.train import Run, Settings
torch.set_num_threads(1)
settings = Settings(steps=12, average=0.5, evaluate_every=6)
task = shapes_task(0, smoke=True)
broken = Run(Path({str(tmp_path)!r}), settings, task, resume=False)
broken.model.train()
for _ in range(7):
    broken.train_step()
broken.save()
try:
    Run(Path({str(tmp_path)!r}), settings, task, resume=False)
except FileExistsError as error:
    assert "--resume" in str(error)
else:
    raise AssertionError("a run was begun in another one's folder")
resumed = Run(Path({str(tmp_path)!r}), settings, shapes_task(0, smoke=True), resume=True)
assert resumed.step == 7
resumed.train(minutes=None)
"""
    _python("-c", script)
    weights = [(folder / "checkpoint" / "model.safetensors").read_bytes() for folder in (smoke_run, tmp_path)]
    assert weights[0] == weights[1]


def test_targets_and_losses_by_hand() -> None:
    """Ten people: four say red, three blue, two green, one what is no label; and five who say another word for none."""
    script = """
import json, math, torch
from models.vilt.targets import Targets
labels = ["red", "blue", "green", "2", "yes"]
people = [["Red"] * 4 + ["blue."] * 3 + ["the green"] * 2 + ["mauve"], ["two", "2", "2"], ["nothing known"] * 5]
logits = torch.zeros(1, 2)
sure = torch.tensor([[math.log(3.0), 0.0]])
report = {}
for kind in ("softmax", "sigmoid"):
    targets = Targets(labels, kind)
    two = Targets(["a", "b"], kind)
    report[kind] = {
        "targets": targets(people).tolist(),
        "even": two.loss(logits, torch.tensor([[0.75, 0.25]])).item(),
        "sure": two.loss(sure, torch.tensor([[1.0, 0.0]])).item(),
        "mean": two.loss(torch.cat([logits, sure]), torch.tensor([[1.0, 0.0], [1.0, 0.0]])).item(),
    }
print(json.dumps(report))
"""
    report = json.loads(_python("-c", script).stdout)
    softmax, sigmoid = report["softmax"], report["sigmoid"]
    assert softmax["targets"] == [pytest.approx(row) for row in ([0.4, 0.3, 0.2, 0, 0], [0, 0, 0, 1, 0], [0] * 5)]
    # Official accuracy, each person left out in turn: with m of 10 agreeing, m times min(1, (m - 1) / 3) and 10 - m
    # times min(1, m / 3). So 4 give 1, 3 give (3 * 2/3 + 7) / 10, 2 give (2 * 1/3 + 8 * 2/3) / 10; of three all agree.
    assert sigmoid["targets"] == [pytest.approx(row) for row in ([1, 0.9, 0.6, 0, 0], [0, 0, 0, 1, 0], [0] * 5)]
    # Zero logits: each of two labels has probability 1/2. log 3 against 0: 3/4 and 1/4 in a softmax, and on their own
    # 3/4 and 1/2.
    assert softmax["even"] == pytest.approx(math.log(2))
    assert softmax["sure"] == pytest.approx(-math.log(3 / 4))
    assert softmax["mean"] == pytest.approx((math.log(2) - math.log(3 / 4)) / 2)
    assert sigmoid["even"] == pytest.approx(2 * math.log(2))
    assert sigmoid["sure"] == pytest.approx(-math.log(3 / 4) + math.log(2))
    assert sigmoid["mean"] == pytest.approx((2 * math.log(2) - math.log(3 / 4) + math.log(2)) / 2)


@pytest.fixture(scope="module")
def data_set(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "shapes"
    command = [sys.executable, "-m", "models.shapes", "--out", folder, "--split", "train", "--count", "24"]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return folder


def _train(data_set: Path, out: Path, *flags: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    files = ["--dataset", "vqav2", "--questions", data_set / "questions.json", "--annotations"]
    size = ["--steps", "3", "--pictures", "4", "--evaluate-every", "3", "--fp32"]
    return _python(
        "-m", "models.vilt.train", "--out", out, *files, data_set / "annotations.json", *size, *flags, check=check
    )


def _labels(run: Path) -> list[str]:
    config = json.loads((run / "checkpoint" / "config.json").read_text())
    return [config["id2label"][str(k)] for k in range(len(config["id2label"]))]


def test_a_data_set_is_learned_from_random_weights(data_set: Path, tmp_path: Path) -> None:
    """Its commonest answers are the labels; nothing held out, so that all people's answers count."""
    _train(data_set, tmp_path / "run", "--labels", "6", "--held-out", "0")
    annotations = json.loads((data_set / "annotations.json").read_text())["annotations"]
    counts = Counter(said["answer"] for each in annotations for said in each["answers"])
    counts.pop("unanswerable")
    *labels, last = _labels(tmp_path / "run")
    assert last == "unanswerable"
    assert len(labels) == 6
    assert [counts[label] for label in labels] == sorted(counts.values(), reverse=True)[:6]
    [row] = csv.DictReader((tmp_path / "run" / "curve.csv").open())
    assert row["accuracy"] == "{}"
    for name in ("tokenizer.json", "preprocessor_config.json"):
        assert (tmp_path / "run" / "checkpoint" / name).read_bytes() == (SMALL / name).read_bytes()


def test_a_checkpoint_learns_another_data_sets_answers(data_set: Path, smoke_run: Path, tmp_path: Path) -> None:
    flags = ["--checkpoint", smoke_run / "checkpoint", "--scores", "sigmoid", "--held-out", "0.25", "--ruined", "0.5"]
    done = _train(data_set, tmp_path / "run", *flags)
    labels = _labels(tmp_path / "run")
    assert f"labels={len(labels)} " in done.stdout
    assert labels[-1] == "unanswerable"
    assert len(set(labels)) == len(labels)
    [row] = csv.DictReader((tmp_path / "run" / "curve.csv").open())
    assert list(json.loads(row["accuracy"])) == ["held_out"]
    _python("-m", "models.vilt.package", tmp_path / "run", "--out", tmp_path / "models" / "other", "--license", "MIT")
    manifest = load_manifest(tmp_path / "models", "other")
    assert read_labels(manifest) == labels
    assert manifest.scores.kind == "sigmoid"
    assert manifest.model.license == "MIT"
    assert not manifest.model.demo
    assert manifest.faults() == []


def test_the_learning_rate_falls_twice() -> None:
    """Warm-up, a cosine to a hundredth, and from three tenths another one; without a second one the first is all."""
    script = """
from models.vilt.optimizer import FINAL_SHARE, SECOND_SHARE, schedule
rates = [schedule(step, 1000, 200) for step in range(1000)]
assert rates[0] < 0.01 and max(rates) == max(rates[100:200]) > 0.9
assert all(a > b for a, b in zip(rates[150:800], rates[151:800])), "falls"
assert abs(rates[799] - FINAL_SHARE) < 1e-4 and rates[800] == SECOND_SHARE == 0.3
assert all(a > b for a, b in zip(rates[800:], rates[801:])) and abs(rates[-1] - FINAL_SHARE) < 1e-4
assert abs(rates[900] - (0.3 + 0.01) / 2) < 1e-9  # half way down
alone = [schedule(step, 1000) for step in range(1000)]
assert all(a > b for a, b in zip(alone[150:], alone[151:])) and abs(alone[-1] - FINAL_SHARE) < 1e-4
"""
    _python("-c", script)


def test_what_the_model_cannot_read_is_said_before_it_is_trained(data_set: Path, tmp_path: Path) -> None:
    """A language that its vocabulary does not have, questions that are too long, a start without weights; and other
    pictures are other data."""
    pictures = [str(path) for path in sorted((data_set / "images").iterdir())[:4]]
    long = "Is the seal " + "intact and " * 40 + "closed?"
    script = f"""
import json
from pathlib import Path
from models.vilt.model import SMALL
from models.vilt.tasks import data_task
from service.errors import DataError
from service.evaluation.running.formats.base import Sources

def task(*questions, pictures={pictures!r}, start=None):
    path = Path({str(tmp_path)!r}) / "train.jsonl"
    rows = [{{"image": i, "question": q, "answers": ["yes"]}} for i, q in zip(pictures, questions, strict=False)]
    path.write_text("".join(json.dumps(row) + "\\n" for row in rows))
    return data_task("jsonl", Sources(annotations=path), start, 10, 0.0, 0.0, 0)

plain = task("Is the seal intact?", "Is it red?")
assert plain.notes == (), plain.notes
first, second = task("Is the seal intact?", {long!r}, "Цела ли пломба?").notes
assert "1 of 3" in first and "does not know" in first and "Цела ли пломба?" in first, first
assert "1 of 3" in second and "cut off after 40 tokens" in second and "Is the seal intact and" in second, second
assert "no weights" in task("Is it red?", start=SMALL).notes[0]
try:
    task("Цела ли пломба?", "密封完好吗？")
    raise SystemExit("it was taken")
except DataError as error:
    assert "knows no word" in str(error) and "Цела ли пломба?" in str(error), error
assert task("Is the seal intact?", "Is it red?").about == plain.about
assert task("Is the seal intact?", "Is it red?", pictures={pictures[::-1]!r}).about != plain.about
"""
    _python("-c", script)


def test_known_labels_keep_their_rows_and_batches_keep_pictures_whole(data_set: Path, smoke_run: Path) -> None:
    """Rows by name, whatever their order; and what a file source gives: each picture once before any comes again."""
    script = f"""
import copy
from collections import Counter
from pathlib import Path
import numpy as np, torch
from models.vilt.checkpoint import relabelled
from models.vilt.model import load_model
from models.vilt.sources import FileSource
from models.vilt.tasks import split_by_picture
from service.evaluation.running.datasets import load
from service.evaluation.running.formats.base import Sources

model = load_model(Path({str(smoke_run / "checkpoint")!r}))
old, names = copy.deepcopy(model.classifier[-1]), [model.config.id2label[k] for k in range(model.config.num_labels)]
before = {{name: value.clone() for name, value in model.named_parameters() if not name.startswith("classifier.3")}}
new = relabelled(model, ["Yes", "mauve", names[3], "unanswerable"]).classifier[-1]
assert new.weight.shape == (4, old.weight.shape[1])
for row, name in ((0, "yes"), (2, names[3]), (3, "unanswerable")):
    assert torch.equal(new.weight[row], old.weight[names.index(name)]), name
    assert torch.equal(new.bias[row], old.bias[names.index(name)]), name
assert new.bias[1] == 0 and 0 < new.weight[1].abs().mean() < 0.05
assert all(torch.equal(value, dict(model.named_parameters())[name]) for name, value in before.items())
assert model.config.id2label == {{0: "Yes", 1: "mauve", 2: names[3], 3: "unanswerable"}}

folder = Path({str(data_set)!r})
data = load("vqav2", Sources(folder / "questions.json", folder / "annotations.json"))
train, held = split_by_picture(data.examples, 0.25, 0)
sides = [{{e.image for e in side}} for side in (train, held)]
assert not sides[0] & sides[1] and [len(side) for side in sides] == [18, 6]
assert len(train) + len(held) == len(data.examples) == 72
for ruined in (0.0, 1.0):
    source = FileSource(train, 64, ruined)
    for turn in range(2):
        seen = Counter()
        for step in range(6 * turn, 6 * turn + 6):
            found = source.examples(np.random.default_rng(step), step, 3, 2)
            seen.update(frozenset(q.text for q in e.questions) for e in found)
            assert all(len(e.questions) == 2 for e in found)
            for e in found:
                assert (e.damage is not None) == (ruined == 1.0)
                assert not e.damage or all(set(q.answers) == {{"unanswerable"}} for q in e.questions)
        assert sum(seen.values()) == 18
first, again = (FileSource(train, 64).examples(np.random.default_rng(9), 4, 3, 2) for _ in range(2))
assert all(np.array_equal(a.pixels, b.pixels) and a.questions == b.questions for a, b in zip(first, again))
"""
    _python("-c", script)


WRITTEN_BY_HAND = ("MODEL_CARD.md", "examples/a.png")


@pytest.fixture(scope="module")
def packaged(smoke_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A models folder with the smoke run's model, made anew in an old one's place, and an int8 copy of it."""
    folder = tmp_path_factory.mktemp("models")
    (folder / "smoke" / "examples").mkdir(parents=True)
    for name in (*WRITTEN_BY_HAND, "model.toml", "calibration.json", "left-over.txt"):
        (folder / "smoke" / name).write_text(name)
    _python("-m", "models.vilt.package", smoke_run, "--out", folder / "smoke", "--demo", "--description", 'a "test"')
    _python("-m", "models.vilt.quantise", folder / "smoke", "--out", folder / "smoke-int8")
    return folder


def test_a_packaged_run_is_a_whole_model_folder(packaged: Path, smoke_run: Path) -> None:
    manifest = load_manifest(packaged, "smoke")
    assert manifest.faults() == []
    assert manifest.model.demo
    assert manifest.model.description == 'a "test"'
    assert manifest.calibration is None
    assert read_labels(manifest) == _labels(smoke_run)
    assert json.loads((packaged / "smoke" / "parity.json").read_text())["ok"]
    for name in ("config.json", "model.safetensors"):
        copy = (packaged / "smoke" / "checkpoint" / name).read_bytes()
        assert copy == (smoke_run / "checkpoint" / name).read_bytes()


def test_packaging_anew_keeps_what_was_written_by_hand(packaged: Path) -> None:
    """And nothing of the old model, nor of the work in between."""
    assert all((packaged / "smoke" / name).read_text() == name for name in WRITTEN_BY_HAND)
    assert not (packaged / "smoke" / "left-over.txt").exists()
    assert not (packaged / "smoke" / "calibration.json").exists()
    assert sorted(path.name for path in packaged.iterdir()) == ["smoke", "smoke-int8"]


@pytest.mark.parametrize("name", ["no-model", ".", "-x", "n" * 101])
def test_a_recipe_never_takes_the_place_of_what_is_no_model(packaged: Path, smoke_run: Path, name: str) -> None:
    (packaged / "no-model").mkdir(exist_ok=True)
    (packaged / "no-model" / "precious.py").write_text("")
    for module, *arguments in (
        ("models.vilt.package", smoke_run, "--out", packaged / name),
        ("models.vilt.place", "--models-dir", packaged, "--", name),
    ):
        done = _python("-m", module, *arguments, check=False)
        assert done.returncode != 0
        assert "Traceback" not in done.stderr
    assert (packaged / "no-model" / "precious.py").is_file()
    shutil.rmtree(packaged / "no-model")


def test_a_quantised_folder_is_smaller_and_serves(packaged: Path) -> None:
    sizes = [(packaged / name / "model.onnx").stat().st_size for name in ("smoke", "smoke-int8")]
    assert sizes[1] < 0.5 * sizes[0]
    manifests = [tomllib.loads((packaged / name / "model.toml").read_text()) for name in ("smoke", "smoke-int8")]
    assert manifests[1]["model"].pop("name") == "smoke-int8"
    assert manifests[0]["model"].pop("name") == "smoke"
    digests = [manifest.pop("files") for manifest in manifests]
    assert {name for name in digests[0] if digests[0][name] != digests[1][name]} == {"model.onnx"}
    assert [manifest["source"].pop("precision") for manifest in manifests] == ["fp32", "int8"]
    assert manifests[0] == manifests[1]
    done = subprocess.run(
        [VQA, "models", "verify", "smoke-int8", "--json", "--models-dir", packaged], capture_output=True, text=True
    )
    assert json.loads(done.stdout) == {"name": "smoke-int8", "ok": True, "faults": []}, done.stderr


def test_wrong_usage_is_said_in_a_line(packaged: Path, smoke_run: Path, tmp_path: Path) -> None:
    commands = {
        "need --dataset": ["train", "--out", tmp_path / "run", "--annotations", "a.json"],
        "invalid choice: 'nonsense'": ["train", "--out", tmp_path / "run", "--dataset", "nonsense"],
        "cannot be a model's name": ["package", smoke_run, "--out", tmp_path / "not a name"],
        "is there already": ["quantise", packaged / "smoke", "--out", packaged / "smoke-int8"],
    }
    script = """
import contextlib, importlib, io, json, sys
said = []
for module, *arguments in json.loads(sys.argv[1]):
    sys.argv, stream = [module, *arguments], io.StringIO()
    with contextlib.redirect_stderr(stream):
        try:
            importlib.import_module(f"models.vilt.{module}").main()
        except SystemExit as stop:
            said.append([stop.code, stream.getvalue()])
print(json.dumps(said))
"""
    lists = json.dumps([[str(part) for part in command] for command in commands.values()])
    for says, (code, text) in zip(commands, json.loads(_python("-c", script, lists).stdout), strict=True):
        assert code == 2
        assert says in text.splitlines()[-1]
    assert list(tmp_path.iterdir()) == []


def test_processor_equals_the_hubs(tmp_path: Path) -> None:
    """Against transformers' ViltImageProcessor, configured by the same preprocessor_config.json."""
    rng = np.random.default_rng(0)
    sizes = [(64, 64), (48, 48), (97, 61), (61, 97), (300, 200), (200, 333), (128, 1024)]
    np.savez(tmp_path / "pictures.npz", *[rng.integers(0, 256, (*s, 3)).astype(np.uint8) for s in sizes])
    script = f"""
from pathlib import Path
import numpy as np
from PIL import Image
from transformers import ViltImageProcessor
from service.backends.processor import ViltProcessor
hub = ViltImageProcessor.from_pretrained({str(SMALL)!r})
ours = ViltProcessor.load(Path({str(SMALL)!r}) / "preprocessor_config.json")
worst = 0.0
for pixels in np.load({str(tmp_path / "pictures.npz")!r}).values():
    expected = hub(pixels, return_tensors="np")["pixel_values"][0]
    found = ours(Image.fromarray(pixels))
    assert found.shape == expected.shape, (pixels.shape, found.shape, expected.shape)
    worst = max(worst, float(abs(found - expected).max()))
print(worst)
"""
    assert float(_python("-c", script).stdout) <= 1e-6
