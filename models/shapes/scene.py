"""What a picture shows: shapes with a colour and a place on a background, before any pixel is drawn."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

RGB = tuple[int, int, int]
Orientation = Literal["square", "wide", "tall"]
Texture = Literal["none", "stripes", "checks"]
Box = tuple[float, float, float, float]
"""left, top, width, height in pixels of the picture."""

# The eight colours of easy-VQA with its own RGB values (CSS names; "green" is CSS "lime" there).
EASY_COLORS: dict[str, RGB] = {
    "teal": (0, 128, 128),
    "brown": (165, 42, 42),
    "black": (0, 0, 0),
    "gray": (128, 128, 128),
    "blue": (0, 0, 255),
    "yellow": (255, 255, 0),
    "red": (255, 0, 0),
    "green": (0, 255, 0),
}
COLORS: dict[str, RGB] = EASY_COLORS | {"orange": (255, 140, 0), "purple": (128, 0, 160), "pink": (255, 110, 190)}
SHAPES: tuple[str, ...] = ("circle", "rectangle", "triangle")
# A rectangle whose edges are equal has this name as well; nothing is asked of rectangles that are nearly square.
SQUARE = "square"
NAMES: tuple[str, ...] = (*SHAPES, SQUARE)
"""What a question may call a shape."""
CLEARLY_OBLONG = 1.25
MAX_SHAPES = 5

# Shares of scenes by number of shapes, 1..5, in the varied style: mostly one to three; four and five so that the
# counts "4" and "5" are seen. Never none: a picture without a shape cannot be told from a blank, unanswerable one.
COUNT_SHARES = (0.25, 0.27, 0.22, 0.13, 0.13)
_ORIENTATIONS: tuple[Orientation, ...] = get_args(Orientation)
# Squared RGB distance that keeps a shape visible on its background.
MIN_CONTRAST = 90.0**2
# No colour is moved further than this per channel; the nearest two (red and brown) are 108 apart.
COLOR_JITTER = 12
# Share of scenes of several shapes in which one may lie on another, and how much of a box another may hide.
OVERLAPPING_SHARE = 0.3
MOST_HIDDEN = 0.3


@dataclass(frozen=True)
class Shape:
    """One drawn shape. `rgb` is its painted colour, near `COLORS[color]`."""

    kind: str
    color: str
    box: Box
    rgb: RGB

    @property
    def elongation(self) -> float:
        """The longer edge of its box by the shorter one."""
        return max(self.box[2:]) / min(self.box[2:])

    @property
    def middle(self) -> tuple[float, float]:
        """Where the middle of its box is, in pixels from the left and from the top."""
        return self.box[0] + self.box[2] / 2, self.box[1] + self.box[3] / 2

    @property
    def area(self) -> float:
        """Square pixels that it covers, what hides it left aside."""
        covered = {"circle": math.pi / 4, "rectangle": 1.0, "triangle": 0.5}[self.kind]
        return covered * self.box[2] * self.box[3]

    def called(self, name: str) -> bool | None:
        """Whether it goes by one of `NAMES`, or by "shape"; None for a rectangle of which people would not agree."""
        if name != SQUARE or self.kind != "rectangle":
            return name in (self.kind, "shape")
        return None if 1.0 < self.elongation < CLEARLY_OBLONG else self.elongation == 1.0


@dataclass(frozen=True)
class Background:
    """A flat colour, or a linear gradient from `start` to `end` (`vertical` or left to right).

    `texture` lays stripes or squares of the two colours on it in place of a gradient, `grain` pixels wide; the colours
    of a texture are near each other.
    """

    start: RGB
    end: RGB
    vertical: bool = True
    texture: Texture = "none"
    grain: int = 8


@dataclass(frozen=True)
class Scene:
    """A picture of `width` x `height` pixels with its shapes, the last ones on top where they overlap."""

    width: int
    height: int
    background: Background
    shapes: tuple[Shape, ...]

    def count(self, color: str | None = None, name: str | None = None) -> int:
        """How many shapes have the given colour and name (None: any)."""
        return len(self.matching(color, name))

    def matching(self, color: str | None = None, name: str | None = None) -> tuple[Shape, ...]:
        """The shapes of the given colour and name (None: any)."""
        return tuple(s for s in self.shapes if color in (None, s.color) and (name is None or s.called(name)))

    def agreed(self, name: str | None) -> bool:
        """Whether people would agree which shapes go by a name."""
        return name is None or all(s.called(name) is not None for s in self.shapes)

    @property
    def overlapping(self) -> bool:
        """Whether a shape lies on another."""
        return any(_hidden(a.box, b.box) > 0 for k, a in enumerate(self.shapes) for b in self.shapes[k + 1 :])


def easy_scene(rng: np.random.Generator) -> Scene:
    """A scene in easy-VQA's own style: 64 x 64 pixels, one shape of 10 to 34 pixels on a near-white flat colour."""
    rgb = _rgb(rng.integers(230, 256, 3))
    kind, color = _pick(rng, SHAPES), _pick(rng, tuple(EASY_COLORS))
    width, height = _extent(rng, kind, 10.0, 34.0, equilateral=True)
    left, top = rng.uniform(0, 64 - width), rng.uniform(0, 64 - height)
    shape = Shape(kind, color, (left, top, width, height), COLORS[color])
    return Scene(64, 64, Background(rgb, rgb), (shape,))


