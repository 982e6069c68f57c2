"""The bare loop: the embedded model asked in this process, one question at a time, with no gateway around it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from loadtest.server import ROOT
from service.backends.layout import Way
from service.backends.manifest import read_manifest
from service.backends.vilt import ViltModel
from service.images import decode_image

Bare = Callable[[bytes, str], None]


def bare_loop(model: str, threads: int = 1) -> Bare:
    """A function that decodes a picture, prepares it, tokenises the question and runs the model.

    Args:
        model: the name of an embedded model, or a model's folder.
        threads: of one inference.
    """
    folder = Path(model) if Path(model).is_dir() else ROOT / "models" / model
    vilt = ViltModel.open(read_manifest(folder), "cpu", 0, {Way.WIDE: threads})

    def ask(picture: bytes, text: str) -> None:
        pixels = vilt.processor(decode_image(picture).picture)
        vilt.logits([vilt.item(pixels, vilt.tokenizer.encode(text).ids)], Way.WIDE)

    return ask
