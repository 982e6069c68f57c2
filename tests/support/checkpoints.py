"""Small checkpoints in the hub's format, saved by transformers itself, and `vqa models add` as a process."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.support.process import VQA

ROOT = Path(__file__).resolve().parents[2]
PYTHON = os.environ.get("VQA_EXPORT_PYTHON") or str(ROOT / ".venv-export" / "bin" / "python")
# As the official normalisation leaves them; with a blank one, as the 3,129 answers of VQA v2 have it.
LABELS = ("", "yes", "no", "red", "blue", "3", "cat", "dog", "wooden table", "net", "unanswerable", "tennis", "pizza")
ANSWERS = LABELS[1:]
# What would lead to a hub, or keep from one.
_OF_HUBS = dict.fromkeys(("HF_HUB_OFFLINE", "HF_ENDPOINT", "HF_TOKEN", "HF_HOME", "HF_HUB_CACHE"), "")

needs_export = pytest.mark.skipif(
    not Path(PYTHON).is_file(),
    reason="no export environment: set VQA_EXPORT_PYTHON to an interpreter with models/constraints.txt installed",
)

# Weights drawn wider than transformers draws them, so that every part of the network counts: else no comparison of two
# forward passes could tell anything.
MAKE = """
import json, sys
from pathlib import Path
import torch
from torch import nn
from transformers import BertTokenizerFast, ViltConfig, ViltForQuestionAnswering, ViltImageProcessor
folder, labels = Path(sys.argv[1]), json.loads(sys.argv[2])
torch.manual_seed(1)
words = "what is the in picture ? color how many are there a cat dog red blue and on shape of".split()
pieces = [chr(c) for c in range(97, 123)] + ["##" + chr(c) for c in range(97, 123)]
vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words, *(p for p in pieces if p not in words)]
folder.mkdir(parents=True)
(folder / "vocab.txt").write_text("\\n".join(vocabulary) + "\\n")
config = ViltConfig(
    vocab_size=len(vocabulary), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
    image_size=64, patch_size=16, max_position_embeddings=24,
    id2label=dict(enumerate(labels)), label2id={label: k for k, label in enumerate(labels)},
)
model = ViltForQuestionAnswering(config)
for name, parameter in model.named_parameters():
    norm_weight = "norm" in name.lower() and name.endswith("weight")
    nn.init.normal_(parameter, mean=1.0 if norm_weight else 0.0, std=0.3)
model.save_pretrained(folder)
ViltImageProcessor(size={"shortest_edge": 64}, size_divisor=16).save_pretrained(folder)
BertTokenizerFast(vocab_file=str(folder / "vocab.txt")).save_pretrained(folder)
(folder / "README.md").write_text("---\\nlicense: cc-by-4.0\\ntags:\\n- vqa\\n---\\n\\n# A test\\n")
"""


def make_checkpoint(folder: Path, labels: tuple[str, ...] = LABELS) -> Path:
    """A ViLT of 40,000 random parameters, with all files that a hub's repository has."""
    export_python("-c", MAKE, folder, json.dumps(labels))
    return folder


def export_python(*arguments: str | Path) -> str:
    """What the export environment's interpreter prints."""
    done = subprocess.run([PYTHON, "-W", "ignore", *map(str, arguments)], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def environment(**given: str) -> dict[str, str]:
    """The process's own, with the export environment and without what would lead to a hub; empty ones are left out."""
    found = os.environ | _OF_HUBS | {"VQA_EXPORT_PYTHON": PYTHON} | given
    return {name: value for name, value in found.items() if value}


def add(*arguments: str | Path, cwd: Path | None = None, **given: str) -> subprocess.CompletedProcess[str]:
    """`vqa models add` with arguments, as a person runs it."""
    command = [VQA, "models", "add", *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, env=environment(**given), capture_output=True, text=True, timeout=600)
