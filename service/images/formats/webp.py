"""WebP: the RIFF chunks are walked for the canvas size, the profile and the EXIF block.

The decoder allocates the whole canvas when it is opened, so the size must be known before.
"""

from __future__ import annotations

import struct

from service.images import exif
from service.images.limits import ImageLimits
from service.images.prepared import Prepared
from service.images.refusal import truncated, undecodable

_KIND = "WebP"
_MAX_CHUNKS = 100_000  # an animation has two a frame


def prepare(data: bytes, limits: ImageLimits) -> Prepared:
    """Read and check a WebP file; the payload is the file without what follows it.

    Raises:
        ImageError: `image_too_large`, `image_truncated` or `image_undecodable`.
    """
    if len(data) < 30:
        raise truncated(_KIND, "inside its header")
    end = 8 + int.from_bytes(data[4:8], "little")
    size: tuple[int, int] | None = None
    profile, exif_block = None, b""
    at = 12
    for _ in range(_MAX_CHUNKS):
        if at + 8 > min(end, len(data)):
            break
        name, length = struct.unpack_from("<4sI", data, at)
        body = at + 8
        size_here = _size(name, data, body)
        if size_here:
            limits.check_pixels(*size_here)
            size = size or size_here
        elif at == 12:
            raise undecodable(_KIND, "its first chunk is not a picture")
        if body + length > len(data):
            break
        if name == b"ICCP" and profile is None:
            profile = data[body : body + length]
        elif name == b"EXIF" and not exif_block:
            exif_block = data[body : body + length]
        at = body + length + (length & 1)
    if end > len(data):
        raise truncated(_KIND, "inside its pixel data")
    if size is None or not all(size):
        raise undecodable(_KIND, "its width or height is zero")
    return Prepared(
        width=size[0],
        height=size[1],
        payload=data[:end],
        orientation=exif.orientation(exif_block),
        icc=profile,
    )


def _size(name: bytes, data: bytes, body: int) -> tuple[int, int] | None:
    """The size that the chunk announces; None for a chunk that has none."""
    head = data[body : body + 24]
    if name == b"VP8X" and len(head) >= 10:
        return _int24(head, 4) + 1, _int24(head, 7) + 1
    if name == b"ANMF" and len(head) >= 12:
        return _int24(head, 6) + 1, _int24(head, 9) + 1
    if name == b"VP8 " and head[3:6] == b"\x9d\x01\x2a" and len(head) >= 10:
        width, height = struct.unpack_from("<HH", head, 6)
        return width & 0x3FFF, height & 0x3FFF
    if name == b"VP8L" and head[:1] == b"\x2f" and len(head) >= 5:
        (bits,) = struct.unpack_from("<I", head, 1)
        return (bits & 0x3FFF) + 1, ((bits >> 14) & 0x3FFF) + 1
    return None


def _int24(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 3], "little")
