"""What a model is shown: the picture, or something that says nothing about it.

A model that answers as well without the picture has learnt the questions, not to see (Goyal et al. 2017,
section 1). Each blind view takes away something else: `blank` everything, `noise` everything but that there is
something, `shuffled` only that the picture belongs to the question.
"""

from __future__ import annotations

import hashlib
import io
import math
import random
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Protocol

import numpy as np
from PIL import Image

from service.evaluation.layout import SIGHTED
from service.evaluation.running.asker import RunError
from service.images import decode_image

_MID_GREY = (128, 128, 128)
# Noise does not compress: beyond this many cells its PNG would be larger than a server takes.
_MOST_CELLS = 2_000_000


class View(Protocol):
    """A way to show pictures."""

    @property
    def name(self) -> str:
        """Its name in files and tables."""

    def picture(self, path: Path) -> bytes:
        """What is shown for the picture at `path`, encoded.

        Raises:
            OSError: the picture cannot be read.
            ImageError: it cannot be decoded (blind views of its size).
        """


class Sighted:
    """The picture itself."""

    name = SIGHTED

    def picture(self, path: Path) -> bytes:
        """The file as it is."""
        return path.read_bytes()


class Blank:
    """A mid-grey picture of the same size."""

    name = "blank"

    def picture(self, path: Path) -> bytes:
        """A grey PNG as large as the picture when upright."""
        image = decode_image(path.read_bytes())
        return _grey(image.width, image.height)


class Noise:
    """Uniform noise of the same size, its own for each picture (by its content) and seed."""

    name = "noise"

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def picture(self, path: Path) -> bytes:
        """A PNG of noise as large as the picture when upright.

        Above two million pixels the noise is drawn in squares of several pixels: a server would refuse so much noise
        for its bytes, and a model that scales it down would see plain grey.
        """
        data = path.read_bytes()
        image = decode_image(data)
        width, height = image.width, image.height
        digest = hashlib.sha256(str(self._seed).encode() + b":" + hashlib.sha256(data).digest()).digest()
        generator = np.random.Generator(np.random.PCG64(int.from_bytes(digest, "big")))
        side = max(1, math.ceil(math.sqrt(width * height / _MOST_CELLS)))
        cells = generator.integers(0, 256, (math.ceil(height / side), math.ceil(width / side), 3), dtype=np.uint8)
        pixels = cells.repeat(side, axis=0).repeat(side, axis=1)[:height, :width]
        return _png(Image.fromarray(pixels))


class Shuffled:
    """Another picture of the same run: a seeded permutation that leaves none in its place.

    Args:
        pictures: those of the run.
        seed: of the permutation.

    Raises:
        RunError: there are fewer than two.
    """

    name = "shuffled"

    def __init__(self, pictures: Iterable[Path], seed: int) -> None:
        self._shown = derangement(pictures, seed)

    def picture(self, path: Path) -> bytes:
        """The other picture's file as it is."""
        return self._shown[path].read_bytes()


def derangement(pictures: Iterable[Path], seed: int) -> Mapping[Path, Path]:
    """Another picture for each: one cycle through all of them (Sattolo 1986), drawn by `seed`.

    Raises:
        RunError: there are fewer than two.
    """
    distinct = list(dict.fromkeys(pictures))
    if len(distinct) < 2:
        raise RunError("the view 'shuffled' needs two pictures or more")
    shown = list(distinct)
    drawn = random.Random(seed)
    for last in range(len(shown) - 1, 0, -1):
        other = drawn.randrange(last)
        shown[last], shown[other] = shown[other], shown[last]
    return dict(zip(distinct, shown, strict=True))


def make_views(blind: Iterable[str], pictures: Iterable[Path], seed: int) -> list[View]:
    """The sighted view, then the blind ones that are named, in the order of `BLIND`.

    Raises:
        RunError: as `derangement`.
    """
    wanted = set(blind)
    views: list[View] = [Sighted()]
    if "blank" in wanted:
        views.append(Blank())
    if "shuffled" in wanted:
        views.append(Shuffled(pictures, seed))
    if "noise" in wanted:
        views.append(Noise(seed))
    return views


@lru_cache(maxsize=16)
def _grey(width: int, height: int) -> bytes:
    return _png(Image.new("RGB", (width, height), _MID_GREY))


def _png(image: Image.Image) -> bytes:
    out = io.BytesIO()
    image.save(out, "PNG", compress_level=1)
    return out.getvalue()
