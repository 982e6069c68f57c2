"""Make a model folder from a training run: `python -m models.vilt.package RUN --out models/NAME`.

Exports, compares with PyTorch, copies what serving reads, and writes the manifest. The folder is made whole beside its
place and moved there. It has no calibration yet: ask the model what it was not trained on (`vqa eval`) and fit one
(`vqa calibrate`).
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from transformers import ViltForQuestionAnswering

from models.vilt.checkpoint import Checkpoint
from models.vilt.export import export
from models.vilt.model import load_model
from models.vilt.parity import ParityError, check, compare
from models.vilt.place import check_place, put_in_place
from models.vilt.targets import ScoreKind
from service.backends.digests import rewrite_digests
from service.backends.manifest import MANIFEST_FILE

MANIFEST = """\
[model]
name = {name}
kind = "classifier"
task = "visual-question-answering"
description = {description}
license = {licence}
demo = {demo}

[source]
file = "model.onnx"
precision = "fp32"
{origin}
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


@dataclass(frozen=True)
class About:
    """What a manifest says of a model beside its files.

    Attributes:
        name, description, licence, demo: as in `[model]`.
        scores: how its logits are read.
        checkpoint, revision: where its weights came from, and in which state; empty where it was trained here.
    """

    name: str
    scores: ScoreKind
    description: str = ""
    licence: str = ""
    demo: bool = False
    checkpoint: str = ""
    revision: str = ""

    def manifest(self, max_tokens: int) -> str:
        """The text of model.toml, without digests."""
        # A JSON string is a TOML string, too, but for one character that JSON leaves as it is.
        quoted = {
            key: json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f") for key, value in asdict(self).items()
        }
        origin = [f"{key} = {quoted[key]}\n" for key in ("checkpoint", "revision") if getattr(self, key)]
        fields = quoted | {"demo": str(self.demo).lower(), "origin": "".join(origin)}
        return MANIFEST.format(**fields, max_tokens=max_tokens)


def assemble(checkpoint: Checkpoint, model: ViltForQuestionAnswering, about: About, folder: Path) -> dict:
    """Write every file that serving reads into a folder that is there; returns the parity report.

    Raises:
        ParityError: the export does not equal the checkpoint.
    """
    checkpoint.copy_files(folder)
    labels = [model.config.id2label[k] for k in range(model.config.num_labels)]
    (folder / "labels.json").write_text(json.dumps(labels, indent=1, ensure_ascii=False) + "\n", "utf-8")
    export(model, folder / "model.onnx")
    parity = compare(model, folder / "model.onnx")
    check(parity)
    (folder / "parity.json").write_text(json.dumps(parity, indent=1) + "\n")
    (folder / MANIFEST_FILE).write_text(about.manifest(checkpoint.max_tokens), "utf-8")
    rewrite_digests(folder)
    return parity


def package(run: Path, about: About, folder: Path) -> dict:
    """A training run's model folder, its checkpoint and learning curve included; returns the parity report.

    Raises:
        ParityError: the export does not equal the checkpoint.
    """
    kept = folder / "checkpoint"
    kept.mkdir(parents=True)
    for name in ("config.json", "model.safetensors"):
        shutil.copyfile(run / "checkpoint" / name, kept / name)
    if (run / "curve.csv").is_file():  # not where it was stopped before its first evaluation
        shutil.copyfile(run / "curve.csv", folder / "curve.csv")
    return assemble(Checkpoint.find(run / "checkpoint"), load_model(kept), about, folder)


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
    scores = state["settings"]["scores"]
    about = About(out.resolve().name, scores, given.description, given.license, given.demo)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=".new-") as scratch:
        made = Path(scratch) / "model"
        try:
            parity = package(given.run, about, made)
        except ParityError as error:
            sys.exit(str(error))
        put_in_place(made, out)
    print(f"{out}: largest difference from PyTorch {parity['largest_difference']:.1e}")


if __name__ == "__main__":
    main()
