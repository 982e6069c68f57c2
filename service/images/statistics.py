"""Global statistics of a picture, from a small thumbnail.

They describe how it was taken (brightness, contrast, sharpness, saturation) and how complex it is (how many colours,
how concentrated, how much coarse structure). No model is asked, so they serve any engine. Those that span decades are
on a logarithmic scale, shares on that of log-odds, so that differences mean about the same everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

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
    small = _thumbnail(picture)
    luma = small @ _LUMA
    half = _halved(small)
    colors = _counts(_color_codes(half))
    tones = _counts((half @ _LUMA / 8).astype(np.int64))
    return {
        "brightness": float(luma.mean()) / 255,
        "contrast": math.log1p(float(luma.std())),
        "sharpness": math.log1p(_laplacian_variance(luma)),
        "saturation": math.log1p(float((_over_channels(np.maximum, small) - _over_channels(np.minimum, small)).mean())),
        "color_count": math.log(len(colors)),
        "color_concentration": _log_odds(colors),
        "tone_concentration": _log_odds(tones),
        "coarse_gradient": math.log1p(_mean_gradient(_halved(half))),
    }


def _thumbnail(picture: Image.Image) -> Floats:
    """(64, 64, 3); large pictures are first averaged down by whole factors (`reducing_gap`)."""
    small = picture.resize((_EDGE, _EDGE), Image.Resampling.BILINEAR, reducing_gap=2.0)
    return np.asarray(small, dtype=np.float32)


def _halved(values: Floats) -> Floats:
    """Means of 2 x 2 pixels."""
    means = (values[::2, ::2] + values[1::2, ::2] + values[::2, 1::2] + values[1::2, 1::2]) / np.float32(4)
    return means.astype(np.float32, copy=False)


def _color_codes(values: Floats) -> NDArray[np.int64]:
    """A number below 4096 for each pixel's colour at 16 levels a channel."""
    levels = values.astype(np.int64) >> 4
    return (levels[..., 0] << 8) | (levels[..., 1] << 4) | levels[..., 2]


def _counts(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many pixels each occupied bin has, the fullest first."""
    counts = np.bincount(codes.ravel())
    return np.sort(counts[counts > 0])[::-1]


def _log_odds(counts: NDArray[np.int64]) -> float:
    """Of a pixel to be in one of the fullest bins, half a pixel away from never and always."""
    inside = int(counts[:_FREQUENT].sum())
    return math.log((inside + 0.5) / (int(counts.sum()) - inside + 0.5))


def _laplacian_variance(luma: Floats) -> float:
    inner = luma[1:-1, 1:-1]
    laplacian = luma[:-2, 1:-1] + luma[2:, 1:-1] + luma[1:-1, :-2] + luma[1:-1, 2:] - 4 * inner
    return float(laplacian.var())


def _mean_gradient(values: Floats) -> float:
    corner = values[1:, 1:]
    steps = np.maximum(np.abs(corner - values[:-1, 1:]), np.abs(corner - values[1:, :-1]))
    return float(_over_channels(np.maximum, steps).mean())


def _over_channels(function: np.ufunc, values: Floats) -> Floats:
    """The largest or smallest of three channels; a tenth of the time of a reduction over an axis so short."""
    result: Floats = function(function(values[..., 0], values[..., 1]), values[..., 2])
    return result
