"""What a camera might bring home, made from a seed; nobody is in it, and nothing can be recognised."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

_TILE = 256


def camera_scene(rng: np.random.Generator, width: int, height: int) -> NDArray[np.uint8]:
    """uint8 pixels (height x width x 3): light that varies over the picture, a few hard edges, and noise.

    The noise is of one tile: drawing it for 12 million pixels is slow.
    """
    light = Image.fromarray(rng.integers(30, 226, (4, 5, 3)).astype(np.uint8))
    pixels = np.asarray(light.resize((width, height), Image.Resampling.BICUBIC)).astype(np.int16)
    for _ in range(6):
        x, y = rng.integers(0, width), rng.integers(0, height)
        pixels[y : y + height // 4, x : x + width // 5] += rng.integers(-60, 61, 3).astype(np.int16)
    tile = rng.normal(0, rng.uniform(4, 8), (_TILE, _TILE, 3)).astype(np.int16)
    for top in range(0, height, _TILE):
        for left in range(0, width, _TILE):
            part = pixels[top : top + _TILE, left : left + _TILE]
            part += tile[: part.shape[0], : part.shape[1]]
    return np.clip(pixels, 0, 255).astype(np.uint8)
