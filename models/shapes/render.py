"""Scene to pixels: uint8 arrays of H x W x 3, RGB."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from models.shapes.scene import Background, Scene, Shape

# Drawn this much larger and averaged down: smooth edges like easy-VQA's own drawings.
SUPERSAMPLING = 2


def render(scene: Scene) -> np.ndarray:
    """Draw a scene; returns uint8 pixels, H x W x 3."""
    scale = SUPERSAMPLING
    canvas = _background(scene.background, scene.width * scale, scene.height * scale)
    draw = ImageDraw.Draw(canvas)
    for shape in scene.shapes:
        _draw(draw, shape, scale)
    return np.asarray(canvas.reduce(scale))


def disturb(pixels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A mild flaw of everyday pictures that leaves every question answerable: noise, dimming, soft focus, JPEG."""
    flaw = int(rng.integers(4))
    if flaw == 0:
        noise = rng.normal(0.0, rng.uniform(1.0, 10.0), pixels.shape)
        return np.clip(pixels + noise, 0, 255).astype(np.uint8)
    if flaw == 1:
        return (pixels * rng.uniform(0.8, 1.0)).astype(np.uint8)
    image = Image.fromarray(pixels)
    if flaw == 2:
        radius = rng.uniform(0.003, 0.012) * min(image.size)
        return np.asarray(image.filter(ImageFilter.GaussianBlur(radius)))
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=int(rng.integers(50, 96)))
    return np.asarray(Image.open(buffer).convert("RGB"))


def _background(background: Background, width: int, height: int) -> Image.Image:
    if background.start == background.end:
        return Image.new("RGB", (width, height), background.start)
    if background.texture != "none":
        return _texture(background, width, height)
    length = height if background.vertical else width
    ramp = np.linspace(background.start, background.end, length).round().astype(np.uint8)
    ramp = ramp[:, None] if background.vertical else ramp[None]
    return Image.fromarray(np.ascontiguousarray(np.broadcast_to(ramp, (height, width, 3))))


def _texture(background: Background, width: int, height: int) -> Image.Image:
    grain = background.grain * SUPERSAMPLING
    down, across = np.arange(height)[:, None] // grain, np.arange(width)[None] // grain
    stripes = down if background.vertical else across
    which = (stripes if background.texture == "stripes" else down + across) % 2
    colors = np.array([background.start, background.end], np.uint8)
    return Image.fromarray(colors[np.broadcast_to(which, (height, width))])


def _draw(draw: ImageDraw.ImageDraw, shape: Shape, scale: int) -> None:
    left, top, width, height = (v * scale for v in shape.box)
    right, bottom = left + width - 1, top + height - 1  # Pillow's far edges are inclusive
    if shape.kind == "circle":
        draw.ellipse((left, top, right, bottom), fill=shape.rgb)
    elif shape.kind == "rectangle":
        draw.rectangle((left, top, right, bottom), fill=shape.rgb)
    elif shape.kind == "triangle":
        draw.polygon([(left, bottom), (right, bottom), ((left + right) / 2, top)], fill=shape.rgb)
    else:
        raise ValueError(f"unknown shape kind: {shape.kind}")