def varied_scene(
    rng: np.random.Generator, orientation: Orientation | None = None, most: int = MAX_SHAPES, least: int = 1
) -> Scene:
    """`least` to `most` shapes, fewer where there is no room, on a varied background.

    Aspect ratios 1:1 to 3:2 both ways, shorter edge 64 to 192 pixels.
    """
    width, height = _picture_size(rng, orientation or _ORIENTATIONS[int(rng.choice(3, p=(0.5, 0.25, 0.25)))])
    short = min(width, height)
    shares = np.array(COUNT_SHARES[:most])
    shares[: least - 1] = 0
    wanted = 1 + int(rng.choice(most, p=shares / shares.sum()))
    low, high = (0.16, 0.55) if wanted == 1 else (0.16, 0.34 if wanted < 4 else 0.28)
    hidden = MOST_HIDDEN if wanted > 1 and rng.random() < OVERLAPPING_SHARE else 0.0
    placed: list[Shape] = []
    for kind, color in zip(_some(rng, SHAPES, wanted), _some(rng, tuple(COLORS), wanted), strict=True):
        rgb = _jitter(rng, COLORS[color])
        box = _free_box(rng, kind, (width, height), (low * short, high * short), placed, (0.04 * short, hidden, rgb))
        if box is not None:
            placed.append(Shape(kind, color, box, rgb))
    return Scene(width, height, _background(rng, placed), tuple(placed))


def _some(rng: np.random.Generator, options: tuple[str, ...], wanted: int) -> list[str]:
    """One of the options for each shape; at times the same for several, or "how many red shapes" were always 0 or 1."""
    chosen = [_pick(rng, options) for _ in range(wanted)]
    if wanted > 1 and rng.random() < 0.3:
        chosen = [chosen[0] if rng.random() < 0.6 else other for other in chosen]
    return chosen


def _picture_size(rng: np.random.Generator, orientation: Orientation) -> tuple[int, int]:
    """Width and height in pixels; the longer edge at most 1.5 times the shorter."""
    short = (64, 80, 96, 128, 192)[int(rng.integers(5))]
    if orientation == "square":
        return short, short
    long = round(short * rng.uniform(1.05, 1.5))
    return (long, short) if orientation == "wide" else (short, long)


def _extent(rng: np.random.Generator, kind: str, low: float, high: float, equilateral: bool) -> tuple[float, float]:
    """Width and height of a shape with edges between `low` and `high` pixels.

    Rectangles of easy-VQA's style (`equilateral`) have any edges; others are squares, or clearly none.
    """
    width = rng.uniform(low, high)
    if kind == "circle":
        return width, width
    if kind == "triangle":
        ratio = 3**0.5 / 2
        return width, width * (ratio if equilateral else ratio * rng.uniform(0.8, 1.2))
    if equilateral:
        return width, rng.uniform(low, high)
    if rng.random() < 0.35:
        return width, width
    width = rng.uniform(CLEARLY_OBLONG * low, high)
    height = rng.uniform(low, width / CLEARLY_OBLONG)
    return (width, height) if rng.random() < 0.5 else (height, width)


