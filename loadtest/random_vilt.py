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
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from tokenizers import Tokenizer
from torch import nn
from transformers import BertTokenizerFast, ViltConfig, ViltForQuestionAnswering, ViltImageProcessor, ViltProcessor

from models.vilt.add.making import add
from models.vilt.add.request import AddError, Request
from models.vilt.add.source import local_source
from models.vilt.model import set_labels
from models.vilt.tokenizer import train_tokenizer, training_questions

B32_LABELS = 3129
B32_WIDTH = 768
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


def random_b32(labels: Sequence[str], **sizes: int) -> ViltForQuestionAnswering:
    """ViLT-B/32's size, or other `sizes` of its configuration, with weights that make every part of the network count.

    Freshly initialised weights are too small for a parity check: positions and the class token are zero, and a
    layer's output hardly depends on its input. So positions, norms and biases are drawn wider and matrices doubled, or
    more than that in a narrower network.
    """
    torch.manual_seed(0)
    config = ViltConfig(**sizes)
    set_labels(config, labels)
    model = ViltForQuestionAnswering(config)
    nn.init.normal_(model.vilt.embeddings.position_embeddings, std=0.5)
    nn.init.normal_(model.vilt.embeddings.cls_token, std=0.5)
    for name, parameter in model.named_parameters():
        if parameter.ndim == 1:
            norm_weight = "norm" in name.lower() and name.endswith("weight")
            nn.init.normal_(parameter, mean=1.0 if norm_weight else 0.0, std=0.1)
        elif "encoder" in name:
            parameter.data.mul_(2 * (B32_WIDTH / config.hidden_size) ** 0.5)
    return model.eval()


def tokenizer(vocab_size: int) -> Tokenizer:
    """A WordPiece tokenizer over this repository's questions, filled up to the size of BERT's vocabulary."""
    trained = json.loads(train_tokenizer(training_questions(seed=0, pictures=500)).to_str())
    vocab: dict[str, int] = trained["model"]["vocab"]
    vocab.update({f"[unused{k}]": k for k in range(len(vocab), vocab_size)})
    return Tokenizer.from_str(json.dumps(trained))


def write_checkpoint(folder: Path, model: ViltForQuestionAnswering) -> None:
    """A checkpoint folder of the hub's format, which transformers' own model and processor can be read from."""
    model.save_pretrained(folder)
    pictures = ViltImageProcessor(size={"shortest_edge": SHORTEST_EDGE}, size_divisor=SIZE_DIVISOR)
    words = BertTokenizerFast(
        tokenizer_object=tokenizer(model.config.vocab_size), model_max_length=model.config.max_position_embeddings
    )
    ViltProcessor(pictures, words).save_pretrained(folder)


def make(model: Callable[[], ViltForQuestionAnswering], checkpoint: Path, out: Path, scores: str) -> None:
    """Make a model, its checkpoint folder (new), and of that the model folder `out`.

    Raises:
        AddError: it cannot be added, or is there already: a revision never changes. No checkpoint is left behind.
    """
    request = Request(
        str(checkpoint), out.parent, out.name, scores=scores, licence="MIT", description=DESCRIPTION, demo=True
    )
    checkpoint.mkdir(parents=True)
    try:
        request.check()
    except AddError:
        checkpoint.rmdir()
        raise
    write_checkpoint(checkpoint, model())
    add(request, local_source(checkpoint), lambda text: print(text, file=sys.stderr, flush=True))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="the model folder to make; must not exist")
    parser.add_argument("--checkpoint", type=Path, metavar="FOLDER", help="keep the checkpoint in this new folder")
    parser.add_argument("--scores", choices=("sigmoid", "softmax"), default="sigmoid", help="default sigmoid")
    given = parser.parse_args()
    if given.checkpoint and given.checkpoint.exists():
        parser.error(f"--checkpoint: {given.checkpoint} is there already")
    try:
        with tempfile.TemporaryDirectory() as scratch:
            checkpoint = given.checkpoint or Path(scratch) / given.out.name
            make(lambda: random_b32(labels()), checkpoint, given.out, given.scores)
    except AddError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{given.out}: {(given.out / 'model.onnx').stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
