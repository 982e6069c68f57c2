"""The decoder: bytes in, an upright sRGB picture out, whatever the route that the bytes came by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageChops

from service.images import exif
from service.images.colour import to_rgb
from service.images.formats import bmp, gif, heif, jpeg, png, tiff, webp
from service.images.limits import DEFAULT_LIMITS, ImageLimits
from service.images.prepared import Prepared
from service.images.raster import decoder_boundary, memory_boundary, rasterise
from service.images.reduced import Needed, least_size
from service.images.refusal import truncated
from service.images.sniff import Format, sniff
from service.images.strict import decode_strictly

_READERS: dict[Format, Callable[[bytes, ImageLimits], Prepared]] = {
    Format.JPEG: jpeg.prepare,
    Format.PNG: png.prepare,
    Format.GIF: gif.prepare,
    Format.WEBP: webp.prepare,
    Format.BMP: bmp.prepare,
    Format.TIFF: tiff.prepare,
    Format.HEIC: heif.prepare_heic,
    Format.AVIF: heif.prepare_avif,
}

# EXIF orientation: what turns the stored picture upright (CIPA DC-008, tag 274).
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


@dataclass(frozen=True, slots=True)
class DecodedImage:
    """An upright picture.

    Args:
        picture: mode RGB, sRGB, loaded; not to be changed, since questions may share it. Smaller than `width` x
            `height` where it was decoded at a reduced scale.
        format: what the file was: one of `ACCEPTED_FORMATS`.
        width, height: of the whole picture in pixels, after the turn.
    """

    picture: Image.Image
    format: str
    width: int
    height: int

    @property
    def pixels(self) -> npt.NDArray[np.uint8]:
        """A copy of `picture`: (height, width, 3), C-contiguous, read-only."""
        pixels = np.asarray(self.picture)
        pixels.flags.writeable = False
        return pixels


def decode_image(data: bytes, *, limits: ImageLimits = DEFAULT_LIMITS, needed: Needed | None = None) -> DecodedImage:
    """Decode one picture file; the policies are in the documentation of `service.images`.

    Args:
        data: the file's bytes.
        limits: bounds on bytes and pixels, checked before anything is decoded.
        needed: how large the picture is needed; a JPEG may then come at 1/2, 1/4 or 1/8 of its size, and never below
            `MARGIN` times what is needed. Without it every pixel comes.

    Raises:
        ImageError: `image_empty`, `image_too_large`, `unsupported_media_type`, `image_truncated` or
            `image_undecodable`.
    """
    limits.check_bytes(len(data))
    kind = sniff(data)
    with memory_boundary(kind):
        return _decoded(kind, data, limits, needed)


def _decoded(kind: Format, data: bytes, limits: ImageLimits, needed: Needed | None) -> DecodedImage:
    prepared = _READERS[kind](data, limits)
    picture = decode_strictly(prepared.payload, least_size(prepared, needed)) if kind is Format.JPEG else None
    turn = exif.UPRIGHT
    if picture is None:
        picture, turn = rasterise(kind, prepared.payload)
        _check_tail(picture, prepared, kind)
    # A stream that unpacks to another size than its header announced is checked again.
    limits.check_pixels(*picture.size)
    upright = to_rgb(picture, prepared, kind)
    del picture
    # A frame may be a part of its canvas; a JPEG has none, and may have been decoded at a reduced scale.
    size = (prepared.width, prepared.height) if kind is Format.JPEG else upright.size
    orientation = prepared.orientation if turn == exif.UPRIGHT else turn
    if orientation in _TURNS:
        upright = upright.transpose(_TURNS[orientation])
    width, height = reversed(size) if orientation >= exif.LYING else size
    return DecodedImage(upright, str(kind), width, height)


def _check_tail(picture: Image.Image, prepared: Prepared, kind: Format) -> None:
    """Refuse a picture whose pixel data ends before the picture does, although its file is whole to the end marker.

    Two of Pillow's decoders do not tell. JPEG's fills what is missing with mid-grey (a sequential file) or leaves it
    coarse (a progressive one); the file, of which `decode_strictly` was not sure, is decoded again with other data in
    the place of the missing: if that changes the picture, something was missing. PNG's leaves the rows at zero; where
    the last ones are, the data is unpacked to see how much there is.
    """
    if kind is Format.JPEG:
        again, _ = rasterise(Format.JPEG, jpeg.padded(prepared.payload))
        cut = ImageChops.difference(again, picture).getbbox() is not None
    elif kind is Format.PNG and (prepared.suspect or _ends_zero(picture)):
        with decoder_boundary(kind):
            cut = png.lacks_pixels(prepared.payload)
    else:
        return
    if cut:
        raise truncated(kind.upper(), "inside its pixel data, and an end marker was put behind it")


def _ends_zero(picture: Image.Image) -> bool:
    """Whether the last row has nothing but zeros in it."""
    width, height = picture.size
    return not np.asarray(picture.crop((0, height - 1, width, height))).any()
