"""TIFF: the first directory is read, judged, and rewritten with only the tags that draw.

The rewritten directory is appended to the file and the header is pointed at it: later pages, EXIF and maker
notes are then out of the decoder's reach, while all offsets stay as they were.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from service.images.limits import ImageLimits
from service.images.prepared import Prepared
from service.images.refusal import truncated, undecodable, unsupported
from service.images.sniff import ACCEPTED_TEXT

_KIND = "TIFF"
_WIDTH, _HEIGHT, _BITS, _COMPRESSION, _PHOTOMETRIC = 256, 257, 258, 259, 262
_STRIP_OFFSETS, _ORIENTATION, _SAMPLES, _ROWS_PER_STRIP, _STRIP_SIZES = 273, 274, 277, 278, 279
_PLANAR, _TILE_WIDTH, _TILE_HEIGHT, _TILE_OFFSETS, _TILE_SIZES = 284, 322, 323, 324, 325
_SUBSAMPLING, _ICC = 530, 34675
_YCBCR = 6
# What draws, beyond the above: FillOrder, T4Options, T6Options, Predictor, ColorMap, InkSet, ExtraSamples,
# SampleFormat, JPEGTables, YCbCrCoefficients, YCbCrPositioning, ReferenceBlackWhite.
_DRAWING = frozenset(
    {
        _WIDTH,
        _HEIGHT,
        _BITS,
        _COMPRESSION,
        _PHOTOMETRIC,
        _STRIP_OFFSETS,
        _SAMPLES,
        _ROWS_PER_STRIP,
        _STRIP_SIZES,
    }
    | {_PLANAR, _TILE_WIDTH, _TILE_HEIGHT, _TILE_OFFSETS, _TILE_SIZES, _SUBSAMPLING}
    | {266, 292, 293, 317, 320, 332, 338, 339, 347, 529, 531, 532}
)
_RAW = 1
_COMPRESSIONS = {_RAW: "none", 2: "CCITT", 3: "G3", 4: "G4", 5: "LZW", 7: "JPEG", 8: "deflate"} | {
    32773: "PackBits",
    32946: "deflate",
}
_TYPES = {
    1: "u1",
    2: "u1",
    3: "u2",
    4: "u4",
    6: "i1",
    7: "u1",
    8: "i2",
    9: "i4",
    13: "u4",
    16: "u8",
    18: "u8",
}
_SIZES = {**{kind: int(name[1]) for kind, name in _TYPES.items()}, 5: 8, 10: 8, 11: 4, 12: 8, 17: 8}
# Each strip costs the decoder a set-up; one row a strip is common, so this is also a limit on the height
# then.
_MAX_STRIPS = 65_536
_MAX_PROFILE_BYTES = 4 * 2**20
# A decoder's buffer for one strip or tile, in bytes for each pixel that the limit allows.
_STRIP_BYTES_PER_PIXEL = 4


@dataclass(frozen=True)
class _Directory:
    """The first directory of a file."""

    data: bytes
    order: str
    big: bool
    entries: dict[int, tuple[int, int, int]]  # tag: (type, count, offset of the values)
    raw: dict[int, bytes]  # tag: the entry as it stands

    def values(self, tag: int, limit: int = 64) -> npt.NDArray[np.int64] | None:
        """The integer values of `tag`, as far as there are no more than `limit`; None where it is absent."""
        entry = self.entries.get(tag)
        if entry is None:
            return None
        kind, count, at = entry
        if kind not in _TYPES or not count:
            raise undecodable(_KIND, f"tag {tag} has no whole number in it")
        if count > limit:
            raise undecodable(_KIND, f"tag {tag} has {count:,} values")
        kind_of = np.dtype(self.order + _TYPES[kind])
        return np.frombuffer(self.data, kind_of, count, at).astype(np.int64)

    def value(self, tag: int, default: int) -> int:
        found = self.values(tag)
        return default if found is None else int(found[0])


def prepare(data: bytes, limits: ImageLimits) -> Prepared:
    """Read and check the first page of a TIFF or BigTIFF file.

    Raises:
        ImageError: `image_too_large`, `image_truncated`, `image_undecodable`, or `unsupported_media_type`
            for a compression that is not accepted.
    """
    page = _read_directory(data)
    width, height = page.value(_WIDTH, 0), page.value(_HEIGHT, 0)
    limits.check_pixels(max(width, 0), max(height, 0))
    if width <= 0 or height <= 0:
        raise undecodable(_KIND, "its width or height is zero or missing")
    compression = page.value(_COMPRESSION, _RAW)
    if compression not in _COMPRESSIONS:
        raise unsupported(f"a TIFF picture with compression number {compression}", ACCEPTED_TEXT)
    bits = page.values(_BITS)
    depth = 1 if bits is None else int(bits.max())
    _check_strips(page, width, height, depth, compression, limits)
    icc = None
    if _ICC in page.entries:
        kind, count, at = page.entries[_ICC]
        icc = data[at : at + count] if _SIZES[kind] == 1 and count <= _MAX_PROFILE_BYTES else None
    turn = page.value(_ORIENTATION, 1) if page.entries.get(_ORIENTATION, (0, 0, 0))[0] in _TYPES else 1
    return Prepared(
        width=width,
        height=height,
        payload=_rewrite(page),
        orientation=turn if 1 <= turn <= 8 else 1,
        icc=icc,
        # The decoder inverts "0 is white" up to 8 bits a sample itself, and not above.
        inverted=page.value(_PHOTOMETRIC, 1) == 0 and depth > 8,
        grey_bits=12 if depth == 12 else 16,
    )


def _read_directory(data: bytes) -> _Directory:
    order = "<" if data[:2] == b"II" else ">"
    big = data[2:4] in {b"+\0", b"\0+"}
    if big:
        if struct.unpack_from(order + "HH", data, 4) != (8, 0):
            raise undecodable(_KIND, "its header holds values that the format does not have")
        (start,) = struct.unpack_from(order + "Q", data, 8)
    else:
        (start,) = struct.unpack_from(order + "I", data, 4)
    head, size = ("Q", 20) if big else ("H", 12)
    first = start + struct.calcsize("<" + head)
    if first > len(data):
        raise truncated(_KIND, "before its directory")
    (count,) = struct.unpack_from(order + head, data, start)
    if not 0 < count <= 65_535:
        raise undecodable(_KIND, "its directory is damaged")
    if first + count * size > len(data):
        raise truncated(_KIND, "inside its directory")
    inline = 8 if big else 4
    entries: dict[int, tuple[int, int, int]] = {}
    raw: dict[int, bytes] = {}
    for at in range(first, first + count * size, size):
        tag, kind, values = struct.unpack_from(order + ("HHQ" if big else "HHI"), data, at)
        wanted = tag in _DRAWING
        if (not wanted and tag not in {_ORIENTATION, _ICC}) or tag in entries:
            continue
        where = at + size - inline
        length = _SIZES.get(kind, 0) * values
        if not length:
            if wanted:
                raise undecodable(_KIND, f"tag {tag} is damaged")
            continue
        if length > inline:
            (where,) = struct.unpack_from(order + ("Q" if big else "I"), data, where)
        if where + length > len(data):
            if wanted:
                raise truncated(_KIND, f"before the values of tag {tag}")
            continue
        entries[tag] = (kind, values, where)
        raw[tag] = data[at : at + size]
    return _Directory(data, order, big, entries, raw)


def _check_strips(page: _Directory, width: int, height: int, depth: int, compression: int, limits: ImageLimits) -> None:
    """See that all strips or tiles lie within the file and that none needs an absurd buffer."""
    samples = page.value(_SAMPLES, 1)
    if not 1 <= samples <= 8 or not 1 <= depth <= 64:
        raise undecodable(_KIND, "its samples are of a kind that cannot be read")
    tiled = _STRIP_OFFSETS not in page.entries
    offsets = page.values(_TILE_OFFSETS if tiled else _STRIP_OFFSETS, _MAX_STRIPS)
    sizes = page.values(_TILE_SIZES if tiled else _STRIP_SIZES, _MAX_STRIPS)
    if offsets is None:
        raise undecodable(_KIND, "there is no picture data in it")
    across = page.value(_TILE_WIDTH, 0) if tiled else width
    down = page.value(_TILE_HEIGHT, 0) if tiled else min(page.value(_ROWS_PER_STRIP, height), height)
    if across <= 0 or down <= 0:
        raise undecodable(_KIND, "its strips or tiles have no size")
    planes = samples if page.value(_PLANAR, 1) == 2 else 1
    if tiled and across * down > max(4 * width * height, 2**22):
        raise undecodable(_KIND, "its tiles are far larger than the picture")
    row_bytes = (across * depth * samples // planes + 7) // 8
    if row_bytes * down > _STRIP_BYTES_PER_PIXEL * limits.max_pixels:
        raise undecodable(_KIND, "one strip of it needs too much memory")
    needed = -(-width // across) * -(-height // down) * planes
    if len(offsets) < needed:
        raise undecodable(_KIND, "some of its strips or tiles are not listed")
    offsets = offsets[:needed]
    if compression == _RAW:
        subsampling = page.values(_SUBSAMPLING)
        if page.value(_PHOTOMETRIC, 1) == _YCBCR and (subsampling is None or subsampling.max() > 1):
            raise undecodable(_KIND, "uncompressed pictures with fewer colour than grey samples are not supported")
        sizes = np.full(needed, row_bytes * down)
        if not tiled:  # the last strip of each plane may be lower
            last = height - (-(-height // down) - 1) * down
            sizes[needed // planes - 1 :: needed // planes] = row_bytes * last
    elif sizes is None or len(sizes) < needed:
        raise undecodable(_KIND, "the sizes of its strips are missing")
    sizes = sizes[:needed]
    if offsets.min() < 0 or sizes.min() < 0 or (sizes == 0).all():
        raise undecodable(_KIND, "its strips lie outside the file")
    # Each at most 2**63 - 1, so the sum must be kept from wrapping round.
    if (sizes > len(page.data) - np.minimum(offsets, len(page.data))).any():
        raise truncated(_KIND, "inside its pixel data")


def _rewrite(page: _Directory) -> bytes:
    """The file with one directory, behind everything else, that holds the drawing tags alone."""
    tags = sorted(tag for tag in page.raw if tag in _DRAWING)
    start = (len(page.data) + 7) // 8 * 8
    count, link = ("Q", "Q") if page.big else ("H", "I")
    head = page.data[:8] + struct.pack(page.order + "Q", start) if page.big else page.data[:4]
    if not page.big:
        head += struct.pack(page.order + "I", start)
    return b"".join(
        (
            head,
            page.data[len(head) :],
            bytes(start - len(page.data)),
            struct.pack(page.order + count, len(tags)),
            *(page.raw[tag] for tag in tags),
            struct.pack(page.order + link, 0),
        )
    )
