"""JPEG: the markers are walked to the end of the first picture, which tells a whole file from a cut one.

Decoders fill in missing data silently: a progressive file cut between scans and closed with an end marker decodes
without an error, and so does a file whose tail was lost before its end marker. So the end marker is demanded, and all
scans and restart markers are counted; data missing inside a scan is the decoder's to find.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field

from service.images import exif
from service.images.limits import ImageLimits
from service.images.prepared import Prepared
from service.images.refusal import truncated, undecodable

_KIND = "JPEG"
# The next marker after entropy-coded data: not a stuffed zero, not a restart marker, not a fill byte.
_MARKER = re.compile(rb"\xff[\x01-\xcf\xd8-\xfe]")
_RESTARTS = tuple(bytes((0xFF, marker)) for marker in range(0xD0, 0xD8))
_FILL = re.compile(rb"\xff+")

# Ordinary files have tens of segments; the longest known (depth maps in extended XMP) a few hundred.
_MAX_SEGMENTS = 4096
# Each scan of a progressive file passes over the whole picture and may be a handful of bytes: the work is
# scans x pixels. Ordinary progressive files have 10 to 14 scans; 64 megapixels in 20 scans stay within the
# budget.
_MAX_SCANS = 200
_MAX_SCAN_PIXELS = 20 * 64 * 2**20

_SOI, _EOI, _SOS, _DRI, _DHT, _DAC, _JPG = 0xD8, 0xD9, 0xDA, 0xDD, 0xC4, 0xCC, 0xC8
_APP0, _APP1, _APP2, _APP14, _APP15, _COM = 0xE0, 0xE1, 0xE2, 0xEE, 0xEF, 0xFE
_SOF = frozenset(range(0xC0, 0xD0)) - {_DHT, _DAC, _JPG}
_PROGRESSIVE = frozenset({0xC2, 0xC6, 0xCA, 0xCE})
_STANDALONE = frozenset({0x01, *range(0xD0, 0xD8)})
_ICC_PREFIX = b"ICC_PROFILE\0"


@dataclass
class _Layout:
    """What the walk has found so far."""

    pieces: list[bytes] = field(default_factory=lambda: [b"\xff\xd8"])
    width: int = 0
    height: int = 0
    progressive: bool = False
    # component -> its horizontal and vertical sampling
    components: dict[int, tuple[int, int]] = field(default_factory=dict)
    # component -> for each of its 64 coefficients the lowest bit sent so far, or None
    bits: dict[int, list[int | None]] = field(default_factory=dict)
    scans: int = 0
    restart_interval: int = 0
    exif: bytes = b""
    icc: dict[int, bytes] = field(default_factory=dict)
    icc_count: int = 0
    adobe: bool = False


def prepare(data: bytes, limits: ImageLimits) -> Prepared:
    """Read and check a JPEG file; the payload is the first picture alone, without metadata.

    Raises:
        ImageError: `image_too_large`, `image_truncated` (the end marker included) or `image_undecodable`.
    """
    layout = _Layout()
    end = _walk(data, layout, limits)
    if not layout.scans:
        raise undecodable(_KIND, "there is no picture data in it" if end else "its header is incomplete")
    if any(bit != 0 for bits in layout.bits.values() for bit in bits):
        # The standard lets a progressive file leave out the last bits, but no known encoder does: it was cut.
        raise truncated(_KIND, "before all its scans")
    layout.pieces.append(b"\xff\xd9")
    return Prepared(
        width=layout.width,
        height=layout.height,
        payload=b"".join(layout.pieces),
        orientation=exif.orientation(layout.exif),
        icc=_profile(layout),
        inverted=len(layout.components) == 4 and not layout.adobe,
    )


def padded(payload: bytes) -> bytes:
    """`payload` with more entropy-coded data before its end marker.

    A decoder ignores it where the picture was complete and draws with it where data was missing, so that
    comparing the two pictures tells which it was.
    """
    return payload[:-2] + bytes((at * 151 + 89) % 251 for at in range(4096)) + payload[-2:]


def _walk(data: bytes, layout: _Layout, limits: ImageLimits) -> int:
    """Collect what draws the first picture; returns the offset behind its end marker."""
    at = 2
    for _ in range(_MAX_SEGMENTS):
        at = data.find(b"\xff", at)  # what lies between segments is junk, as decoders see it
        fill = _FILL.match(data, at) if at >= 0 else None
        if fill is None or fill.end() >= len(data):
            raise truncated(_KIND, "inside its pixel data" if layout.scans else "before its pixel data")
        at = fill.end()
        marker = data[at]
        at += 1
        if marker == 0 or marker in _STANDALONE:
            continue
        if marker == _EOI:
            return at
        if marker == _SOI or marker < 0xC0:
            raise undecodable(_KIND, "there is a marker where none may be")
        length = int.from_bytes(data[at : at + 2], "big")
        if at + max(length, 2) > len(data):
            raise truncated(_KIND, "inside a header")
        if length < 2:
            raise undecodable(_KIND, "a segment has an impossible length")
        body = data[at + 2 : at + length]
        after = at + length
        if marker == _SOS:
            found = _MARKER.search(data, after)
            if found is None:
                raise truncated(_KIND, "inside its pixel data, before its end marker")
            _read_scan(body, layout)
            _check_restarts(data, after, found.start(), body, layout)
            after = found.start()
        elif marker == _DRI and len(body) >= 2:
            layout.restart_interval = int.from_bytes(body[:2], "big")
        elif marker in _SOF:
            _read_frame(marker, body, layout, limits)
        if _draws(marker, body, layout):
            layout.pieces.append(data[at - 2 : after])
        at = after
    raise undecodable(_KIND, f"it has more than {_MAX_SEGMENTS} segments")


def _draws(marker: int, body: bytes, layout: _Layout) -> bool:
    """Whether the segment takes part in drawing; what metadata is of use is put aside."""
    if marker == _APP1:
        # Some editors leave an empty block in front of the real one.
        if body.startswith(exif.EXIF_PREFIX) and len(body) > len(layout.exif) and not _has_content(layout.exif):
            layout.exif = body
        return False
    if marker == _APP2:
        if body.startswith(_ICC_PREFIX) and len(body) > 14:
            layout.icc.setdefault(body[12], body[14:])
            layout.icc_count = body[13]
        return False
    if marker == _APP14:
        adobe = body.startswith(b"Adobe") and len(body) >= 12
        layout.adobe = layout.adobe or adobe
        return adobe
    if marker == _APP0:
        return body.startswith(b"JFIF\0")  # it decides between YCbCr and RGB
    return not (marker == _COM or _APP0 <= marker <= _APP15)


def _has_content(block: bytes) -> bool:
    """Whether an Exif block has room for a header and an entry."""
    return len(block) > len(exif.EXIF_PREFIX) + 8


def _read_frame(marker: int, body: bytes, layout: _Layout, limits: ImageLimits) -> None:
    if layout.components:
        raise undecodable(_KIND, "it has two frame headers")
    if len(body) < 6 or len(body) < 6 + 3 * body[5]:
        raise undecodable(_KIND, "its frame header is too short")
    precision, layout.height, layout.width, count = struct.unpack_from(">BHHB", body)
    limits.check_pixels(layout.width, layout.height)
    if not layout.width or not layout.height:
        raise undecodable(_KIND, "its width or height is zero")
    if precision != 8:
        raise undecodable(_KIND, f"it has {precision} bits a sample, and only 8 can be read")
    layout.components = {body[at]: (body[at + 1] >> 4, body[at + 1] & 15) for at in range(6, 6 + 3 * count, 3)}
    if len(layout.components) != count or not all(all(each) for each in layout.components.values()):
        raise undecodable(_KIND, "its frame header is damaged")
    layout.bits = {each: [None] * 64 for each in layout.components}
    layout.progressive = marker in _PROGRESSIVE


def _read_scan(body: bytes, layout: _Layout) -> None:
    if not layout.components:
        raise undecodable(_KIND, "pixel data comes before the frame header")
    count = body[0] if body else 0
    if len(body) < 4 + 2 * count or not 1 <= count <= 4:
        raise undecodable(_KIND, "a scan header is damaged")
    layout.scans += 1
    if layout.scans > _MAX_SCANS or layout.scans * layout.width * layout.height > max(
        _MAX_SCAN_PIXELS, layout.width * layout.height
    ):
        raise undecodable(_KIND, "it has too many scans for its size")
    first, last, approximation = body[1 + 2 * count : 4 + 2 * count]
    if not layout.progressive:
        first, last, approximation = 0, 63, 0
    if first > last or last > 63:
        raise undecodable(_KIND, "a scan header is damaged")
    for each in range(count):
        bits = layout.bits.get(body[1 + 2 * each])
        if bits is None:
            raise undecodable(_KIND, "a scan names a component that the picture does not have")
        bits[first : last + 1] = [approximation & 15] * (last + 1 - first)


def _check_restarts(data: bytes, start: int, end: int, scan: bytes, layout: _Layout) -> None:
    """Compare the restart markers of a scan with how many its size asks for: a cut one has fewer."""
    if not layout.restart_interval:
        return
    across, down = (max(each[axis] for each in layout.components.values()) for axis in (0, 1))
    unit = (8 * across, 8 * down)
    if scan[0] == 1:  # a scan of one component counts that component's blocks
        own = layout.components[scan[1]]
        unit = (-(-8 * across // own[0]), -(-8 * down // own[1]))
    units = -(-layout.width // unit[0]) * -(-layout.height // unit[1])
    if sum(data.count(marker, start, end) for marker in _RESTARTS) < -(-units // layout.restart_interval) - 1:
        raise truncated(_KIND, "inside its pixel data, and an end marker was put behind it")


def _profile(layout: _Layout) -> bytes | None:
    """The colour profile put together from its numbered parts, or None where a part is missing."""
    if not layout.icc or any(number not in layout.icc for number in range(1, layout.icc_count + 1)):
        return None
    return b"".join(layout.icc[number] for number in range(1, layout.icc_count + 1)) or None
