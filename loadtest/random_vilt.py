"""A model folder of ViLT-B/32's size with random weights, for measuring what a large model costs.

    python -m loadtest.random_vilt OUT [--name vilt-b32-random] [--scores sigmoid] [--checkpoint FOLDER]

Runs in the export environment (torch, Optimum). 117.6 M parameters, 3,129 labels, pictures of 384 x 384 to 384 x 608,
at most 40 tokens: time and memory are those of `dandelin/vilt-b32-finetuned-vqa`, the answers mean nothing. The folder
takes 471 MB and is not for version control. `--checkpoint` writes the same weights, labels, tokenizer and processor in
the hub's format beside it, for who reads that.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer
from transformers import BertTokenizerFast, ViltForQuestionAnswering, ViltImageProcessor, ViltProcessor

from models.vilt.export import export
from models.vilt.model import set_labels
from models.vilt.package import manifest
from models.vilt.parity import B32_LABELS, random_b32
from models.vilt.tokenizer import train_tokenizer, training_questions
from service.backends.digests import rewrite_digests

SHORTEST_EDGE = 384
SIZE_DIVISOR = 32
# Answers that choices and the answer sets of the contract may name, before the numbered filler.
WORDS = ("yes", "no", "red", "blue", "green", "yellow", "black", "white", "brown", "gray", "circle", "unanswerable")
COUNTS = 20
DESCRIPTION = "ViLT-B/32's size with random weights: for measuring time and memory; its answers mean nothing"


def labels() -> list[str]:
    """3,129 labels that all normalise differently."""
    known = [*WORDS, *(str(n) for n in range(COUNTS))]
    return known + [f"thing {n}" for n in range(COUNTS, COUNTS + B32_LABELS - len(known))]


def tokenizer(vocab_size: int) -> Tokenizer:
    """A WordPiece tokenizer over this repository's questions, filled up to the size of BERT's vocabulary."""
    trained = json.loads(train_tokenizer(training_questions(seed=0, pictures=500)).to_str())
    vocab: dict[str, int] = trained["model"]["vocab"]
    vocab.update({f"[unused{k}]": k for k in range(len(vocab), vocab_size)})
    return Tokenizer.from_str(json.dumps(trained))


def make(folder: Path, name: str, scores: str) -> ViltForQuestionAnswering:
    """Write the whole folder; returns the model. Raises FileExistsError where it is there: a revision never changes."""
    folder.mkdir(parents=True)
    model = random_b32()
    export(model, folder / "model.onnx")
    tokenizer(model.config.vocab_size).save(str(folder / "tokenizer.json"))
    _image_processor().save_pretrained(folder)
    (folder / "labels.json").write_text(json.dumps(labels(), indent=1) + "\n")
    tokens = model.config.max_position_embeddings
    text = manifest(name, description=DESCRIPTION, licence="MIT", demo=True, max_tokens=tokens, scores=scores)
    (folder / "model.toml").write_text(text)
    rewrite_digests(folder)
    return model


def save_checkpoint(model: ViltForQuestionAnswering, source: Path, folder: Path) -> None:
    """The model of the folder `source` in the hub's format: what `from_pretrained` of model and processor read."""
    set_labels(model.config, labels())
    model.save_pretrained(folder)
    words = BertTokenizerFast(
        tokenizer_file=str(source / "tokenizer.json"), model_max_length=model.config.max_position_embeddings
    )
    ViltProcessor(_image_processor(), words).save_pretrained(folder)


def _image_processor() -> ViltImageProcessor:
    return ViltImageProcessor(size={"shortest_edge": SHORTEST_EDGE}, size_divisor=SIZE_DIVISOR)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="the model folder to make; must not exist")
    parser.add_argument("--name", help="name in the manifest; default the folder's")
    parser.add_argument("--scores", choices=("sigmoid", "softmax"), default="sigmoid", help="default sigmoid")
    parser.add_argument("--checkpoint", type=Path, help="folder for the same model in the hub's format; must not exist")
    arguments = parser.parse_args()
    for folder in filter(None, (arguments.out, arguments.checkpoint)):
        if folder.exists():
            print(f"{folder} exists already", file=sys.stderr)
            return 1
    torch.set_num_threads(1)
    model = make(arguments.out, arguments.name or arguments.out.name, arguments.scores)
    if arguments.checkpoint:
        save_checkpoint(model, arguments.out, arguments.checkpoint)
    print(f"{arguments.out}: {(arguments.out / 'model.onnx').stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
