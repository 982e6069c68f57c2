"""Training batches: a source's examples as the model takes them, several questions a picture."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from models.shapes.examples import Example
from models.vilt.checkpoint import Checkpoint
from models.vilt.sources import Source
from models.vilt.targets import Targets

Inputs = dict[str, Tensor]
MODEL_INPUTS = ("input_ids", "attention_mask", "pixel_values", "pixel_mask")


class Collator:
    """Examples to model inputs with one row a question, as serving would make them, and their targets."""

    def __init__(self, checkpoint: Checkpoint, targets: Targets) -> None:
        self._processor = checkpoint.processor
        self._tokenizer = checkpoint.tokenizer
        self._targets = targets
        self._ids: dict[str, np.ndarray] = {}

    def __call__(self, examples: Sequence[Example]) -> tuple[Inputs, Tensor]:
        """Model inputs and targets (questions x labels); a picture is prepared once, then repeated."""
        questions = [q for e in examples for q in e.questions]
        ids, attention = self._encoded([q.text for q in questions])
        values, mask = pad_batch([self._processor(Image.fromarray(e.pixels)) for e in examples])
        rows = np.repeat(np.arange(len(examples)), [len(e.questions) for e in examples])
        arrays = (ids, attention, values[rows], mask[rows])
        targets = torch.from_numpy(self._targets([q.answers for q in questions]))
        return {name: torch.from_numpy(a) for name, a in zip(MODEL_INPUTS, arrays, strict=True)}, targets

    def _encoded(self, questions: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """input_ids and attention_mask, int64, questions x longest of them."""
        rows = []
        for question in questions:
            if question not in self._ids:
                self._ids[question] = self._tokenizer.encode(question).ids
            rows.append(self._ids[question])
        ids = np.full((len(rows), max(map(len, rows))), self._tokenizer.pad_id, np.int64)
        mask = np.zeros_like(ids)
        for k, row in enumerate(rows):
            ids[k, : len(row)] = row
            mask[k, : len(row)] = 1
        return ids, mask


def pad_batch(pictures: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Prepared pictures to pixel_values (B x 3 x H x W, float32, zeros right and below) and pixel_mask (int64)."""
    height = max(p.shape[1] for p in pictures)
    width = max(p.shape[2] for p in pictures)
    values = np.zeros((len(pictures), 3, height, width), np.float32)
    mask = np.zeros((len(pictures), height, width), np.int64)
    for k, picture in enumerate(pictures):
        values[k, :, : picture.shape[1], : picture.shape[2]] = picture
        mask[k, : picture.shape[1], : picture.shape[2]] = 1
    return values, mask


class Batches:
    """Batch n is a function of the seed and n alone, so that a resumed run sees what an unbroken one would."""

    def __init__(self, source: Source, collate: Collator, pictures: int, questions: int, seed: int) -> None:
        self._source = source
        self._collate = collate
        self._pictures = pictures
        self._questions = questions
        self._seed = seed

    def batch(self, number: int) -> tuple[Inputs, Tensor]:
        """Model inputs and targets of one batch: up to pictures x questions rows."""
        rng = np.random.default_rng([self._seed, number])
        return self._collate(self._source.examples(rng, number, self._pictures, self._questions))
