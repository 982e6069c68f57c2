"""A ViLT model folder in memory: from prepared pictures and token ids to logits, with nothing asynchronous."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.answers import Calibration, Vocabulary
from service.backends.manifest import ManifestError, ModelManifest, read_labels
from service.backends.processor import ViltProcessor
from service.backends.session import Device, open_session
from service.backends.tokenizer import QuestionTokenizer
from service.errors import Code, VQAError

# Texts are padded to a multiple of this, so that the graph sees at most five text lengths for ViLT's forty tokens.
TOKEN_BUCKET = 8


@dataclass(frozen=True, slots=True)
class Item:
    """One question ready for the graph: pixels float32 (3, H, W), ids int64, and the length they are padded to."""

    pixels: NDArray[np.float32]
    ids: NDArray[np.int64]
    tokens: int

    @property
    def key(self) -> tuple[int, int, int]:
        """The bucket: items that share it are stacked with no padding of pictures and little of text."""
        height, width = self.pixels.shape[1:]
        return height, width, self.tokens


@dataclass(frozen=True, slots=True)
class ViltModel:
    """Everything that serving needs of one model folder; made once, used from one thread at a time."""

    session: Any
    processor: ViltProcessor
    tokenizer: QuestionTokenizer
    vocabulary: Vocabulary
    calibration: Calibration | None
    labels: int

    @classmethod
    def open(cls, manifest: ModelManifest, device: Device, device_id: int, threads: int) -> ViltModel:
        """Load everything that the manifest names, after its digests were checked."""
        if faults := manifest.faults():
            raise ManifestError(f"{manifest.folder}: " + "; ".join(faults))
        labels = read_labels(manifest)
        calibration = manifest.calibration
        return cls(
            session=open_session(
                manifest.path(manifest.source.file), device=device, device_id=device_id, threads=threads
            ),
            processor=ViltProcessor.load(manifest.path(manifest.processor.file)),
            tokenizer=QuestionTokenizer(manifest.path(manifest.tokenizer.file), manifest.tokenizer.max_tokens),
            vocabulary=Vocabulary(labels),
            calibration=Calibration.load(manifest.path(calibration.file)) if calibration else None,
            labels=len(labels),
        )

    def item(self, pixels: NDArray[np.float32], ids: NDArray[np.int64]) -> Item:
        """One question with its text's bucket, which never exceeds the model's positions."""
        tokens = min(-(-len(ids) // TOKEN_BUCKET) * TOKEN_BUCKET, self.tokenizer.max_tokens)
        return Item(pixels, ids, tokens)

    def logits(self, items: Sequence[Item]) -> NDArray[np.float32]:
        """Logits (len(items), labels) of items that share a key."""
        height, width, tokens = items[0].key
        ids = np.full((len(items), tokens), self.tokenizer.pad_id, dtype=np.int64)
        mask = np.zeros((len(items), tokens), dtype=np.int64)
        for row, item in enumerate(items):
            ids[row, : len(item.ids)] = item.ids
            mask[row, : len(item.ids)] = 1
        inputs = {
            "input_ids": ids,
            "attention_mask": mask,
            "pixel_values": np.stack([item.pixels for item in items]),
            "pixel_mask": np.ones((len(items), height, width), dtype=np.int64),
        }
        result: NDArray[np.float32] = self.session.run(["logits"], inputs)[0]
        if result.shape != (len(items), self.labels):
            raise VQAError(
                Code.BACKEND_FAILED,
                f"The model gave scores of shape {result.shape}, not {(len(items), self.labels)}.",
            )
        return result

    def warm_up(self, max_batch: int) -> None:
        """Run real inferences over the extremes of picture size: the first question then finds all in place."""
        side = self.processor.shortest_edge
        sizes = self.processor.sizes()
        largest = max(sizes, key=lambda size: size[0] * size[1])
        usual = self.processor.target_size(side, side)
        for size, count in ((largest, max_batch), (min(sizes), 1), (usual, max_batch), (usual, 1)):
            self.probe(size, count)

    def probe(self, size: tuple[int, int] | None = None, count: int = 1) -> None:
        """Ask `count` times about a grey picture of `size` (height, width).

        Raises:
            ManifestError: the scores are not numbers.
            Exception: whatever ONNX Runtime raises.
        """
        height, width = size or (self.processor.shortest_edge, self.processor.shortest_edge)
        grey = np.full((height, width, 3), 128, dtype=np.uint8)
        ids = self.tokenizer.encode("what is in the picture?").ids
        logits = self.logits([self.item(self.processor(grey), ids)] * count)
        if not np.isfinite(logits).all():
            raise ManifestError("the model gives scores that are not numbers")
