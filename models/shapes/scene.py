"""What a picture shows: shapes with a colour and a place on a background, before any pixel is drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

RGB = tuple[int, int, int]
Orientation = Literal["square", "wide", "tall"]
Box = tuple[float, float, float, float]
"""left, top, width, height in pixels of the picture."""

# The eight colours of easy-VQA with its own RGB values (CSS names; "green" is CSS "lime" there).
COLORS: dict[str, RGB] = {
    "teal": (0, 128, 128),
    "brown": (165, 42, 42),
    "black": (0, 0, 0),
    "gray": (128, 128, 128),
    "blue": (0, 0, 255),
    "yellow": (255, 255, 0),
    "red": (255, 0, 0),
    "green": (0, 255, 0),
}
SHAPES: tuple[str, ...] = ("circle", "rectangle", "triangle")
MAX_SHAPES = 5

# Shares of scenes by number of shapes, 1..5, in the varied style: mostly one to three; four and five so that the
# counts "4" and "5" are seen. Never none: a picture without a shape cannot be told from a blank, unanswerable one.
COUNT_SHARES = (0.35, 0.25, 0.2, 0.1, 0.1)
_ORIENTATIONS: tuple[Orientation, ...] = get_args(Orientation)
# Squared RGB distance that keeps a shape visible on its background.
MIN_CONTRAST = 90.0**2
# No colour is moved further than this per channel: the nearest two (gray and teal) stay 128 apart.
COLOR_JITTER = 12


@dataclass(frozen=True)
class Shape:
    """One drawn shape. `rgb` is its painted colour, near `COLORS[color]`."""

    kind: str
    color: str
    box: Box
    rgb: RGB


@dataclass(frozen=True)
class Background:
    """A flat colour, or a linear gradient from `start` to `end` (`vertical` or left to right)."""

    start: RGB
    end: RGB
    vertical: bool = True


@dataclass(frozen=True)
class Scene:
    """A picture of `width` x `height` pixels with its shapes, none of which touch."""

    width: int
    height: int
    background: Background
    shapes: tuple[Shape, ...]

    def count(self, color: str | None = None, kind: str | None = None) -> int:
        """How many shapes have the given colour and kind (None: any)."""
        return sum(color in (None, s.color) and kind in (None, s.kind) for s in self.shapes)


def easy_scene(rng: np.random.Generator) -> Scene:
    """A scene in easy-VQA's own style: 64 x 64 pixels, one shape of 10 to 34 pixels on a near-white flat colour."""
    rgb = _rgb(rng.integers(230, 256, 3))
    kind, color = _pick(rng, SHAPES), _pick(rng, tuple(COLORS))
    width, height = _extent(rng, kind, 10.0, 34.0, equilateral=True)
    left, top = rng.uniform(0, 64 - width), rng.uniform(0, 64 - height)
    shape = Shape(kind, color, (left, top, width, height), COLORS[color])
    return Scene(64, 64, Background(rgb, rgb), (shape,))


def varied_scene(rng: np.random.Generator, orientation: Orientation | None = None, most: int = MAX_SHAPES) -> Scene:
    """One to `most` shapes on a varied background; aspect ratios 1:1 to 3:2 both ways, shorter edge 64 to 192."""
    width, height = _picture_size(rng, orientation or _ORIENTATIONS[int(rng.choice(3, p=(0.5, 0.25, 0.25)))])
    short = min(width, height)
    shares = np.array(COUNT_SHARES[:most])
    wanted = 1 + int(rng.choice(most, p=shares / shares.sum()))
    low, high = (0.16, 0.55) if wanted == 1 else (0.16, 0.34 if wanted < 4 else 0.28)
    placed: list[Shape] = []
    colors = [_pick(rng, tuple(COLORS)) for _ in range(wanted)]
    if wanted > 1 and rng.random() < 0.3:  # repeated colours, so that "how many red shapes" is not always 0 or 1
        colors = [colors[0] if rng.random() < 0.6 else c for c in colors]
    kinds = [_pick(rng, SHAPES) for _ in range(wanted)]
    if wanted > 1 and rng.random() < 0.3:
        kinds = [kinds[0] if rng.random() < 0.6 else k for k in kinds]
    for kind, color in zip(kinds, colors, strict=True):
        box = _free_box(rng, kind, (width, height), (low * short, high * short), placed, gap=0.04 * short)
        if box is not None:
            placed.append(Shape(kind, color, box, _jitter(rng, COLORS[color])))
    return Scene(width, height, _background(rng, placed), tuple(placed))


def _picture_size(rng: np.random.Generator, orientation: Orientation) -> tuple[int, int]:
    """Width and height in pixels; the longer edge at most 1.5 times the shorter."""
    short = (64, 80, 96, 128, 192)[int(rng.integers(5))]
    if orientation == "square":
        return short, short
    long = round(short * rng.uniform(1.05, 1.5))
    return (long, short) if orientation == "wide" else (short, long)


def _extent(rng: np.random.Generator, kind: str, low: float, high: float, equilateral: bool) -> tuple[float, float]:
    """Width and height of a shape with edges between `low` and `high` pixels."""
    width = rng.uniform(low, high)
    if kind == "circle":
        return width, width
    if kind == "triangle":
        ratio = 3**0.5 / 2
        return width, width * (ratio if equilateral else ratio * rng.uniform(0.8, 1.2))
    return width, rng.uniform(low, high)


def _free_box(
    rng: np.random.Generator,
    kind: str,
    size: tuple[int, int],
    edges: tuple[float, float],
    placed: list[Shape],
    gap: float,
) -> Box | None:
    """A box at least `gap` pixels away from every placed shape, or None when none was found in 40 draws."""
    for _ in range(40):
        width, height = _extent(rng, kind, *edges, equilateral=False)
        left, top = rng.uniform(0, size[0] - width), rng.uniform(0, size[1] - height)
        box = (left, top, width, height)
        if all(_apart(box, other.box, gap) for other in placed):
            return box
    return None


def _apart(a: Box, b: Box, gap: float) -> bool:
    """Whether two boxes leave at least `gap` pixels between them, side by side or one above the other."""
    beside = a[0] > b[0] + b[2] + gap or b[0] > a[0] + a[2] + gap
    return beside or a[1] > b[1] + b[3] + gap or b[1] > a[1] + a[3] + gap


def _background(rng: np.random.Generator, shapes: list[Shape]) -> Background:
    """Pale, mid-tone or dark, flat or a gradient; always well apart from every shape's colour."""
    while True:
        low, high = ((215, 256), (120, 256), (20, 200))[rng.choice(3, p=(0.5, 0.35, 0.15))]
        start = rng.integers(low, high, 3)
        end = start if rng.random() < 0.6 else np.clip(start + rng.integers(-40, 41, 3), 0, 255)
        ends = np.stack([start, (start + end) // 2, end])
        paints = np.array([s.rgb for s in shapes])
        distance = ((ends[:, None] - paints[None]) ** 2).sum(-1)
        if distance.min() >= MIN_CONTRAST:
            return Background(_rgb(start), _rgb(end), bool(rng.random() < 0.5))


def _jitter(rng: np.random.Generator, rgb: RGB) -> RGB:
    return _rgb(np.clip(np.array(rgb) + rng.integers(-COLOR_JITTER, COLOR_JITTER + 1, 3), 0, 255))


def _rgb(values: np.ndarray) -> RGB:
    red, green, blue = (int(v) for v in values)
    return red, green, blue


def _pick(rng: np.random.Generator, options: tuple[str, ...]) -> str:
    return options[int(rng.integers(len(options)))]
