"""The recipe in the export environment, by subprocess: train, export, compare with PyTorch.

The interpreter is VQA_EXPORT_PYTHON, or .venv-export/bin/python; without one these tests are skipped.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "models" / "vilt-shapes"
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


def test_random_b32_equals_stock_pytorch() -> None:
    report = json.loads(_python("-m", "models.vilt.parity", "--random-b32").stdout)
    _check_parity(report, ["384x384", "384x608", "608x384", "32x608"])
    assert report["parameters"] == pytest.approx(117.6e6, rel=0.001)
    assert report["labels"] == 3129


@pytest.fixture(scope="module")
def smoke_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("smoke")
    _python("-m", "models.vilt.train", "--smoke", "--out", run)
    return run


def test_smoke_training_to_export_to_parity(smoke_run: Path) -> None:
    lines = (smoke_run / "curve.csv").read_text().splitlines()
    assert lines[0].startswith("step,seconds,questions,learning_rate,loss,easy_vqa")
    assert [line.split(",")[0] for line in lines[1:]] == ["6", "12"]
    _python("-m", "models.vilt.export", smoke_run / "checkpoint", "--out", smoke_run)
    done = _python(
        "-m", "models.vilt.parity", "--checkpoint", smoke_run / "checkpoint", "--onnx", smoke_run / "model.onnx"
    )
    _check_parity(json.loads(done.stdout), ["64x64"])


def test_parity_fails_on_another_models_file(smoke_run: Path) -> None:
    done = _python(
        "-m", "models.vilt.parity", "--checkpoint", smoke_run / "checkpoint", "--onnx", FOLDER / "model.onnx",
        check=False,
    )  # fmt: skip
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
from models.vilt.train import SMOKE, Run
torch.set_num_threads(1)
broken = Run(Path({str(tmp_path)!r}), SMOKE, resume=False)
broken.model.train()
for _ in range(7):
    broken.train_step()
broken.save()
resumed = Run(Path({str(tmp_path)!r}), SMOKE, resume=True)
assert resumed.step == 7
resumed.train(minutes=None)
"""
    _python("-c", script)
    weights = [(folder / "checkpoint" / "model.safetensors").read_bytes() for folder in (smoke_run, tmp_path)]
    assert weights[0] == weights[1]


def test_processor_equals_the_hubs(tmp_path: Path) -> None:
    """Against transformers' ViltImageProcessor, configured by the embedded preprocessor_config.json."""
    rng = np.random.default_rng(0)
    sizes = [(64, 64), (48, 48), (97, 61), (61, 97), (300, 200), (200, 333), (128, 1024)]
    np.savez(tmp_path / "pictures.npz", *[rng.integers(0, 256, (*s, 3)).astype(np.uint8) for s in sizes])
    script = f"""
import numpy as np
from transformers import ViltImageProcessor
from models.vilt.processor import preprocess
hub = ViltImageProcessor.from_pretrained({str(FOLDER)!r})
worst = 0.0
for pixels in np.load({str(tmp_path / "pictures.npz")!r}).values():
    expected = hub(pixels, return_tensors="np")["pixel_values"][0]
    ours = preprocess(pixels)
    assert ours.shape == expected.shape, (pixels.shape, ours.shape, expected.shape)
    worst = max(worst, float(abs(ours - expected).max()))
print(worst)
"""
    assert float(_python("-c", script).stdout) <= 1e-6


def test_fitted_maps_find_the_truth() -> None:
    """Soft targets drawn from a known map: each kind of fit comes close to it, never falls, and keeps its bounds."""
    script = """
import json
import numpy as np
from models.vilt.calibration_maps import FITTERS, apply, brier, expected_calibration_error, fit_best, logit, sigmoid
rng = np.random.default_rng(0)
p = rng.beta(2, 0.7, 6000)
truth = sigmoid(0.6 * logit(p) - 0.8)
target = rng.binomial(10, truth) / 10
grid = np.linspace(0.05, 0.999, 200)
report = {}
for kind, fit in FITTERS.items():
    fitted = fit(p, target)
    values = apply(fitted, grid)
    report[kind] = {
        "error": float(abs(values - sigmoid(0.6 * logit(grid) - 0.8)).max()),
        "falls": bool((np.diff(values) < 0).any()),
        "knots": len(fitted.get("x", [])),
    }
best, scores = fit_best(p, target, np.arange(6000) // 4)
report["chosen"] = best
report["ece"] = [expected_calibration_error(p, target), expected_calibration_error(apply(best, p), target)]
report["brier"] = [brier(p, target), brier(apply(best, p), target)]
falling = FITTERS["beta"](p, 1 - target)
report["falling"] = [falling["a"], falling["b"], float(apply(falling, np.array([0.5]))[0]), float((1 - target).mean())]
print(json.dumps(report))
"""
    report = json.loads(_python("-c", script).stdout)
    for kind, allowed in (("logistic", 0.02), ("beta", 0.03), ("isotonic", 0.12)):
        assert report[kind]["error"] < allowed, kind
        assert not report[kind]["falls"]
        assert report[kind]["knots"] <= 64
    assert report["chosen"]["kind"] == "logistic"
    assert report["chosen"]["a"] == pytest.approx(0.6, abs=0.03)
    assert report["chosen"]["b"] == pytest.approx(-0.8, abs=0.05)
    assert report["ece"][0] > 0.1 > 0.02 > report["ece"][1]
    assert report["brier"][0] > report["brier"][1]
    # Accuracy that falls with confidence cannot be fitted by a map that does not: it becomes flat, at the mean.
    assert report["falling"][:2] == [0.0, 0.0]
    assert report["falling"][2] == pytest.approx(report["falling"][3], abs=0.01)
