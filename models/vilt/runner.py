"""A model folder in ONNX Runtime with its tokenizer and the processor's arithmetic, in batches. Needs no torch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

from models.shapes.examples import Example
from models.vilt.processor import pad_batch, preprocess
from models.vilt.tokenizer import QuestionEncoder


class ModelFolder:
    """model.onnx with its tokenizer and labels."""

    def __init__(self, folder: Path, threads: int = 1) -> None:
        self.labels: list[str] = json.loads((folder / "labels.json").read_text())
        self._encoder = QuestionEncoder(Tokenizer.from_file(str(folder / "tokenizer.json")))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self._session = onnxruntime.InferenceSession(
            str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"]
        )

    def logits(self, examples: Sequence[Example], batch: int = 32) -> np.ndarray:
        """Logits, float64, questions x labels, in the order of the examples' questions."""
        asked = [(e.pixels, q.text) for e in examples for q in e.questions]
        parts = [self._logits(asked[k : k + batch]) for k in range(0, len(asked), batch)]
        return np.concatenate(parts).astype(np.float64)

    def probabilities(self, examples: Sequence[Example]) -> np.ndarray:
        """Softmax of the logits."""
        logits = self.logits(examples)
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    def _logits(self, asked: Sequence[tuple[np.ndarray, str]]) -> np.ndarray:
        ids, attention = self._encoder.encode([text for _, text in asked])
        values, mask = pad_batch([preprocess(pixels) for pixels, _ in asked])
        inputs = {"input_ids": ids, "attention_mask": attention, "pixel_values": values, "pixel_mask": mask}
        return self._session.run(["logits"], inputs)[0]
