"""The directories of a TIFF or BigTIFF file: reading one, and writing one with only the tags that draw."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from service.errors import Code, ImageError
from service.images.refusal import truncated, undecodable

KIND = "TIFF"
WIDTH, HEIGHT, BITS, COMPRESSION, PHOTOMETRIC = 256, 257, 258, 259, 262
STRIP_OFFSETS, ORIENTATION, SAMPLES, ROWS_PER_STRIP, STRIP_SIZES = 273, 274, 277, 278, 279
PLANAR, TILE_WIDTH, TILE_HEIGHT, TILE_OFFSETS, TILE_SIZES = 284, 322, 323, 324, 325
SUBSAMPLING, SAMPLE_FORMAT, COLOR_MAP, ICC = 530, 339, 320, 34675
PAGE_KIND, SUB_DIRECTORIES, DNG_VERSION = 254, 330, 50706
_LAYOUT = {WIDTH, HEIGHT, STRIP_OFFSETS, ROWS_PER_STRIP, STRIP_SIZES, TILE_WIDTH, TILE_HEIGHT, TILE_OFFSETS, TILE_SIZES}
_SAMPLING = {BITS, COMPRESSION, PHOTOMETRIC, SAMPLES, PLANAR, SUBSAMPLING, SAMPLE_FORMAT}
# FillOrder, T4Options, T6Options, Predictor, ColorMap, InkSet, ExtraSamples, JPEGTables,
# YCbCrCoefficients, YCbCrPositioning, ReferenceBlackWhite
_DRAWING = frozenset(_LAYOUT | _SAMPLING | {266, 292, 293, 317, 320, 332, 338, 347, 529, 531, 532})

# What else is looked at.
_TELLING = frozenset({ORIENTATION, ICC, PAGE_KIND, SUB_DIRECTORIES, DNG_VERSION})

# Value types that hold whole numbers, and the bytes that each value of a type takes.
_WHOLE = {1: "u1", 2: "u1", 3: "u2", 4: "u4", 6: "i1", 7: "u1", 8: "i2", 9: "i4", 13: "u4", 16: "u8", 18: "u8"}
_SIZES = {**{kind: int(name[1]) for kind, name in _WHOLE.items()}, 5: 8, 10: 8, 11: 4, 12: 8, 17: 8}

# Each strip costs the decoder a set-up. One row a strip is common, so this also bounds the height then.
MAX_STRIPS = 65_536
_MAX_ENTRIES = 4096
_MAX_PAGES = 256


@dataclass(frozen=True)
class Directory:
    """One directory: one page's tags, as far as they matter."""

    data: bytes
    order: str
    big: bool
    entries: dict[int, tuple[int, int, int]]  # tag: (type, count, offset of the values); all within the data
    raw: dict[int, bytes]  # tag: the entry as it stands
    next: int  # where the next directory is; 0: there is none

    def values(self, tag: int, limit: int = 64) -> npt.NDArray[np.int64] | None:
        """The whole numbers in `tag`, of which there may be `limit`; None where the tag is absent.

        Raises:
            ImageError: `image_undecodable` for other values or more of them.
        """
        entry = self.entries.get(tag)
        if entry is None:
            return None
        kind, count, at = entry
        if kind not in _WHOLE:
            raise undecodable(KIND, f"tag {tag} has no whole number in it")
        if count > limit:
            raise undecodable(KIND, f"tag {tag} has {count:,} values")
        return np.frombuffer(self.data, np.dtype(self.order + _WHOLE[kind]), count, at).astype(np.int64)

    def value(self, tag: int, default: int) -> int:
        """The first whole number in `tag`, or `default` where the tag is absent."""
        found = self.values(tag)
        return default if found is None else int(found[0])

    def optional_value(self, tag: int, default: int) -> int:
        """As `value`, with `default` also where the tag is damaged."""
        kind = self.entries.get(tag, (0, 0, 0))[0]
        return self.value(tag, default) if kind in _WHOLE and self.entries[tag][1] == 1 else default

    def blob(self, tag: int, limit: int) -> bytes | None:
        """The bytes in `tag`; None where it is absent, of another type, or has more than `limit` bytes."""
        kind, count, at = self.entries.get(tag, (0, 0, 0))
        return self.data[at : at + count] if _SIZES.get(kind) == 1 and count <= limit else None

    def pieces(self) -> tuple[npt.NDArray[np.int64] | None, npt.NDArray[np.int64] | None]:
        """(offsets, sizes) of the strips or tiles; None for what the file does not say."""
        tiled = STRIP_OFFSETS not in self.entries
        return (
            self.values(TILE_OFFSETS if tiled else STRIP_OFFSETS, MAX_STRIPS),
            self.values(TILE_SIZES if tiled else STRIP_SIZES, MAX_STRIPS),
        )


