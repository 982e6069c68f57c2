"""A model folder of ViLT-B/32's size with random weights, for measuring what a large model costs.

    python -m loadtest.random_vilt OUT [--checkpoint FOLDER] [--scores sigmoid]

Runs in the export environment (torch, Optimum). A checkpoint folder of the hub's format is made, and then added as
`vqa models add` adds any. 117.6 M parameters, 3,129 labels, pictures of 384 x 384 to 384 x 608, at most 40 tokens: time
and memory are those of `dandelin/vilt-b32-finetuned-vqa`, the answers mean nothing. The folder takes 471 MB and is not
for version control.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from tokenizers import Tokenizer
from transformers import ViltForQuestionAnswering, ViltImageProcessor

from models.vilt.add.making import add
from models.vilt.add.request import AddError, Request
from models.vilt.add.source import local_source
from models.vilt.parity import B32_LABELS, random_b32
from models.vilt.tokenizer import train_tokenizer, training_questions

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


def write_checkpoint(folder: Path, model: ViltForQuestionAnswering) -> None:
    """A checkpoint folder of the hub's format."""
    model.save_pretrained(folder)
    tokenizer(model.config.vocab_size).save(str(folder / "tokenizer.json"))
    ViltImageProcessor(size={"shortest_edge": SHORTEST_EDGE}, size_divisor=SIZE_DIVISOR).save_pretrained(folder)


def make(checkpoint: Path, out: Path, scores: str) -> None:
    """Add a checkpoint folder as the model `out`.

    Raises:
        AddError: it cannot be added, or is there already: a revision never changes.
    """
    request = Request(
        str(checkpoint), out.parent, out.name, scores=scores, licence="MIT", description=DESCRIPTION, demo=True
    )
    request.check()
    add(request, local_source(checkpoint), lambda text: print(text, file=sys.stderr, flush=True))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="the model folder to make; must not exist")
    parser.add_argument("--checkpoint", type=Path, metavar="FOLDER", help="keep the checkpoint here")
    parser.add_argument("--scores", choices=("sigmoid", "softmax"), default="sigmoid", help="default sigmoid")
    given = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory() as scratch:
            checkpoint = given.checkpoint or Path(scratch) / "vilt-b32-random"
            write_checkpoint(checkpoint, random_b32(labels()))
            make(checkpoint, given.out, given.scores)
    except AddError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{given.out}: {(given.out / 'model.onnx').stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
