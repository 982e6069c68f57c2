"""What a model is to say, from what ten people said: one row of targets a question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from service.answers import agreement, match_key

ScoreKind = Literal["softmax", "sigmoid"]


class Targets:
    """Turns annotators' answers into targets over a model's labels.

    softmax: the share of the people who gave each label; what they said beside the labels counts for nothing, so that a
    row sums to at most 1. sigmoid: each label's VQA accuracy, as in LXMERT and ViLT (Tan and Bansal 2019); of fewer
    than four answers the share, too.
    """

    def __init__(self, labels: Sequence[str], kind: ScoreKind) -> None:
        self.kind: ScoreKind = kind
        self._ids: Mapping[str, int] = {match_key(label): k for k, label in reversed(list(enumerate(labels)))}
        self._labels = len(labels)
        self._keys: dict[str, str] = {}

    def __call__(self, people: Sequence[Sequence[str]]) -> np.ndarray:
        """Targets in [0, 1], float32, questions x labels, from each question's answers."""
        rows = np.zeros((len(people), self._labels), np.float32)
        for row, answers in zip(rows, people, strict=True):
            keys = [self._key(answer) for answer in answers]
            for key in set(keys):
                if (label := self._ids.get(key)) is not None:
                    share = keys.count(key) / len(keys)
                    row[label] = share if self.kind == "softmax" else agreement(key, keys)
        return rows

    def _key(self, answer: str) -> str:
        if answer not in self._keys:
            self._keys[answer] = match_key(answer)
        return self._keys[answer]

    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Mean over the questions: cross-entropy with the shares, or binary cross-entropy summed over the labels."""
        if self.kind == "softmax":
            return -(targets * torch.log_softmax(logits, dim=1)).sum(dim=1).mean()
        return nn.functional.binary_cross_entropy_with_logits(logits, targets, reduction="sum") / len(targets)
