"""GIF: the blocks are walked to the trailer; the payload is the first frame as a picture of its own.

Decoding the frame alone and laying it on the canvas afterwards gives what browsers show: whatever the frame
does not cover is transparent.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator

from service.errors import ImageError
from service.images.limits import ImageLimits
from service.images.prepared import Prepared
from service.images.refusal import truncated, undecodable

_KIND = "GIF"
_EXTENSION, _IMAGE, _TRAILER = 0x21, 0x2C, 0x3B
_GRAPHIC_CONTROL = 0xF9
# Sub-blocks included. 20 MiB in full sub-blocks are 82,000; the walk over seven times as many takes less than 0.1 s.
_MOST_BLOCKS = 600_000


def prepare(data: bytes, limits: ImageLimits) -> Prepared:
    """Read and check a GIF file.

    Raises:
        ImageError: `image_too_large`, `image_truncated` (the trailer included) or `image_undecodable`.
    """
    if len(data) < 13:
        raise truncated(_KIND, "inside its header")
    screen_width, screen_height, flags = struct.unpack_from("<HHB", data, 6)
    limits.check_pixels(screen_width, screen_height)
    palette_size = 3 << ((flags & 7) + 1) if flags & 0x80 else 0
    at = 13 + palette_size
    control = b""
    frame: Prepared | None = None
    steps = itertools.repeat(None, _MOST_BLOCKS)
    for _ in steps:
        if at >= len(data):
            raise truncated(_KIND, "before its trailer" if frame else "before its pixel data")
        block = data[at]
        if block == _TRAILER:
            break
        if block == _EXTENSION:
            end = _skip_blocks(data, at + 2, steps)
            if not frame and data[at + 1] == _GRAPHIC_CONTROL and data[at + 2] == 4 and end == at + 8:
                control = data[at:end]
            at = end
        elif block == _IMAGE:
            end = _image_end(data, at, steps)
            if frame is None:
                frame = _first_frame(data, at, end, control, palette_size, limits)
            at = end
        elif frame:
            break  # junk where the next frame would be: everybody stops there
        elif block == 0:
            at += 1  # stray block ends are common
        else:
            raise undecodable(_KIND, "there is a block that the format does not have")
    else:
        raise _too_many()
    if frame is None:
        raise undecodable(_KIND, "there is no picture in it")
    return frame


def _first_frame(data: bytes, at: int, end: int, control: bytes, palette_size: int, limits: ImageLimits) -> Prepared:
    screen_width, screen_height = struct.unpack_from("<HH", data, 6)
    x, y, width, height = struct.unpack_from("<HHHH", data, at + 1)
    if not width or not height:
        raise undecodable(_KIND, "its width or height is zero")
    # A frame that sticks out of the logical screen widens it.
    canvas = (max(screen_width, x + width), max(screen_height, y + height), x, y)
    limits.check_pixels(canvas[0], canvas[1])
    if not palette_size and not data[at + 9] & 0x80:
        raise undecodable(_KIND, "it has no palette")
    if control:
        # Transparency alone: the frame's disposal and timing are of no concern here.
        control = control[:3] + bytes([control[3] & 1, 0, 0]) + control[6:]
    payload = b"".join(
        (
            b"GIF89a",
            struct.pack("<HH", width, height),
            data[10:11] + b"\0\0",
            data[13 : 13 + palette_size],
            control,
            struct.pack("<BHHHH", _IMAGE, 0, 0, width, height),
            data[at + 9 : end],
            bytes([_TRAILER]),
        )
    )
    whole = canvas == (width, height, 0, 0)
    return Prepared(width=canvas[0], height=canvas[1], payload=payload, canvas=None if whole else canvas)


def _image_end(data: bytes, at: int, steps: Iterator[None]) -> int:
    """The offset behind an image block: descriptor, local palette, code size and data."""
    if at + 10 > len(data):
        raise truncated(_KIND, "inside a frame's header")
    flags = data[at + 9]
    palette = 3 << ((flags & 7) + 1) if flags & 0x80 else 0
    return _skip_blocks(data, at + 10 + palette + 1, steps)


def _skip_blocks(data: bytes, at: int, steps: Iterator[None]) -> int:
    """The offset behind a chain of sub-blocks that starts at `at`; each takes one of `steps`."""
    end = len(data)
    for _ in steps:
        if at >= end:
            raise truncated(_KIND, "inside its pixel data")
        size = data[at]
        at += 1 + size
        if not size:
            return at
    raise _too_many()


def _too_many() -> ImageError:
    return undecodable(_KIND, f"it has more than {_MOST_BLOCKS:,} blocks")
