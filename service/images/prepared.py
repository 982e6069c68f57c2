"""What a format's own reader hands to the decoder."""

from __future__ import annotations

from dataclasses import dataclass

from service.images.exif import UPRIGHT


@dataclass(frozen=True, slots=True)
class Prepared:
    """A picture file after its header was read and checked, before any pixel exists.

    Args:
        width, height: size as stored, in pixels, already checked against the limit.
        payload: a file of the same format with nothing in it but what draws the first picture. Metadata,
            later frames and whatever follows the picture are gone, so that no decoder ever parses them.
        orientation: EXIF orientation still to be applied, 1 to 8.
        icc: the embedded colour profile, or None.
        canvas: (width, height, x, y) where the decoded frame is a part of a larger canvas, else None.
        transparent: the one pixel value that means "transparent" (a grey level or an RGB triple, 8 bit; 16
            bit for a 16-bit grey picture), or None.
        inverted: the decoder gives the samples upside down, and they must be inverted: a CMYK JPEG without
            Adobe's marker (the decoder assumes it), a 16-bit or float TIFF in which 0 is white.
        grey_bits: significant bits of a grey sample wider than 8 bits (12 or 16).
        suspect: the file may lack the end of its pixel data though its structure is whole (PNG).
    """

    width: int
    height: int
    payload: bytes
    orientation: int = UPRIGHT
    icc: bytes | None = None
    canvas: tuple[int, int, int, int] | None = None
    transparent: int | tuple[int, int, int] | None = None
    inverted: bool = False
    grey_bits: int = 16
    suspect: bool = False