def _free_box(
    rng: np.random.Generator,
    kind: str,
    size: tuple[int, int],
    edges: tuple[float, float],
    placed: list[Shape],
    room: tuple[float, float, RGB],
) -> Box | None:
    """A box that leaves every placed shape room, or None when none was found in 40 draws.

    `room` is the gap in pixels to leave, or the share of either box that may be hidden in its place, and the colour to
    be painted: shapes of one colour are never laid on each other.
    """
    gap, hidden, rgb = room
    for _ in range(40):
        width, height = _extent(rng, kind, *edges, equilateral=False)
        corner = rng.uniform(0, (size[0] - width, size[1] - height))
        if hidden and placed and rng.random() < 0.5:  # near a placed one: by chance alone few would overlap
            beside = placed[int(rng.integers(len(placed)))].box
            around = rng.uniform(
                (beside[0] - width, beside[1] - height), (beside[0] + beside[2], beside[1] + beside[3])
            )
            corner = np.clip(around, 0, (size[0] - width, size[1] - height))
        box = (float(corner[0]), float(corner[1]), width, height)
        if all(
            _apart(box, other.box, gap)
            or (0 < _hidden(box, other.box) <= hidden and _distance(rgb, other.rgb) >= MIN_CONTRAST)
            for other in placed
        ):
            return box
    return None


def _apart(a: Box, b: Box, gap: float) -> bool:
    """Whether two boxes leave at least `gap` pixels between them, side by side or one above the other."""
    beside = a[0] > b[0] + b[2] + gap or b[0] > a[0] + a[2] + gap
    return beside or a[1] > b[1] + b[3] + gap or b[1] > a[1] + a[3] + gap


def _hidden(a: Box, b: Box) -> float:
    """The share of the smaller box that both have in common."""
    across = min(a[0] + a[2], b[0] + b[2]) - max(a[0], b[0])
    down = min(a[1] + a[3], b[1] + b[3]) - max(a[1], b[1])
    return max(0.0, across) * max(0.0, down) / min(a[2] * a[3], b[2] * b[3])


def _distance(a: RGB, b: RGB) -> float:
    """Squared distance of two colours."""
    return sum((x - y) ** 2 for x, y in zip(a, b, strict=True))


def _background(rng: np.random.Generator, shapes: list[Shape]) -> Background:
    """Pale, mid-tone or dark; flat, a gradient or a faint texture; always well apart from every shape's colour."""
    while True:
        low, high = ((215, 256), (120, 256), (20, 200))[rng.choice(3, p=(0.5, 0.35, 0.15))]
        start = rng.integers(low, high, 3)
        style = int(rng.choice(3, p=(0.5, 0.3, 0.2)))
        spread = (0, 40, 24)[style]
        end = np.clip(start + rng.integers(-spread, spread + 1, 3), 0, 255)
        ends = np.stack([start, (start + end) // 2, end])
        paints = np.array([s.rgb for s in shapes])
        distance = ((ends[:, None] - paints[None]) ** 2).sum(-1)
        if distance.min() >= MIN_CONTRAST:
            vertical = bool(rng.random() < 0.5)
            if style < 2:
                return Background(_rgb(start), _rgb(end), vertical)
            texture: Texture = "stripes" if rng.random() < 0.5 else "checks"
            return Background(_rgb(start), _rgb(end), vertical, texture, int(rng.integers(4, 17)))


def _jitter(rng: np.random.Generator, rgb: RGB) -> RGB:
    return _rgb(np.clip(np.array(rgb) + rng.integers(-COLOR_JITTER, COLOR_JITTER + 1, 3), 0, 255))


def _rgb(values: np.ndarray) -> RGB:
    red, green, blue = (int(v) for v in values)
    return red, green, blue


def _pick(rng: np.random.Generator, options: tuple[str, ...]) -> str:
    return options[int(rng.integers(len(options)))]
