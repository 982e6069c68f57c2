"""BMP: the header is read for the size, and for where the pixel data must end."""

from __future__ import annotations

import struct

from service.images.limits import ImageLimits
from service.images.prepared import Prepared
from service.images.refusal import truncated, undecodable

_KIND = "BMP"
_RAW, _RLE8, _RLE4, _BITFIELDS = 0, 1, 2, 3
# Run-length data is unpacked in Python, byte by byte; this keeps the worst file under a second or two.
_MAX_RLE_PIXELS = 4 * 2**20


def prepare(data: bytes, limits: ImageLimits) -> Prepared:
    """Read and check a BMP file.

    Raises:
        ImageError: `image_too_large`, `image_truncated` or `image_undecodable`.
    """
    if len(data) < 26:
        raise truncated(_KIND, "inside its header")
    offset, header_size = struct.unpack_from("<II", data, 10)
    if header_size == 12:
        width, height, planes, depth = struct.unpack_from("<HHHH", data, 18)
        compression, colours = _RAW, 0
    else:
        if len(data) < 14 + max(header_size, 40):
            raise truncated(_KIND, "inside its header")
        width, height, planes, depth, compression = struct.unpack_from("<iiHHI", data, 18)
        (colours,) = struct.unpack_from("<I", data, 46)
    rows = abs(height)  # a negative height: the rows run from the top
    limits.check_pixels(max(width, 0), rows)
    if width <= 0 or not rows or depth not in {1, 4, 8, 16, 24, 32} or planes != 1:
        raise undecodable(_KIND, "its header holds values that the format does not have")
    if compression not in {_RAW, _RLE8, _RLE4, _BITFIELDS}:
        raise undecodable(_KIND, f"its compression (number {compression}) is not supported")
    if offset > len(data):
        raise truncated(_KIND, "before its pixel data")
    if compression in {_RLE8, _RLE4}:
        return _run_length(data, width, rows, offset or 14 + header_size + 4 * (colours or 1 << depth))
    stride = (width * depth + 31) // 32 * 4
    palette = 0
    if depth <= 8:
        entries = min(colours or 1 << depth, 1 << depth)
        palette = entries * (3 if header_size == 12 else 4)
    masks = 12 if compression == _BITFIELDS and header_size == 40 else 0
    start = offset or 14 + header_size + palette + masks
    end = start + stride * rows
    if int.from_bytes(data[2:6], "little") < end:
        # The padding behind the last row draws nothing, and some writers leave it out.
        end += (width * depth + 7) // 8 - stride
    if end > len(data):
        raise truncated(_KIND, "inside its pixel data")
    return Prepared(width=width, height=rows, payload=data)


def _run_length(data: bytes, width: int, rows: int, start: int) -> Prepared:
    if width * rows > _MAX_RLE_PIXELS:
        # Not a limit on pictures but on this rare encoding of them, hence not `image_too_large`.
        raise undecodable(_KIND, f"run-length data is read up to {_MAX_RLE_PIXELS:,} pixels; send it uncompressed")
    # Two bytes a pixel and two a row are the most that an honest encoder needs.
    return Prepared(width=width, height=rows, payload=data[: start + 2 * (width + 2) * rows + 1024])
