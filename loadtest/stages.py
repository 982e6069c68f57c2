"""A model's stages in this process, one question at a time, with no server around them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from service.backends.layout import Way
from service.backends.manifest import ModelManifest, read_manifest
from service.backends.vilt import Item, ViltModel
from service.images import decode_image


@dataclass(frozen=True)
class Stages:
    """Decode and prepare, tokenise, infer. Safe to use from several threads at once."""

    manifest: ModelManifest
    vilt: ViltModel

    @classmethod
    def open(cls, folder: Path, threads: Mapping[Way, int]) -> Stages:
        """Load a model.

        Args:
            folder: the model's.
            threads: of one inference, for each way that will be used.

        Raises:
            ManifestError: it cannot be used.
        """
        manifest = read_manifest(folder)
        return cls(manifest, ViltModel.open(manifest, "cpu", 0, threads))

    def prepare(self, picture: bytes) -> NDArray[np.float32]:
        """Decode a picture and make it the model's input: float32 (3, H, W).

        Raises:
            ImageError: the picture is refused.
        """
        return self.vilt.prepare(decode_image(picture, needed=self.vilt.processor.target_size))

    def item(self, pixels: NDArray[np.float32], text: str) -> Item:
        """Tokenise a question about a prepared picture."""
        return self.vilt.item(pixels, self.vilt.tokenizer.encode(text).ids)

    def infer(self, pixels: NDArray[np.float32], text: str, way: Way = Way.WIDE) -> NDArray[np.float32]:
        """Tokenise a question and run the model: logits (1, labels)."""
        return self.vilt.logits([self.item(pixels, text)], way)
