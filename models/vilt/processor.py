"""The arithmetic of Hugging Face's ViltImageProcessor in numpy and Pillow.

Source: transformers 4.57, `image_processing_vilt.py` (`get_resize_output_image_size`, `preprocess`). One difference,
on purpose: very thin pictures, whose shorter edge would be floored to 0 there, are clamped to one divisor.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PIL import Image

SHORTEST_EDGE = 64
SIZE_DIVISOR = 8


def output_size(
    height: int, width: int, shortest_edge: int = SHORTEST_EDGE, divisor: int = SIZE_DIVISOR
) -> tuple[int, int]:
    """Height and width after resizing: shorter edge `shortest_edge`, the longer at most 1333/800 of it, floored."""
    longest_edge = int(1333 / 800 * shortest_edge)
    scale = shortest_edge / min(height, width)
    if height < width:
        new_height, new_width = float(shortest_edge), scale * width
    else:
        new_height, new_width = scale * height, float(shortest_edge)
    if max(new_height, new_width) > longest_edge:
        scale = longest_edge / max(new_height, new_width)
        new_height, new_width = new_height * scale, new_width * scale
    rounded = int(new_height + 0.5), int(new_width + 0.5)
    return max(divisor, rounded[0] // divisor * divisor), max(divisor, rounded[1] // divisor * divisor)


def preprocess(pixels: np.ndarray, shortest_edge: int = SHORTEST_EDGE, divisor: int = SIZE_DIVISOR) -> np.ndarray:
    """uint8 H x W x 3 to float32 3 x H' x W' in [-1, 1]: bicubic resize, 1/255, mean and deviation 0.5."""
    height, width = output_size(*pixels.shape[:2], shortest_edge, divisor)
    if pixels.shape[:2] != (height, width):
        pixels = np.asarray(Image.fromarray(pixels).resize((width, height), Image.Resampling.BICUBIC))
    # The rescaling runs in float64 and is rounded to float32 before the normalisation, as in the original.
    scaled = (pixels.astype(np.float64) * (1 / 255)).astype(np.float32)
    return np.ascontiguousarray(((scaled - np.float32(0.5)) / np.float32(0.5)).transpose(2, 0, 1))


def pad_batch(pictures: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Preprocessed pictures to pixel_values (B x 3 x H x W, float32, zeros right and below) and pixel_mask (int64)."""
    height = max(p.shape[1] for p in pictures)
    width = max(p.shape[2] for p in pictures)
    values = np.zeros((len(pictures), 3, height, width), np.float32)
    mask = np.zeros((len(pictures), height, width), np.int64)
    for k, picture in enumerate(pictures):
        values[k, :, : picture.shape[1], : picture.shape[2]] = picture
        mask[k, : picture.shape[1], : picture.shape[2]] = 1
    return values, mask
