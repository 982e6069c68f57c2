"""What a user would write in an hour: Pillow, the hub's `ViltProcessor` and `ViltForQuestionAnswering` in torch, fp32.

As on the model card of `dandelin/vilt-b32-finetuned-vqa`, with `inference_mode`, a batch where the server forms one,
and torch's threads set, so that workers and threads together are as many as there are cores.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import torch
from PIL import Image
from transformers import ViltForQuestionAnswering, ViltProcessor

from loadtest.peers.answer import Answer

Asked = tuple[Image.Image, str]


class Hour:
    """A checkpoint folder in the hub's format, ready to answer.

    Args:
        checkpoint: the folder.
        threads: of torch, within one inference.
    """

    def __init__(self, checkpoint: Path, threads: int = 1) -> None:
        torch.set_num_threads(threads)
        self._processor = ViltProcessor.from_pretrained(checkpoint, local_files_only=True)
        self._model = ViltForQuestionAnswering.from_pretrained(checkpoint, local_files_only=True).eval()

    def prepare(self, picture: bytes, question: str) -> Asked:
        """A decoded picture and its question."""
        return Image.open(io.BytesIO(picture)).convert("RGB"), question

    def answer(self, items: Sequence[Asked]) -> list[Answer]:
        """The best answer of each, by one batch."""
        pictures, questions = (list(part) for part in zip(*items, strict=True))
        inputs = self._processor(pictures, questions, padding=True, truncation=True, return_tensors="pt")
        with torch.inference_mode():
            scores, best = self._model(**inputs).logits.sigmoid().max(-1)
        labels = self._model.config.id2label
        return [Answer(labels[k], score) for k, score in zip(best.tolist(), scores.tolist(), strict=True)]

    def ask(self, picture: bytes, question: str) -> Answer:
        """One question, from bytes to answer."""
        return self.answer([self.prepare(picture, question)])[0]
