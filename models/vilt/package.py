"""Make a model folder from a training run: `python -m models.vilt.package RUN --out models/NAME`.

Exports, compares with PyTorch, copies what serving reads, and writes the manifest. The folder is made whole beside its
place and moved there. It has no calibration yet: ask the model what it was not trained on (`vqa eval`) and fit one
(`vqa calibrate`).
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from pathlib import Path

import torch

from models.vilt.checkpoint import PROCESSOR, TOKENIZER, Checkpoint
from models.vilt.export import export
from models.vilt.model import load_model
from models.vilt.parity import compare
from models.vilt.place import check_place, put_in_place
from service.backends.digests import rewrite_digests

MANIFEST = """\
[model]
name = {name}
kind = "classifier"
task = "visual-question-answering"
description = {description}
license = {license}
demo = {demo}

[source]
file = "model.onnx"

[processor]
file = "preprocessor_config.json"

[tokenizer]
file = "tokenizer.json"
max_tokens = {max_tokens}

[labels]
file = "labels.json"

[scores]
kind = {scores}
"""


def manifest(name: str, *, description: str, licence: str, demo: bool, max_tokens: int, scores: str) -> str:
    """The text of model.toml, without digests."""
    texts = {"name": name, "description": description, "license": licence, "scores": scores}
    # A JSON string is a TOML string, too.
    quoted = {key: json.dumps(value, ensure_ascii=False) for key, value in texts.items()}
    return MANIFEST.format(**quoted, demo=str(demo).lower(), max_tokens=max_tokens)


def assemble(run: Path, folder: Path, text: str) -> dict:
    """Write every file that serving reads, and the checkpoint; returns the parity report.

    Raises RuntimeError when the export does not equal the checkpoint.
    """
    checkpoint = folder / "checkpoint"
    checkpoint.mkdir(parents=True)
    for name in ("config.json", "model.safetensors"):
        shutil.copyfile(run / "checkpoint" / name, checkpoint / name)
    for name in (TOKENIZER, PROCESSOR):
        shutil.copyfile(run / "checkpoint" / name, folder / name)
    if (run / "curve.csv").is_file():  # not where it was stopped before its first evaluation
        shutil.copyfile(run / "curve.csv", folder / "curve.csv")
    model = load_model(checkpoint)
    labels = [model.config.id2label[k] for k in range(model.config.num_labels)]
    (folder / "labels.json").write_text(json.dumps(labels, indent=1, ensure_ascii=False) + "\n")
    export(model, folder / "model.onnx")
    parity = compare(model, folder / "model.onnx")
    if not parity["ok"]:
        raise RuntimeError(f"the export does not equal the checkpoint: {json.dumps(parity)}")
    (folder / "parity.json").write_text(json.dumps(parity, indent=1) + "\n")
    (folder / "model.toml").write_text(text)
    rewrite_digests(folder)
    return parity


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="folder of a training run")
    parser.add_argument("--out", type=Path, required=True, help="model folder; its name is the model's")
    parser.add_argument("--description", default="", help="one line for `vqa models list`")
    parser.add_argument("--license", default="", help="of the weights")
    parser.add_argument("--demo", action="store_true", help="every reply warns that it is a demonstration")
    given = parser.parse_args()
    torch.set_num_threads(1)
    out: Path = given.out
    try:
        check_place(out)
    except ValueError as error:
        parser.error(f"--out: {error}")
    if not (given.run / "state.pt").is_file():
        parser.error(f"{given.run} is no training run: it has no state.pt")
    out.parent.mkdir(parents=True, exist_ok=True)
    state = torch.load(given.run / "state.pt", weights_only=True, map_location="cpu")
    text = manifest(
        out.resolve().name,
        description=given.description,
        licence=given.license,
        demo=given.demo,
        max_tokens=Checkpoint.find(given.run / "checkpoint").max_tokens,
        scores=state["settings"]["scores"],
    )
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=".new-") as scratch:
        made = Path(scratch) / "model"
        parity = assemble(given.run, made, text)
        put_in_place(made, out)
    print(f"{out}: largest difference from PyTorch {parity['largest_difference']:.1e}")


if __name__ == "__main__":
    main()
