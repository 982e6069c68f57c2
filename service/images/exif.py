"""The one thing that is wanted from EXIF: which way up the picture is.

Cameras and editors write broken EXIF often, and a general parser stops at the first broken field. This one
looks for the orientation entry in the first directory and for nothing else, so that damage elsewhere cannot
hide it.
"""

from __future__ import annotations

import struct

ORIENTATION_TAG = 0x0112
UPRIGHT = 1
# From this orientation on a picture is stored on its side: turning it upright exchanges width and height.
LYING = 5
EXIF_PREFIX = b"Exif\0\0"

# The integer types in which writers put the value; the standard says SHORT.
_VALUE_FORMATS = {1: "B", 3: "H", 4: "I", 6: "b", 8: "h", 9: "i"}


def orientation(exif: bytes) -> int:
    """The EXIF orientation, 1 to 8, in `exif` (a TIFF stream, with or without the "Exif" prefix).

    Gives 1 (upright as stored) where the block is empty, unreadable, has no such entry, or holds a value
    outside 1 to 8. Never raises.
    """
    while exif.startswith(EXIF_PREFIX):  # some editors write the prefix twice
        exif = exif[len(EXIF_PREFIX) :]
    order = {b"II": "<", b"MM": ">"}.get(exif[:2])
    if order is None or len(exif) < 8:
        return UPRIGHT
    magic, start = struct.unpack_from(order + "HI", exif, 2)
    if magic != 42 or start + 2 > len(exif):
        return UPRIGHT
    (count,) = struct.unpack_from(order + "H", exif, start)
    # The count may be a lie; what lies within the block is what there is.
    for at in range(start + 2, min(start + 2 + 12 * count, len(exif) - 11), 12):
        tag, kind, values = struct.unpack_from(order + "HHI", exif, at)
        if tag == ORIENTATION_TAG and kind in _VALUE_FORMATS and values >= 1:
            (value,) = struct.unpack_from(order + _VALUE_FORMATS[kind], exif, at + 8)
            return value if 1 <= value <= 8 else UPRIGHT
    return UPRIGHT
