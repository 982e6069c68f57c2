"""Global statistics of a picture, from a small thumbnail.

They describe how it was taken (brightness, contrast, sharpness, saturation) and how complex it is (how many colours,
how concentrated, how much coarse structure). No model is asked, so they serve any engine. Those that span decades are
on a logarithmic scale, shares on that of log-odds, so that differences mean about the same everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

QUALITY: Final = ("brightness", "contrast", "sharpness")
"""How the picture was taken."""

STATISTICS: Final = (
    *QUALITY,
    "saturation",
    "color_count",
    "color_concentration",
    "tone_concentration",
    "coarse_gradient",
)
"""The names of all statistics."""

Floats = NDArray[np.float32]
Integers = NDArray[np.integer[Any]]

_EDGE: Final = 64  # of the thumbnail, whatever the aspect ratio: no statistic looks at where things are
_FREQUENT: Final = 8  # of the most frequent colours (or tones) count as the concentrated ones
_LUMA: Final = np.array([0.299, 0.587, 0.114], np.float32)  # ITU-R BT.601, as Pillow's mode L

STATISTICS_SIZE: Final = (_EDGE, _EDGE)
"""(height, width) in pixels that a picture is needed at."""


def picture_statistics(picture: Image.Image) -> Mapping[str, float]:
    """The statistics of an upright RGB picture of any size, by name; the same numbers for the same pixels.

    Of the 64-pixel thumbnail, luma 0 to 255:
        brightness: mean luma, 0 to 1.
        contrast: ln(1 + the luma's standard deviation) (RMS contrast).
        sharpness: ln(1 + the variance of the luma's Laplacian).
        saturation: ln(1 + the mean of the largest less the smallest channel).

    Of its 2 x 2 means, where sensor noise and JPEG artefacts weigh less:
        color_count: ln of the number of colours, at 16 levels a channel.
        color_concentration: log-odds of the share of pixels that have one of the 8 most frequent of them.
        tone_concentration: the same of luma at 32 levels.

    Of its 4 x 4 means:
        coarse_gradient: ln(1 + the mean over pixels of the largest difference, in any channel, from the neighbour above
            or on the left).
    """
    planes = _thumbnail(picture)
    luma = _luma(planes)
    half = _summed(planes)
    quarter = _summed(half)
    colors = _counts(_color_codes(half))
    tones = _counts((_luma(half) / np.float32(4 * 8)).astype(np.int64))
    return {
        "brightness": float(luma.mean()) / 255,
        "contrast": math.log1p(math.sqrt(_variance(luma))),
        "sharpness": math.log1p(_variance(_laplacian(luma))),
        "saturation": math.log1p(_mean_range(planes)),
        "color_count": math.log(len(colors)),
        "color_concentration": _log_odds(colors),
        "tone_concentration": _log_odds(tones),
        "coarse_gradient": math.log1p(_mean_step(quarter) / 16),
    }


def _thumbnail(picture: Image.Image) -> NDArray[np.uint8]:
    """(3, 64, 64), a plane a channel; large pictures are first averaged down by whole factors (`reducing_gap`)."""
    small = picture.resize((_EDGE, _EDGE), Image.Resampling.BILINEAR, reducing_gap=2.0)
    return np.ascontiguousarray(np.asarray(small).transpose(2, 0, 1))


def _luma(planes: NDArray[np.generic]) -> Floats:
    """(height, width), on the scale of the planes."""
    channels, height, width = planes.shape
    luma: Floats = (_LUMA @ planes.astype(np.float32).reshape(channels, -1)).reshape(height, width)
    return luma


def _summed(planes: Integers) -> NDArray[np.uint16]:
    """Sums of 2 x 2 pixels, which hold what means do and stay whole numbers."""
    rows = np.add(planes[:, ::2], planes[:, 1::2], dtype=np.uint16)
    return rows[:, :, ::2] + rows[:, :, 1::2]


def _color_codes(half: NDArray[np.uint16]) -> NDArray[np.uint16]:
    """A number below 4096 for each pixel's colour at 16 levels a channel."""
    levels = half >> 6  # of sums of four
    codes: NDArray[np.uint16] = (levels[0] << 8) | (levels[1] << 4) | levels[2]
    return codes


def _counts(codes: Integers) -> NDArray[np.int64]:
    """How many pixels each occupied bin has, the fullest first."""
    counts = np.bincount(codes.ravel())
    return np.sort(counts[counts > 0])[::-1]


def _log_odds(counts: NDArray[np.int64]) -> float:
    """Of a pixel to be in one of the fullest bins, half a pixel away from never and always."""
    inside = int(counts[:_FREQUENT].sum())
    return math.log((inside + 0.5) / (int(counts.sum()) - inside + 0.5))


def _laplacian(luma: Floats) -> Floats:
    found: Floats = luma[:-2, 1:-1] + luma[2:, 1:-1]
    found += luma[1:-1, :-2]
    found += luma[1:-1, 2:]
    found -= 4 * luma[1:-1, 1:-1]
    return found


def _variance(values: Floats) -> float:
    around = values - values.mean()
    return float(np.vdot(around, around)) / values.size


def _mean_range(planes: NDArray[np.uint8]) -> float:
    """Of the largest channel less the smallest."""
    return float((_over_channels(np.maximum, planes) - _over_channels(np.minimum, planes)).mean())


def _mean_step(planes: NDArray[np.uint16]) -> float:
    """Of the largest difference, in any channel, from the neighbour above or on the left."""
    signed = planes.astype(np.int32)
    corner = signed[:, 1:, 1:]
    steps = np.maximum(np.abs(corner - signed[:, :-1, 1:]), np.abs(corner - signed[:, 1:, :-1]))
    return float(_over_channels(np.maximum, steps).mean())


def _over_channels(function: np.ufunc, planes: Integers) -> Integers:
    """The largest or smallest of three channels."""
    result: Integers = function(function(planes[0], planes[1]), planes[2])
    return result
