"""A ViLT model folder in memory: from prepared pictures and token ids to logits, with nothing asynchronous."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from service.answers import Calibration, Vocabulary
from service.backends.layout import Way
from service.backends.manifest import ManifestError, ModelManifest, read_labels
from service.backends.processor import ViltProcessor
from service.backends.session import Brake, Device, open_session
from service.backends.tokenizer import QuestionTokenizer
from service.errors import Code, VQAError
from service.images import DecodedImage

# Texts are padded to a multiple of this, so that the graph sees at most five text lengths for ViLT's forty tokens.
TOKEN_BUCKET = 8

# Height and width of what is measured and probed with: what most cameras give, lying.
USUAL_PICTURE = (480, 640)


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
    """Everything that serving needs of one model folder.

    Made once, and used from as many threads at once as one likes: a session of ONNX Runtime may run many inferences
    at a time, over the same weights.

    Attributes:
        sessions: one for each way of laying out threads. Two of them hold the weights twice: ONNX Runtime repacks
            those of its matrix products for each session, and shares what it repacked in its C interface only.
    """

    sessions: Mapping[Way, Any]
    processor: ViltProcessor
    tokenizer: QuestionTokenizer
    vocabulary: Vocabulary
    calibration: Calibration | None
    labels: int

    @classmethod
    def open(cls, manifest: ModelManifest, device: Device, device_id: int, threads: Mapping[Way, int]) -> ViltModel:
        """Load everything that the manifest names, after its digests were checked; `threads` of each session."""
        if faults := manifest.faults():
            raise ManifestError(f"{manifest.folder}: " + "; ".join(faults))
        labels = read_labels(manifest)
        calibration = manifest.calibration
        return cls(
            sessions={
                way: open_session(
                    manifest.path(manifest.source.file), device=device, device_id=device_id, threads=count
                )
                for way, count in threads.items()
            },
            processor=ViltProcessor.load(manifest.path(manifest.processor.file)),
            tokenizer=QuestionTokenizer(manifest.path(manifest.tokenizer.file), manifest.tokenizer.max_tokens),
            vocabulary=Vocabulary(labels),
            calibration=Calibration.load(manifest.path(calibration.file)) if calibration else None,
            labels=len(labels),
        )

    def keeping(self, ways: Sequence[Way]) -> ViltModel:
        """The same model with the sessions of these ways alone."""
        return dataclasses.replace(self, sessions={way: self.sessions[way] for way in ways})

    def prepare(self, image: DecodedImage) -> NDArray[np.float32]:
        """Resize and normalise a picture at whatever scale it was decoded: (3, H, W)."""
        return self.processor(image.picture, (image.height, image.width))

    def item(self, pixels: NDArray[np.float32], ids: NDArray[np.int64]) -> Item:
        """One question with its text's bucket, which never exceeds the model's positions."""
        tokens = min(-(-len(ids) // TOKEN_BUCKET) * TOKEN_BUCKET, self.tokenizer.max_tokens)
        return Item(pixels, ids, tokens)

    def logits(self, items: Sequence[Item], way: Way, brake: Brake | None = None) -> NDArray[np.float32]:
        """Logits (len(items), labels) of items that share a key.

        Raises:
            VQAError: `backend_failed`, the model does not give that.
            Exception: whatever ONNX Runtime raises, once `brake` is applied too.
        """
        height, width, tokens = items[0].key
        ids = np.full((len(items), tokens), self.tokenizer.pad_id, dtype=np.int64)
        mask = np.zeros((len(items), tokens), dtype=np.int64)
        for row, item in enumerate(items):
            ids[row, : len(item.ids)] = item.ids
            mask[row, : len(item.ids)] = 1
        inputs = {
            "input_ids": ids,
            "attention_mask": mask,
            # Most inferences have one question; nothing is copied for it.
            "pixel_values": np.stack([item.pixels for item in items]) if len(items) > 1 else items[0].pixels[None],
            "pixel_mask": np.ones((len(items), height, width), dtype=np.int64),
        }
        result: NDArray[np.float32] = self.sessions[way].run(["logits"], inputs, brake and brake.options)[0]
        if result.shape != (len(items), self.labels):
            raise VQAError(
                Code.BACKEND_FAILED,
                f"The model gave scores of shape {result.shape}, not {(len(items), self.labels)}.",
            )
        return result

    def grey(self, size: tuple[int, int] | None = None, tokens: int = 0) -> Item:
        """A question that must work: about a grey picture of `size` (height, width), padded to at least `tokens`."""
        height, width = size or self.processor.target_size(*USUAL_PICTURE)
        pixels = self.processor(Image.new("RGB", (width, height), (128, 128, 128)))
        item = self.item(pixels, self.tokenizer.encode("what is in the picture?").ids)
        return dataclasses.replace(item, tokens=max(item.tokens, tokens))

    def warm_up(self, way: Way, max_batch: int) -> None:
        """Run real inferences over the extremes of size: the first question then finds all in place.

        Where all the threads that will ever run do so at once, largest first, a session's memory grows here to what
        it will need, or nearly.
        """
        sizes = self.processor.sizes()
        largest = max(sizes, key=lambda size: size[0] * size[1])
        self.probe(way, [self.grey(largest, self.tokenizer.max_tokens)] * max_batch)
        self.probe(way, [self.grey(min(sizes))])
        self.probe(way, [self.grey()] * max_batch)
        self.probe(way)

    def check(self) -> None:
        """One probe of every session."""
        for way in self.sessions:
            self.probe(way)

    def probe(self, way: Way, items: Sequence[Item] = ()) -> None:
        """One inference that must work, of `items` or of one grey picture.

        Raises:
            ManifestError: the scores are not numbers.
            Exception: whatever ONNX Runtime raises.
        """
        if not np.isfinite(self.logits(items or [self.grey()], way)).all():
            raise ManifestError("the model gives scores that are not numbers")
