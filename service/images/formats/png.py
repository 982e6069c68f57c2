"""PNG and APNG: the chunks are walked, and the decoder gets only those that draw.

Compressed text and profile chunks can be bombs, and general decoders unpack them while opening the file. Here
they are dropped unread; a profile is unpacked under a bound and given up where it is larger.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

from service.images import exif
from service.images.limits import ImageLimits
from service.images.prepared import Prepared
from service.images.refusal import truncated, undecodable

_KIND = "PNG"
_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_USEFUL = frozenset({b"tRNS", b"eXIf", b"iCCP"})
_BEFORE_PIXELS = frozenset({b"tRNS", b"iCCP"})
_PALETTE = 3
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
# The passes of an interlaced picture: first column and row, and the steps.
_ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
# Larger than any profile in use (big CMYK ones have about 3 MiB, and PNG has no CMYK).
MAX_PROFILE_BYTES = 4 * 2**20
# 20 MiB in 8 KiB pieces, as many encoders write them, are 2,560 chunks; some write one a row.
_MAX_CHUNKS = 200_000
_DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}


def prepare(data: bytes, limits: ImageLimits) -> Prepared:
    """Read and check a PNG file; of an APNG the payload is the default picture.

    Raises:
        ImageError: `image_too_large`, `image_truncated` (the end chunk included) or `image_undecodable`.
    """
    width, height, depth, colour = _read_header(data, limits)
    pixels: list[memoryview] = []
    extras: dict[bytes, bytes] = {}
    for name, start, end in _chunks(data):
        if name == b"IDAT":
            _check_sum(data, start, end)
            pixels.append(memoryview(data)[start:end])
        elif name == b"PLTE":
            _check_sum(data, start, end)
            extras.setdefault(name, data[start + 8 : end - 4])
        elif name == b"IHDR" and start != len(_SIGNATURE):
            raise undecodable(_KIND, "it has two headers")
        elif name in _USEFUL and name not in extras and not (pixels and name in _BEFORE_PIXELS):
            extras[name] = data[start + 8 : end - 4] if _intact(data, start, end) else b""
    _check_sum(data, len(_SIGNATURE), 33)
    if not pixels:
        raise undecodable(_KIND, "there is no picture data in it")
    key = extras.get(b"tRNS", b"")
    header: list[bytes] = [data[:33]]
    if colour == _PALETTE:
        if not extras.get(b"PLTE"):
            raise undecodable(_KIND, "it has no palette")
        header.append(_chunk(b"PLTE", extras[b"PLTE"]))
        if key:
            header.append(_chunk(b"tRNS", key[:256]))
    return Prepared(
        width=width,
        height=height,
        payload=b"".join((*header, *pixels, _chunk(b"IEND", b""))),
        orientation=exif.orientation(extras.get(b"eXIf", b"")),
        icc=_unpack_profile(extras.get(b"iCCP", b"")),
        transparent=_transparent(key, depth, colour),
        suspect=bool(data[28]),  # interlaced: what is missing is spread over the picture
    )


def lacks_pixels(payload: bytes) -> bool:
    """Whether the pixel data of a payload unpacks to less than the picture needs; the decoder does not tell."""
    width, height, depth, colour, _, _, interlace = struct.unpack_from(">IIBBBBB", payload, 16)
    bits = depth * _CHANNELS[colour]
    passes = _ADAM7 if interlace else ((0, 0, 1, 1),)
    missing = 0
    for x, y, across, down in passes:
        columns, rows = -(-(width - x) // across), -(-(height - y) // down)
        if columns > 0 and rows > 0:
            missing += rows * (1 + (columns * bits + 7) // 8)
    unpacker = zlib.decompressobj()
    for name, start, end in _chunks(payload):
        piece = payload[start + 8 : end - 4] if name == b"IDAT" else b""
        while piece and missing > 0 and not unpacker.eof:
            missing -= len(unpacker.decompress(piece, 2**20))
            piece = unpacker.unconsumed_tail
    return missing > 0


def _chunks(data: bytes) -> Iterator[tuple[bytes, int, int]]:
    """(name, start, end) of each chunk before the end chunk, all of them whole."""
    at, within = len(_SIGNATURE), "a header"
    for _ in range(_MAX_CHUNKS):
        name = data[at + 4 : at + 8]
        end = at + 12 + int.from_bytes(data[at : at + 4], "big")
        if name == b"IDAT":
            within = "its pixel data"
        if end > len(data):
            raise truncated(_KIND, f"inside {within}")
        if name == b"IEND":
            return
        yield name, at, end
        at = end
    raise undecodable(_KIND, f"it has more than {_MAX_CHUNKS:,} chunks")


def _intact(data: bytes, start: int, end: int) -> bool:
    # A memory view, so that the pixel data is not copied for it.
    return zlib.crc32(memoryview(data)[start + 4 : end - 4]) == int.from_bytes(data[end - 4 : end], "big")


def _check_sum(data: bytes, start: int, end: int) -> None:
    if not _intact(data, start, end):
        name = data[start + 4 : start + 8].decode("ascii")
        raise undecodable(_KIND, f"the check sum of its {name} chunk is wrong")


def _read_header(data: bytes, limits: ImageLimits) -> tuple[int, int, int, int]:
    """(width, height, bit depth, colour type) from the first chunk, checked."""
    if len(data) < 33:
        raise truncated(_KIND, "inside its header")
    if data[8:16] != b"\0\0\0\x0dIHDR":
        raise undecodable(_KIND, "its header is not where it must be")
    width, height, depth, colour, compression, filtering, interlace = struct.unpack_from(">IIBBBBB", data, 16)
    limits.check_pixels(width, height)
    if not width or not height:
        raise undecodable(_KIND, "its width or height is zero")
    if depth not in _DEPTHS.get(colour, ()) or compression or filtering or interlace > 1:
        raise undecodable(_KIND, "its header holds values that the format does not have")
    return width, height, depth, colour


def _transparent(key: bytes | None, depth: int, colour: int) -> int | tuple[int, int, int] | None:
    """The transparent sample value as the decoder will give it (8 bit; 16 bit for 16-bit grey)."""
    if key is None or colour not in {0, 2} or len(key) < (2 if colour == 0 else 6):
        return None
    if colour == 0:
        (grey,) = struct.unpack_from(">H", key)
        return int(grey) if depth >= 8 else int(grey) * 255 // (2**depth - 1)
    red, green, blue = struct.unpack_from(">HHH", key)
    # Of 16-bit colours the decoder keeps the high bytes.
    return (red >> 8, green >> 8, blue >> 8) if depth == 16 else (red, green, blue)


def _unpack_profile(chunk: bytes) -> bytes | None:
    """The ICC profile in an iCCP chunk; None where it is damaged or larger than any real one."""
    name_end = chunk.find(b"\0", 0, 80)
    if name_end < 0 or chunk[name_end + 1 : name_end + 2] != b"\0":
        return None
    unpacker = zlib.decompressobj()
    try:
        profile = unpacker.decompress(chunk[name_end + 2 :], MAX_PROFILE_BYTES)
    except zlib.error:
        return None
    return profile if unpacker.eof else None


def _chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
