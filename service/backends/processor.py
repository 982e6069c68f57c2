"""ViLT's picture processor: the arithmetic of the hub's `ViltImageProcessor`, without torch or transformers.

The shorter edge goes to `shortest_edge`, the longer to at most `int(1333 / 800 * shortest_edge)` (so 639 for 384), both
are floored to a multiple of `size_divisor` (so 608, never 640), then bicubic, rescale, normalise. The hub's processor
floors very thin pictures (ratio above about 20) to zero and fails; here an edge is at least one divisor.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

# A resize takes memory for each pixel of the longer edge, whatever comes of it. A picture beyond the longest edge that
# JPEG has is averaged down by a whole factor first.
_LONGEST_RESIZED = 65_535
# Nothing larger is a model's input: 4096 x 6819 are 28,000 patches of 32 pixels.
_LARGEST_EDGE = 4096

# The hub's constants: 1333 x 800 is the size that ViLT's authors took from object detection.
_LONGER_FROM_SHORTER = 1333 / 800

_RESAMPLING = {
    Image.Resampling.NEAREST.value: Image.Resampling.NEAREST,
    Image.Resampling.BILINEAR.value: Image.Resampling.BILINEAR,
    Image.Resampling.BICUBIC.value: Image.Resampling.BICUBIC,
    Image.Resampling.LANCZOS.value: Image.Resampling.LANCZOS,
}


@dataclass(frozen=True)
class ViltProcessor:
    """Turns an upright picture into the model's input.

    Attributes:
        shortest_edge: the shorter edge after resizing, in pixels.
        size_divisor: both edges are multiples of it (the patch size).
        mean, std: per channel, on the scale [0, 1].
    """

    shortest_edge: int
    size_divisor: int
    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    rescale_factor: float
    resample: Image.Resampling

    @classmethod
    def load(cls, path: Path) -> ViltProcessor:
        """Read the hub's `preprocessor_config.json`.

        Raises:
            ValueError: it is no JSON object, or asks for something that ViLT's processor does not do.
        """
        config: dict[str, Any] = json.loads(path.read_text("utf-8"))
        if not isinstance(config, dict):
            raise ValueError(f"{path.name}: it must be a JSON object")
        for switch in ("do_resize", "do_rescale", "do_normalize"):
            if config.get(switch, True) is not True:
                raise ValueError(f"{path.name}: {switch} must be true")
        size = config.get("size", {"shortest_edge": 384})
        shortest = size.get("shortest_edge") if isinstance(size, dict) else size
        resample = config.get("resample", Image.Resampling.BICUBIC.value)
        if type(resample) is not int or resample not in _RESAMPLING:
            raise ValueError(f"{path.name}: resample must be one of {', '.join(map(str, _RESAMPLING))}")
        mean, std = (_three(path, config, key) for key in ("image_mean", "image_std"))
        if not all(std):
            raise ValueError(f"{path.name}: image_std must be without zero")
        processor = cls(
            shortest_edge=_edge(path, "size.shortest_edge", shortest),
            size_divisor=_edge(path, "size_divisor", config.get("size_divisor", 32)),
            mean=mean,
            std=std,
            rescale_factor=_number(path, "rescale_factor", config.get("rescale_factor", 1 / 255)),
            resample=_RESAMPLING[resample],
        )
        if not np.isfinite(processor._affine).all():
            raise ValueError(f"{path.name}: image_mean, image_std and rescale_factor lead out of 32-bit numbers")
        return processor

    @property
    def longest_edge(self) -> int:
        """The longest edge that a resized picture can have."""
        return max(self._floor(int(_LONGER_FROM_SHORTER * self.shortest_edge)), self.size_divisor)

    def target_size(self, height: int, width: int) -> tuple[int, int]:
        """(height, width) after resizing, for a picture of `height` x `width` pixels."""
        shorter, longer = self.shortest_edge, int(_LONGER_FROM_SHORTER * self.shortest_edge)
        scale = shorter / min(height, width)
        new_h, new_w = (shorter, scale * width) if height < width else (scale * height, shorter)
        if max(new_h, new_w) > longer:
            scale = longer / max(new_h, new_w)
            new_h, new_w = scale * new_h, scale * new_w
        return self._floor(int(new_h + 0.5)), self._floor(int(new_w + 0.5))

    @cached_property
    def _affine(self) -> NDArray[np.float32]:
        """What pixels are multiplied with, and what is taken away: (2, 3)."""
        std = np.asarray(self.std)
        with np.errstate(over="ignore"):
            return np.asarray([self.rescale_factor / std, np.asarray(self.mean) / std], dtype=np.float32)

    def _floor(self, edge: int) -> int:
        return max(self.size_divisor, edge // self.size_divisor * self.size_divisor)

    def sizes(self) -> list[tuple[int, int]]:
        """Every (height, width) that `target_size` can give: the buckets that the model ever sees."""
        edges = range(self.size_divisor, self.longest_edge + 1, self.size_divisor)
        short = self._floor(self.shortest_edge)
        # Upright pictures have the shorter edge `short`; thinner ones the longer edge `longest_edge`.
        wide = {(short, edge) for edge in edges if edge >= short}
        wide |= {(edge, self.longest_edge) for edge in edges if edge <= short}
        return sorted(wide | {(w, h) for h, w in wide})

    def __call__(self, picture: Image.Image, size: tuple[int, int] | None = None) -> NDArray[np.float32]:
        """An upright picture of mode RGB to (3, new height, new width) float32.

        Args:
            picture: at any scale.
            size: its (height, width) before it was decoded at a reduced scale, which decide about the new ones.
        """
        new_h, new_w = self.target_size(*(size or (picture.height, picture.width)))
        if picture.size != (new_w, new_h):
            if max(picture.size) > _LONGEST_RESIZED:
                across, down = (-(-edge // _LONGEST_RESIZED) for edge in picture.size)
                picture = picture.reduce((across, down))
            picture = picture.resize((new_w, new_h), self.resample)
        scale, shift = self._affine
        out = np.empty((3, new_h, new_w), dtype=np.float32)
        np.multiply(np.asarray(picture).transpose(2, 0, 1), scale[:, None, None], out=out)
        out -= shift[:, None, None]
        return out


def _three(path: Path, config: dict[str, Any], key: str) -> tuple[float, float, float]:
    values = config.get(key, [0.5] * 3)
    if not isinstance(values, list) or len(values) != 3:
        raise ValueError(f"{path.name}: {key} must be three numbers")
    red, green, blue = (_number(path, key, value) for value in values)
    return red, green, blue


def _edge(path: Path, key: str, value: Any) -> int:
    if type(value) is not int or not 1 <= value <= _LARGEST_EDGE:
        raise ValueError(f"{path.name}: {key} must be a whole number from 1 to {_LARGEST_EDGE}")
    return value


def _number(path: Path, key: str, value: Any) -> float:
    # So also no integer with more digits than a float can have.
    if type(value) not in (int, float) or not abs(value) <= sys.float_info.max:
        raise ValueError(f"{path.name}: {key} must hold finite numbers")
    return float(value)
