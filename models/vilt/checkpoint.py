"""A checkpoint folder in the hub's format: weights and configuration, tokenizer, processor.

`config.json`, `model.safetensors`, `tokenizer.json`, `preprocessor_config.json`, as `dandelin/vilt-b32-finetuned-vqa`
has them. A model folder of this service, which keeps the weights in `checkpoint/`, will do as well.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch
from transformers import ViltForQuestionAnswering

from models.vilt.model import fresh_model, load_model, read_config, set_labels
from service.answers import match_key
from service.backends.processor import ViltProcessor
from service.backends.tokenizer import QuestionTokenizer

TOKENIZER = "tokenizer.json"
PROCESSOR = "preprocessor_config.json"


@dataclass(frozen=True)
class Checkpoint:
    """Where the parts of a checkpoint lie.

    Attributes:
        folder: has config.json and, unless the model is to be made afresh, its weights.
        tokenizer_file, processor_file: in the folder, or in the one above.
        max_tokens: longest encoded question.
    """

    folder: Path
    tokenizer_file: Path
    processor_file: Path
    max_tokens: int

    @classmethod
    def find(cls, folder: Path) -> Checkpoint:
        """The checkpoint in a folder of the hub's format, or in a model folder of this service.

        Raises:
            FileNotFoundError: a file is not there.
        """
        inner = folder / "checkpoint" if (folder / "checkpoint" / "config.json").is_file() else folder
        _, tokenizer, processor = (_beside(inner, name) for name in ("config.json", TOKENIZER, PROCESSOR))
        return cls(inner, tokenizer, processor, read_config(inner).max_position_embeddings)

    @property
    def has_weights(self) -> bool:
        """Whether there are weights to start from, in one file or in shards."""
        return any(any(self.folder.glob(pattern)) for pattern in ("model*.safetensors", "pytorch_model*.bin"))

    @cached_property
    def tokenizer(self) -> QuestionTokenizer:
        """As serving has it."""
        return QuestionTokenizer(self.tokenizer_file, self.max_tokens)

    @cached_property
    def processor(self) -> ViltProcessor:
        """As serving has it."""
        return ViltProcessor.load(self.processor_file)

    def model(self, labels: Sequence[str], seed: int) -> ViltForQuestionAnswering:
        """The weights, for these labels: what is known of a label is kept, new ones start near zero.

        Where there are no weights, random ones by the configuration.
        """
        if self.has_weights:
            torch.manual_seed(seed)
            return relabelled(load_model(self.folder), labels)
        return fresh_model(read_config(self.folder), labels, seed)

    def copy_files(self, folder: Path) -> None:
        """Put tokenizer and processor into a folder."""
        shutil.copyfile(self.tokenizer_file, folder / TOKENIZER)
        shutil.copyfile(self.processor_file, folder / PROCESSOR)


def _beside(folder: Path, name: str) -> Path:
    for place in (folder, folder.parent):
        if (place / name).is_file():
            return place / name
    raise FileNotFoundError(f"{folder} is no checkpoint folder: there is no {name}")


def relabelled(model: ViltForQuestionAnswering, labels: Sequence[str]) -> ViltForQuestionAnswering:
    """The model with another list of labels; the same instance."""
    known = {match_key(label): k for k, label in sorted(model.config.id2label.items(), reverse=True)}
    old: torch.nn.Linear = model.classifier[-1]
    new = torch.nn.Linear(old.in_features, len(labels))
    with torch.no_grad():
        new.weight.normal_(std=model.config.initializer_range)
        new.bias.zero_()
        for row, label in enumerate(labels):
            if (k := known.get(match_key(label))) is not None:
                new.weight[row], new.bias[row] = old.weight[k], old.bias[k]
    model.classifier[-1] = new
    set_labels(model.config, labels)
    model.num_labels = model.config.num_labels
    return model
