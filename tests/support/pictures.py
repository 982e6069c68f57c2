"""Pictures made in memory."""

from __future__ import annotations

import io

from PIL import Image, ImageDraw


def encoded(picture: Image.Image, fmt: str = "PNG", **options: object) -> bytes:
    """A picture's bytes in a format."""
    out = io.BytesIO()
    picture.save(out, fmt, **options)
    return out.getvalue()


def drawn_circle(colour: str = "red", size: tuple[int, int] = (64, 64), background: str = "white") -> bytes:
    """A PNG of one circle, of the kind that the embedded model knows."""
    picture = Image.new("RGB", size, background)
    centre_x, centre_y, radius = size[0] / 2, size[1] / 2, min(size) / 4
    box = (centre_x - radius, centre_y - radius, centre_x + radius, centre_y + radius)
    ImageDraw.Draw(picture).ellipse(box, fill=colour)
    return encoded(picture)
