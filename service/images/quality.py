"""Cheap statistics of a picture that say whether a person could see anything in it.

They only measure; what counts as too dark or blurred is decided elsewhere, with a measured precision. Each is taken on
a grey copy of at most 256 pixels on its longer side, so that the numbers mean the same for a thumbnail and a
48-megapixel photo and cost a millisecond.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

_SIDE = 256
# A block of pixels becomes one by the mean of two by two samples in it; more would mostly cost cache misses.
_TAPS = 2
_DARK, _BRIGHT = 16, 239
# Rec. 709 weights: the ones that sRGB is made with.
_WEIGHTS = np.array([0.2126, 0.7152, 0.0722], dtype=np.float32)


@dataclass(frozen=True, slots=True)
class PictureQuality:
    """Statistics of one picture.

    Args:
        width, height: size of the picture in pixels.
        luminance: mean of luma, 0 (black) to 1 (white); luma is the weighted sum of the sRGB values as they are.
        dark_share, bright_share: share of the picture, 0 to 1, with luma below 16/255 and above 239/255.
        contrast: standard deviation of luma, 0 to 0.5.
        sharpness: variance of the Laplacian of luma on the reduced picture (luma 0 to 255, as is customary); 0 where
            a side is under 3 pixels. High for focused pictures and for noise, low for blurred and for empty ones.
    """

    width: int
    height: int
    luminance: float
    dark_share: float
    bright_share: float
    contrast: float
    sharpness: float


def measure_quality(pixels: npt.NDArray[np.uint8]) -> PictureQuality:
    """Measure `pixels` (uint8, H x W x 3, sRGB, both sides at least 1).

    Raises:
        ValueError: the array has another shape or type.
    """
    if pixels.ndim != 3 or pixels.shape[2] != 3 or pixels.dtype != np.uint8 or not pixels.size:
        raise ValueError(f"expected uint8 H x W x 3, got {pixels.dtype} {pixels.shape}")
    height, width = pixels.shape[:2]
    grey = _reduced_luma(pixels)
    return PictureQuality(
        width=width,
        height=height,
        luminance=float(grey.mean()) / 255,
        dark_share=float((grey < _DARK).mean()),
        bright_share=float((grey > _BRIGHT).mean()),
        contrast=float(grey.std()) / 255,
        sharpness=_laplacian_variance(grey),
    )


def _reduced_luma(pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
    """Luma (float32, 0 to 255) with at most 256 pixels on the longer side, each the mean of a block's samples."""
    height, width = pixels.shape[:2]
    step = -(-max(height, width) // _SIDE)
    if step == 1:
        return pixels @ _WEIGHTS
    rows, columns = max(height // step, 1), max(width // step, 1)
    # A very long picture is thinner than a block: what there is of the short side is taken.
    down, across = min(step, height), min(step, width)
    blocks = np.zeros((rows, columns), dtype=np.float32)
    taps_down, taps_across = _taps(down), _taps(across)
    for y in taps_down:
        for x in taps_across:
            blocks += pixels[y::step, x::step][:rows, :columns] @ _WEIGHTS
    blocks /= len(taps_down) * len(taps_across)
    return blocks


def _taps(block: int) -> list[int]:
    """Where in a block's side samples are taken."""
    count = min(block, _TAPS)
    return [(2 * each + 1) * block // (2 * count) for each in range(count)]


def _laplacian_variance(grey: npt.NDArray[np.float32]) -> float:
    if min(grey.shape) < 3:
        return 0.0
    centre = grey[1:-1, 1:-1]
    laplacian = grey[:-2, 1:-1] + grey[2:, 1:-1] + grey[1:-1, :-2] + grey[1:-1, 2:] - 4 * centre
    return float(laplacian.var())
