"""Make the model folder from a training run: `python -m models.vilt.package RUN --out models/vilt-shapes`.

Exports, compares with PyTorch, copies what serving reads, fits the calibration, measures, and writes the manifest.
MODEL_CARD.md is written by hand, but for its section of figures.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from transformers import ViltImageProcessor

from models.manifest import rewrite_digests
from models.shapes.degrade import DEGRADATIONS
from models.shapes.phrasing import Group
from models.shapes.render import render
from models.shapes.scene import COLORS, Background, Box, Scene, Shape
from models.vilt import calibrate, evaluate
from models.vilt.card import with_figures
from models.vilt.export import export
from models.vilt.model import load_model
from models.vilt.parity import compare
from models.vilt.processor import SHORTEST_EDGE, SIZE_DIVISOR
from models.vilt.tokenizer import MAX_TOKENS

CARD = "MODEL_CARD.md"
MANIFEST = f"""\
[model]
name = "vilt-shapes"
kind = "classifier"
task = "visual-question-answering"
description = "A small ViLT that answers questions about drawn circles, rectangles and triangles; a demo model"
license = "MIT"
demo = true

[source]
file = "model.onnx"

[processor]
file = "preprocessor_config.json"

[tokenizer]
file = "tokenizer.json"
max_tokens = {MAX_TOKENS}

[labels]
file = "labels.json"

[scores]
kind = "softmax"

[calibration]
file = "calibration.json"
"""


def example_scenes() -> dict[str, Scene]:
    """The example pictures of the model card, by file name."""
    return {
        "red-circle.png": Scene(192, 192, _flat(246, 240, 232), (_shape("circle", "red", (60, 48, 84, 84)),)),
        "three-shapes.png": Scene(
            288,
            192,
            _flat(226, 236, 248),
            (
                _shape("rectangle", "blue", (24, 98, 62, 46)),
                _shape("triangle", "yellow", (122, 30, 60, 52)),
                _shape("circle", "green", (206, 92, 56, 56)),
            ),
        ),
    }


def write_examples(folder: Path, seed: int = 0) -> None:
    """The example scenes, and one picture too dark to answer."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, scene in example_scenes().items():
        Image.fromarray(render(scene)).save(folder / name, optimize=True)
    pixels = render(example_scenes()["red-circle.png"])
    dark = DEGRADATIONS[Group.TEST]["black"](pixels, np.random.default_rng(seed))
    Image.fromarray(dark).save(folder / "too-dark.png", optimize=True)


def assemble(run: Path, folder: Path) -> dict:
    """Write every file of the model folder but the card; returns the content of evaluation.json."""
    checkpoint = folder / "checkpoint"
    checkpoint.mkdir(parents=True)
    for name in ("config.json", "model.safetensors"):
        shutil.copyfile(run / "checkpoint" / name, checkpoint / name)
    shutil.copyfile(checkpoint / "config.json", folder / "config.json")
    for name in ("tokenizer.json", "curve.csv"):
        shutil.copyfile(run / name, folder / name)
    model = load_model(checkpoint)
    labels = [model.config.id2label[k] for k in range(model.config.num_labels)]
    (folder / "labels.json").write_text(json.dumps(labels, indent=1) + "\n")
    ViltImageProcessor(size={"shortest_edge": SHORTEST_EDGE}, size_divisor=SIZE_DIVISOR).save_pretrained(folder)
    export(model, folder / "model.onnx")
    parity = compare(model, folder / "model.onnx")
    if not parity["ok"]:
        raise RuntimeError(f"the export does not equal the checkpoint: {json.dumps(parity)}")
    write_examples(folder / "examples")
    report = {
        "parity": parity,
        "calibration": calibrate.calibrate(folder, seed=0),
        **evaluate.evaluate(folder, drawn=1000, seed=0),
    }
    (folder / "evaluation.json").write_text(json.dumps(report, indent=1) + "\n")
    (folder / "model.toml").write_text(MANIFEST)
    rewrite_digests(folder)
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="folder of a training run")
    parser.add_argument("--out", type=Path, required=True, help="model folder")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    out: Path = arguments.out
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=".new-") as scratch:
        made, old = Path(scratch) / "model", Path(scratch) / "old"
        report = assemble(arguments.run, made)
        if (out / CARD).is_file():
            (made / CARD).write_text(with_figures((out / CARD).read_text(), report))
        # Made whole beside its place and moved there, so that nothing of an older revision stays.
        if out.exists():
            out.rename(old)
        made.rename(out)
    print(json.dumps(report, indent=1))


def _flat(*rgb: int) -> Background:
    red, green, blue = rgb
    return Background((red, green, blue), (red, green, blue))


def _shape(kind: str, color: str, box: Box) -> Shape:
    return Shape(kind, color, box, COLORS[color])


if __name__ == "__main__":
    main()
