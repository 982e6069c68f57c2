"""What the line camera sees: a lid from above on a belt, and around it the ring of the seal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

WIDTH, HEIGHT = 160, 120
SUPERSAMPLING = 3
LIDS = {"red": (176, 44, 40), "white": (226, 224, 216), "black": (40, 40, 44), "blue": (46, 74, 150)}
SEAL = (206, 176, 92)
STATES = ("intact", "broken", "missing")


@dataclass(frozen=True)
class Jar:
    """A lid's colour, and whether its seal is "intact", "broken" or "missing"."""

    lid: str
    seal: str


def draw(rng: np.random.Generator) -> tuple[Jar, np.ndarray]:
    """A jar and its picture, uint8, 120 x 160 x 3: the jar a little off the middle, the light now more, now less."""
    jar = Jar(list(LIDS)[int(rng.integers(len(LIDS)))], STATES[int(rng.choice(3, p=(0.5, 0.3, 0.2)))])
    scale = SUPERSAMPLING
    belt = np.zeros((HEIGHT * scale, WIDTH * scale, 3)) + rng.uniform(84, 104)
    belt += 6 * np.sin(np.arange(WIDTH * scale) / (4 * scale))[None, :, None]
    canvas = Image.fromarray(belt.astype(np.uint8))
    pen = ImageDraw.Draw(canvas)
    x, y = (WIDTH / 2 + rng.uniform(-10, 10)) * scale, (HEIGHT / 2 + rng.uniform(-6, 6)) * scale
    glass, ring, lid = (radius * scale for radius in (52, 45, 34))
    pen.ellipse((x - glass, y - glass, x + glass, y + glass), fill=(150, 158, 156))
    if jar.seal != "missing":
        pen.ellipse((x - ring, y - ring, x + ring, y + ring), fill=SEAL)
    if jar.seal == "broken":
        start, width = rng.uniform(0, 360), rng.uniform(30, 70)
        outer = ring + 2 * scale
        pen.pieslice((x - outer, y - outer, x + outer, y + outer), start, start + width, fill=(150, 158, 156))
    pen.ellipse((x - lid, y - lid, x + lid, y + lid), fill=LIDS[jar.lid])
    return jar, _taken(canvas.reduce(scale), rng)


def _taken(picture: Image.Image, rng: np.random.Generator) -> np.ndarray:
    """As the camera takes it: slightly soft, the light uneven from left to right, noise."""
    soft = np.asarray(picture.filter(ImageFilter.GaussianBlur(rng.uniform(0.3, 0.9))), float)
    light = rng.uniform(0.85, 1.1) * np.linspace(1, rng.uniform(0.85, 1.15), WIDTH)[None, :, None]
    noisy = soft * light + rng.normal(0, rng.uniform(2, 5), soft.shape)
    return np.clip(noisy, 0, 255).astype(np.uint8)


def questions(jar: Jar) -> Iterator[tuple[str, str]]:
    """What the operator asks of each jar, with the answer."""
    yield "Is the seal intact?", "yes" if jar.seal == "intact" else "no"
    yield "What is wrong with the seal?", {"intact": "nothing"}.get(jar.seal, jar.seal)
    yield "What color is the lid?", jar.lid
