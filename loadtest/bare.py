"""The bare loop: a model asked in this process, one question at a time, with no gateway around it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from loadtest.server import ROOT
from service.backends.layout import Way
from service.backends.manifest import ModelManifest, read_manifest
from service.backends.vilt import ViltModel
from service.images import decode_image

Bare = Callable[[bytes, str], None]


@dataclass(frozen=True)
class Stages:
    """The two stages of the bare loop, each on its own."""

    manifest: ModelManifest
    vilt: ViltModel

    @classmethod
    def open(cls, model: str, threads: Mapping[Way, int]) -> Stages:
        """Load a model.

        Args:
            model: the name of an embedded model, or a model's folder.
            threads: of one inference, for each way that will be used.

        Raises:
            ManifestError: there is no such model, or it cannot be used.
        """
        folder = Path(model) if Path(model).is_dir() else ROOT / "models" / model
        manifest = read_manifest(folder)
        return cls(manifest, ViltModel.open(manifest, "cpu", 0, threads))

    def prepare(self, picture: bytes) -> NDArray[np.float32]:
        """Decode a picture and make it the model's input: float32 (3, H, W)."""
        return self.vilt.prepare(decode_image(picture, needed=self.vilt.processor.target_size))

    def infer(self, pixels: NDArray[np.float32], text: str, way: Way = Way.WIDE) -> NDArray[np.float32]:
        """Tokenise a question and run the model: logits (1, labels)."""
        return self.vilt.logits([self.vilt.item(pixels, self.vilt.tokenizer.encode(text).ids)], way)


def bare_loop(model: str, threads: int = 1) -> Bare:
    """A function that decodes a picture, prepares it, tokenises the question and runs the model.

    Args:
        model: the name of an embedded model, or a model's folder.
        threads: of one inference.
    """
    stages = Stages.open(model, {Way.WIDE: threads})

    def ask(picture: bytes, text: str) -> None:
        stages.infer(stages.prepare(picture), text)

    return ask
