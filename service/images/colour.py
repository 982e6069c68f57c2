"""From whatever a decoder gives to 8-bit sRGB on white."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageChops

from service.images.prepared import Prepared
from service.images.profiles import to_srgb
from service.images.refusal import undecodable
from service.images.sniff import Format

WHITE = (255, 255, 255)


def to_rgb(picture: Image.Image, prepared: Prepared, kind: Format) -> Image.Image:
    """The picture in mode RGB: 8 bit, sRGB, transparency laid on white, at the size of its canvas.

    Raises:
        ImageError: `image_undecodable` for samples without a defined brightness (32-bit integers, floats
            beyond 0 to 1) and for damage that shows only here.
    """
    picture, alpha = _split(picture, prepared, kind)
    picture = to_srgb(picture, prepared.icc)
    if alpha is None and prepared.canvas is None:
        return picture
    if prepared.canvas is None:
        canvas, where = Image.new("RGB", picture.size, WHITE), (0, 0)
    else:
        width, height, *corner = prepared.canvas
        canvas, where = Image.new("RGB", (width, height), WHITE), (corner[0], corner[1])
    canvas.paste(picture, where, alpha)
    return canvas


def _split(picture: Image.Image, prepared: Prepared, kind: Format) -> tuple[Image.Image, Image.Image | None]:
    """(colour in L, RGB, CMYK or LAB; alpha in L or None), 8 bit."""
    key = prepared.transparent
    mode = picture.mode
    if mode.startswith("I;16") or mode in {"I", "F"}:
        return _wide_grey(picture, prepared)
    if mode in {"La", "RGBa"}:
        picture = picture.convert(mode.upper())
    elif mode == "P":
        picture = picture.convert("RGBA" if "transparency" in picture.info else "RGB")
    elif mode == "PA":
        picture = picture.convert("RGBA")
    elif mode == "1":
        picture = picture.convert("L")
    elif mode in {"YCbCr", "HSV", "RGBX"}:
        picture = picture.convert("RGB")
    elif mode == "CMYK" and prepared.inverted:
        picture = ImageChops.invert(picture)
    if picture.mode in {"LA", "RGBA"}:
        alpha = picture.getchannel("A")
        low, high = alpha.getextrema()
        # Bitmap writers leave the alpha bytes at zero without meaning it.
        opaque = low == 255 or (kind is Format.BMP and high == 0)
        return picture.convert(picture.mode[:-1]), None if opaque else alpha
    if key is not None:
        samples = np.asarray(picture)
        hidden = (samples == key) if picture.mode == "L" else (samples == np.asarray(key)).all(axis=2)
        return picture, _mask(hidden)
    return picture, None


def _wide_grey(picture: Image.Image, prepared: Prepared) -> tuple[Image.Image, Image.Image | None]:
    """Grey with more than 8 bits a sample: the high byte; floats: 0 is black and 1 white, as TIFF has it."""
    samples = np.asarray(picture)
    alpha = None
    if picture.mode == "F":
        low, high = (float(samples.min()), float(samples.max())) if samples.size else (0.0, 0.0)
        if not (low >= -1e-3 and high <= 1.001):  # also where one is NaN
            raise undecodable("TIFF", "its floating-point samples are not between 0 (black) and 1 (white)")
        grey = np.rint(np.clip(samples, 0, 1) * 255).astype(np.uint8)
    elif picture.mode == "I":
        raise undecodable("TIFF", "its samples are signed or 32-bit numbers, which have no defined brightness")
    else:
        if prepared.transparent is not None:
            alpha = _mask(samples == prepared.transparent)
        grey = (samples >> (prepared.grey_bits - 8)).astype(np.uint8)
    if prepared.inverted:
        grey = 255 - grey
    return Image.fromarray(grey), alpha


def _mask(hidden: npt.NDArray[np.bool_]) -> Image.Image | None:
    return Image.fromarray(np.where(hidden, 0, 255).astype(np.uint8)) if hidden.any() else None