def read_directory(data: bytes, start: int | None = None) -> Directory:
    """The directory at `start`, by default the first one; `data` has at least 16 bytes.

    Raises:
        ImageError: `image_truncated` where it or values of a drawing tag lie outside the data, else
            `image_undecodable`.
    """
    order = "<" if data[:2] == b"II" else ">"
    big = data[2:4] in {b"+\0", b"\0+"}
    if big and struct.unpack_from(order + "HH", data, 4) != (8, 0):
        raise undecodable(KIND, "its header holds values that the format does not have")
    link, head, size = (order + "Q", order + "Q", 20) if big else (order + "I", order + "H", 12)
    if start is None:
        (start,) = struct.unpack_from(link, data, 8 if big else 4)
    first = start + struct.calcsize(head)
    if first > len(data):
        raise truncated(KIND, "before its directory")
    (count,) = struct.unpack_from(head, data, start)
    if not 0 < count <= _MAX_ENTRIES:
        raise undecodable(KIND, "its directory is damaged")
    end = first + count * size
    if end + struct.calcsize(link) > len(data):
        raise truncated(KIND, "inside its directory")
    entries: dict[int, tuple[int, int, int]] = {}
    raw: dict[int, bytes] = {}
    for at in range(first, end, size):
        tag, kind, values = struct.unpack_from(order + ("HHQ" if big else "HHI"), data, at)
        draws = tag in _DRAWING
        if tag in entries or not (draws or tag in _TELLING):
            continue
        length = _SIZES.get(kind, 0) * values
        where = at + size - struct.calcsize(link)
        if length > struct.calcsize(link):
            (where,) = struct.unpack_from(link, data, where)
        if length and where + length <= len(data):
            entries[tag] = (kind, values, where)
            raw[tag] = data[at : at + size]
        elif draws:
            raise truncated(KIND, "before its values") if length else undecodable(KIND, f"tag {tag} is damaged")
    return Directory(data, order, big, entries, raw, struct.unpack_from(link, data, end)[0])


def check_later_pages(first: Directory) -> None:
    """See that the later pages, which nobody decodes, lie within the file too: else it was cut.

    Raises:
        ImageError: `image_truncated`.
    """
    seen: set[int] = set()
    start = first.next
    while start and start not in seen and len(seen) < _MAX_PAGES:
        seen.add(start)
        try:
            page = read_directory(first.data, start)
            offsets, sizes = page.pieces()
        except ImageError as error:
            if error.code is Code.IMAGE_TRUNCATED:
                raise
            return  # a damaged later page is no reason to refuse the first
        if offsets is not None and sizes is not None and len(offsets) == len(sizes):
            check_inside(first.data, offsets, sizes)
        start = page.next


def check_inside(data: bytes, offsets: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]) -> None:
    """See that all pieces lie within `data`.

    Raises:
        ImageError: `image_truncated`, or `image_undecodable` for negative offsets or sizes.
    """
    if offsets.min() < 0 or sizes.min() < 0:
        raise undecodable(KIND, "its strips lie outside the file")
    # The sums could wrap round, so the room behind each offset is compared instead.
    if (sizes > len(data) - np.minimum(offsets, len(data))).any():
        raise truncated(KIND, "inside its pixel data")


def with_wide_palette(page: Directory) -> Directory:
    """The page with its palette in 16 bits a value, as the format has it.

    Some old programs wrote 8-bit values; libtiff's own tools take a palette with no larger value for such a one.
    """
    values = page.values(COLOR_MAP, 3 * 2**16)
    if values is None or values.max() > 255 or page.entries[COLOR_MAP][0] != 3:
        return page
    at = page.entries[COLOR_MAP][2]
    wide = (values * 257).astype(page.order + "u2").tobytes()
    return replace(page, data=page.data[:at] + wide + page.data[at + len(wide) :])


def drawing_alone(page: Directory) -> bytes:
    """The file with one directory, behind everything else, that holds the page's drawing tags alone."""
    tags = sorted(tag for tag in page.raw if tag in _DRAWING)
    start = (len(page.data) + 7) // 8 * 8
    count, link = (page.order + "Q", page.order + "Q") if page.big else (page.order + "H", page.order + "I")
    head = page.data[: 8 if page.big else 4] + struct.pack(link, start)
    return b"".join(
        (
            head,
            memoryview(page.data)[len(head) :],
            bytes(start - len(page.data)),
            struct.pack(count, len(tags)),
            *(page.raw[tag] for tag in tags),
            struct.pack(link, 0),
        )
    )
