"""The work of one question, the same for all: a picture's bytes and a question in, the best answer out; no server.

Decode, prepare, tokenise, one inference in ONNX Runtime, the best answer's text: the code of this service without
its gateway. The peers' servers call it in comparison (a); `loadtest.peers.bare` and `loadtest.one_client` loop over
it. It runs in each peer's own environment, so it imports what all of `requirements` have and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from loadtest.peers.answer import Answer
from loadtest.stages import Stages
from service.answers.scores import sigmoid
from service.backends.layout import Way
from service.backends.manifest import read_labels
from service.backends.vilt import Item


class Work:
    """A model folder, ready to answer. Safe to use from several threads at once.

    Args:
        folder: the model's.
        threads: intra-op threads of the one session.
    """

    def __init__(self, folder: Path, threads: int = 1) -> None:
        self._stages = Stages.open(folder, {Way.WIDE: threads})
        self._labels = read_labels(self._stages.manifest)
        self._sigmoid = self._stages.manifest.scores.kind == "sigmoid"

    def prepare(self, picture: bytes, question: str) -> Item:
        """A picture's bytes and a question, ready for the graph.

        Raises:
            ImageError: the picture is refused.
        """
        return self._stages.item(self._stages.prepare(picture), question)

    def answer(self, items: Sequence[Item]) -> list[Answer]:
        """The best answer of each; items of one shape go through the graph together."""
        found: dict[int, Answer] = {}
        for key in dict.fromkeys(item.key for item in items):
            places = [place for place, item in enumerate(items) if item.key == key]
            logits = self._stages.vilt.logits([items[place] for place in places], Way.WIDE)
            for place, row in zip(places, logits, strict=True):
                best = int(row.argmax())
                # The probability that the service gives too, whichever kind of scores the model has.
                score = float(sigmoid(row[best])) if self._sigmoid else float(1 / np.exp(row - row[best]).sum())
                found[place] = Answer(self._labels[best], score)
        return [found[place] for place in range(len(items))]

    def ask(self, picture: bytes, question: str) -> Answer:
        """One question, from bytes to answer."""
        return self.answer([self.prepare(picture, question)])[0]
