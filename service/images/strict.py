"""JPEGs by a decoder that tells when data is missing, and at whatever scale.

Pillow's decoder does not tell: a file that lacks data would have to be decoded a second time and compared (`decode`
does that where this one is not sure), and at a reduced scale what is missing in the details would not show. simplejpeg
is the same libjpeg-turbo and gives the same pixels at the same scale, but can be asked to fail at whatever libjpeg
warns of. That may also be something harmless, so its failure decides nothing.
"""

from __future__ import annotations

import simplejpeg
from PIL import Image

_COLORSPACES = {"Gray": "GRAY", "YCbCr": "RGB", "RGB": "RGB"}
_SCALES = (8, 4, 2)


def decode_strictly(payload: bytes, least: tuple[int, int] | None) -> Image.Image | None:
    """A JPEG whose data is all there, in mode L or RGB; None where libjpeg warns, and for inks (CMYK).

    Args:
        payload: what the format's reader checked.
        least: the smallest of libjpeg's scales that has this (width, height) is taken; None decodes every pixel.

    Raises:
        MemoryError: there is not enough for it.
    """
    try:
        height, width, colorspace, _ = simplejpeg.decode_jpeg_header(payload)
        if colorspace not in _COLORSPACES:
            return None
        scale = 1
        if least is not None:
            most = min(width // least[0], height // least[1])
            scale = next((scale for scale in _SCALES if scale <= most), 1)
        # Told a size, simplejpeg takes the smallest scale that has it once rounded up: for very small pictures that is
        # not 1 even where all of it is wanted.
        edges = {"min_height": -(-height // scale), "min_width": -(-width // scale)} if scale > 1 else {}
        pixels = simplejpeg.decode_jpeg(payload, _COLORSPACES[colorspace], **edges)
        return Image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels)
    except ValueError:
        return None
