"""Pictures that can no longer answer: blank, dark, blown out, badly blurred, cropped to nothing, noise.

Each phrasing group degrades in its own way, so that calibration and test measure kinds of damage that training
never saw. Every function takes and gives uint8 pixels, H x W x 3.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from PIL import Image, ImageFilter

from models.shapes.phrasing import Group

Degradation = Callable[[np.ndarray, np.random.Generator], np.ndarray]


def degrade(pixels: np.ndarray, rng: np.random.Generator, group: Group) -> tuple[np.ndarray, str]:
    """Ruin a picture in one of the group's ways; returns the pixels and the name of the damage."""
    ways = DEGRADATIONS[group]
    name = tuple(ways)[int(rng.integers(len(ways)))]
    return ways[name](pixels, rng), name


def _bytes(values: np.ndarray) -> np.ndarray:
    return np.clip(values, 0, 255).astype(np.uint8)


def _faded(values: np.ndarray) -> np.ndarray:
    """A quarter of the contrast around the mean colour: blur alone would leave the colour of a large shape readable."""
    mean = values.mean(axis=(0, 1), keepdims=True)
    return _bytes(mean + (values - mean) * 0.25)


def _blank(pixels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One flat colour: a covered lens, a wall."""
    return np.broadcast_to(rng.integers(0, 256, 3).astype(np.uint8), pixels.shape).copy()


def _dark(pixels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Almost no light, with sensor noise: nothing above about 12 of 255."""
    return _bytes(pixels * rng.uniform(0.0, 0.03) + rng.uniform(0, 5) + rng.normal(0, rng.uniform(0, 3), pixels.shape))


def _blown_out(pixels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Overexposed to white: the scene's contrast is at most 8 of 255 and clipped."""
    faint = (pixels - 255.0) * rng.uniform(0.0, 0.03)
    return _bytes(255 + faint + rng.uniform(-3, 6) + rng.normal(0, rng.uniform(0, 2), pixels.shape))


def _gaussian_blur(pixels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    radius = rng.uniform(0.18, 0.3) * min(pixels.shape[:2])
    return _faded(np.asarray(Image.fromarray(pixels).filter(ImageFilter.GaussianBlur(radius)), float))


def _uniform_noise(pixels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return rng.integers(0, 256, pixels.shape).astype(np.uint8)


def _colored_noise(pixels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Normal noise around a random colour, coarse or fine grained."""
    height, width, _ = pixels.shape
    grain = int(rng.integers(1, 5))
    coarse = rng.normal(rng.integers(40, 216, 3), rng.uniform(25, 70), (height // grain + 1, width // grain + 1, 3))
    return _bytes(np.kron(coarse, np.ones((grain, grain, 1)))[:height, :width])


def _cropped_to_a_corner(pixels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The plainest corner enlarged to the whole picture: the camera pointed beside the scene."""
    height, width = (max(4, int(edge * rng.uniform(0.1, 0.16))) for edge in pixels.shape[:2])
    return _enlarged(_plainest([pixels[rows, across] for rows in _ends(height) for across in _ends(width)]), pixels)


def _zoomed_in(pixels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A plain spot, of a shape or of what is behind it, enlarged to the whole picture."""
    edge = max(4, int(min(pixels.shape[:2]) * rng.uniform(0.05, 0.09)))
    corners = [[int(rng.integers(side - edge)) for side in pixels.shape[:2]] for _ in range(12)]
    return _enlarged(_plainest([pixels[top : top + edge, left : left + edge] for top, left in corners]), pixels)


def _cropped_to_a_strip(pixels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The plainest strip along an edge, stretched to the whole picture."""
    height, width = (max(3, int(edge * rng.uniform(0.03, 0.06))) for edge in pixels.shape[:2])
    strips = [pixels[rows] for rows in _ends(height)] + [pixels[:, across] for across in _ends(width)]
    return _enlarged(_plainest(strips), pixels)


def _ends(length: int) -> tuple[slice, slice]:
    return slice(length), slice(-length, None)


def _plainest(parts: list[np.ndarray]) -> np.ndarray:
    return min(parts, key=lambda part: float(part.std(axis=(0, 1)).sum()))


def _enlarged(part: np.ndarray, like: np.ndarray) -> np.ndarray:
    height, width = like.shape[:2]
    return np.asarray(Image.fromarray(np.ascontiguousarray(part)).resize((width, height), Image.Resampling.BICUBIC))


def _gradient(pixels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A smooth slope from one colour to another with nothing on it: an out-of-focus wall."""
    start, end = rng.integers(0, 256, 3), rng.integers(0, 256, 3)
    slope = np.linspace(0.0, 1.0, pixels.shape[0])[:, None, None]
    return np.broadcast_to(_bytes(start * (1 - slope) + end * slope), pixels.shape).copy()


def _dark_vignette(pixels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Dark everywhere, with a faint glow in the middle."""
    height, width, _ = pixels.shape
    y, x = np.mgrid[-1 : 1 : height * 1j, -1 : 1 : width * 1j]
    glow = np.clip(1 - (x**2 + y**2), 0, 1)[..., None] * rng.uniform(5, 14)
    return _bytes(pixels * 0.01 + glow + rng.normal(0, 1, pixels.shape))


def _fog(pixels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """White haze: the scene keeps 2 of 100 parts of its contrast."""
    return _bytes(pixels * 0.02 + rng.uniform(225, 248) + rng.normal(0, 1.5, pixels.shape))


def _box_blur(pixels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    radius = rng.uniform(0.25, 0.35) * min(pixels.shape[:2])
    blurred = Image.fromarray(pixels).filter(ImageFilter.BoxBlur(radius))
    return _faded(np.asarray(blurred.filter(ImageFilter.BoxBlur(radius / 2)), float))


def _gray_noise(pixels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    gray = rng.normal(rng.uniform(90, 160), rng.uniform(35, 60), pixels.shape[:2])
    return _bytes(np.repeat(gray[..., None], 3, axis=2))


def _black(pixels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Black with a few hot pixels."""
    hot = rng.random((*pixels.shape[:2], 1)) < 0.01
    return _bytes(pixels * 0.015 + hot * rng.integers(60, 256))


def _glare(pixels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A flash straight into the lens: white in the middle, pale at the edges."""
    height, width, _ = pixels.shape
    y, x = np.mgrid[-1 : 1 : height * 1j, -1 : 1 : width * 1j]
    edge = (np.clip(x**2 + y**2, 0, 2) / 2)[..., None]
    return _bytes(255 - edge * (rng.uniform(4, 18) + (255 - pixels.astype(float)) * 0.03))


def _motion_blur(pixels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Shaken in both directions over more than half of the picture."""
    spread = pixels.astype(float)
    for axis, share in ((0, rng.uniform(0.5, 0.8)), (1, rng.uniform(0.5, 0.8))):
        size = spread.shape[axis]
        steps = max(2, int(share * size))
        # The mean of so many pixels before each, round the edge: differences of running sums.
        sums = np.pad(spread, [(steps if each == axis else 0, 0) for each in range(3)], mode="wrap").cumsum(axis)
        spread = (sums.take(range(steps, steps + size), axis) - sums.take(range(size), axis)) / steps
    return _faded(spread)


def _salt_and_pepper(pixels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """All but one pixel in 200 are replaced by black or white."""
    hit = rng.random(pixels.shape[:2]) < 0.995
    grains = np.where(rng.random(pixels.shape[:2]) < 0.5, 0, 255)
    return np.where(hit[..., None], grains[..., None], pixels).astype(np.uint8)


DEGRADATIONS: dict[Group, dict[str, Degradation]] = {
    Group.TRAIN: {
        "blank": _blank,
        "dark": _dark,
        "blown_out": _blown_out,
        "gaussian_blur": _gaussian_blur,
        "uniform_noise": _uniform_noise,
        "colored_noise": _colored_noise,
        "cropped_to_a_corner": _cropped_to_a_corner,
    },
    Group.CALIBRATION: {
        "gradient": _gradient,
        "dark_vignette": _dark_vignette,
        "fog": _fog,
        "box_blur": _box_blur,
        "gray_noise": _gray_noise,
        "zoomed_in": _zoomed_in,
    },
    Group.TEST: {
        "black": _black,
        "glare": _glare,
        "motion_blur": _motion_blur,
        "salt_and_pepper": _salt_and_pepper,
        "cropped_to_a_strip": _cropped_to_a_strip,
    },
}
