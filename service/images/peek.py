"""A picture's format and stored size from the first bytes of its file: for guessing what decoding will cost.

Nothing is checked, and what a file hides deeper (TIFF, HEIC, AVIF) is not looked for: the decoder does both, later and
in a thread. Takes microseconds whatever the bytes are.
"""

from __future__ import annotations

import struct

from service.images.sniff import Format

# A camera's JPEG has some ten segments in front of its frame header.
_MOST_SEGMENTS = 64


def peek(data: bytes) -> tuple[str, tuple[int, int] | None]:
    """The format ("" where it is none that is known here) and (width, height) in pixels, None where it is not told."""
    try:
        if data.startswith(b"\xff\xd8\xff"):
            return Format.JPEG, _jpeg_size(data)
        if data.startswith(b"\x89PNG\r\n\x1a\n"):
            return Format.PNG, struct.unpack_from(">II", data, 16)
        if data.startswith((b"GIF87a", b"GIF89a")):
            return Format.GIF, struct.unpack_from("<HH", data, 6)
        if data.startswith(b"BM"):
            width, height = struct.unpack_from("<ii", data, 18)
            return Format.BMP, (abs(width), abs(height))
        if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
            return Format.WEBP, _webp_size(data)
    except struct.error:
        return "", None
    if data[4:8] == b"ftyp":
        return Format.AVIF if b"avif" in data[8:32] else Format.HEIC, None
    return Format.TIFF if data.startswith((b"II", b"MM")) else "", None


def _jpeg_size(data: bytes) -> tuple[int, int] | None:
    """From the frame header (ITU-T T.81, B.2.2): SOF0 to SOF15 without DHT, JPG and DAC."""
    at = 2
    for _ in range(_MOST_SEGMENTS):
        lead, marker, length = struct.unpack_from(">BBH", data, at)
        if lead != 0xFF:
            return None
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack_from(">HH", data, at + 5)
            return width, height
        at += 2 + length
    return None


def _webp_size(data: bytes) -> tuple[int, int] | None:
    """From the first chunk (RFC 9649): lossy, lossless or extended."""
    if data[12:16] == b"VP8X":
        return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
    if data[12:16] == b"VP8L":
        (bits,) = struct.unpack_from("<I", data, 21)
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    width, height = struct.unpack_from("<HH", data, 26)
    return width & 0x3FFF, height & 0x3FFF
