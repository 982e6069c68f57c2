"""Pictures made from a seed: drawings that the embedded model knows, and what a camera brings home.

`stamped` gives a picture another identity without another pixel: the bytes differ, and so does their digest.
"""

from __future__ import annotations

import io
import struct
import zlib
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from models.camera import camera_scene
from models.shapes.render import render
from models.shapes.scene import varied_scene

Format = Literal["JPEG", "PNG"]

TWELVE_MEGAPIXELS = (4032, 3024)
_MOST_MIXED = 195_000
_PNG_HEADER = 33  # the signature and IHDR


def drawing(seed: int) -> bytes:
    """A PNG of drawn shapes, 64 to 288 pixels wide."""
    return encoded(render(varied_scene(np.random.default_rng([1, seed]))), "PNG")


def camera(seed: int, width: int = 640, height: int = 480, fmt: Format = "JPEG") -> bytes:
    """A camera-like picture: smooth light, edges, and sensor noise; a 640 x 480 JPEG has about 50 kB."""
    rng = np.random.default_rng([2, seed])
    return encoded(camera_scene(rng, width, height), fmt, quality=int(rng.integers(80, 93)))


def camera_mixed(seed: int) -> bytes:
    """A camera-like JPEG of about 20 to 200 kB, upright or not."""
    rng = np.random.default_rng([3, seed])
    long = int(np.exp(rng.uniform(np.log(480), np.log(1150))))
    short = int(long * rng.uniform(0.6, 1.0))
    width, height = (long, short) if rng.random() < 0.6 else (short, long)
    picture = camera(seed, width, height)
    # The noisiest of the largest would be larger; fewer pixels of the same kind are not.
    return picture if len(picture) <= _MOST_MIXED else camera(seed, width * 2 // 3, height * 2 // 3)


def photo(seed: int) -> bytes:
    """A 12-megapixel camera JPEG of 1 to 4 MB."""
    return camera(seed, *TWELVE_MEGAPIXELS)


def any_shape(seed: int) -> bytes:
    """A JPEG or PNG of any size from 32 to 1,600 pixels an edge and any shape up to 6:1."""
    rng = np.random.default_rng([4, seed])
    pixels = np.exp(rng.uniform(np.log(64 * 64), np.log(1000 * 1000)))
    ratio = np.exp(rng.uniform(-np.log(6), np.log(6)))
    width, height = (int(np.clip(edge, 32, 1600)) for edge in (np.sqrt(pixels * ratio), np.sqrt(pixels / ratio)))
    return camera(seed, width, height, "PNG" if rng.random() < 0.3 else "JPEG")


def stamped(picture: bytes, number: int) -> bytes:
    """The same pixels in a file of its own: the number goes into a comment of the JPEG or PNG.

    Raises:
        ValueError: it is neither.
    """
    mark = b"vqa-load %d" % number
    if picture.startswith(b"\xff\xd8"):
        return picture[:2] + b"\xff\xfe" + struct.pack(">H", len(mark) + 2) + mark + picture[2:]
    if picture.startswith(b"\x89PNG"):
        chunk = b"tEXt" + b"Comment\0" + mark
        comment = struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk))
        return picture[:_PNG_HEADER] + comment + picture[_PNG_HEADER:]
    raise ValueError("only a JPEG or a PNG can be stamped")


def encoded(pixels: NDArray[np.uint8], fmt: Format, quality: int = 85) -> bytes:
    """Pixels as a file."""
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, fmt, **({"quality": quality} if fmt == "JPEG" else {"compress_level": 1}))
    return out.getvalue()
