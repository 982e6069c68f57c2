"""The ISO base media file format as far as still pictures use it (ISO/IEC 14496-12 and 23008-12)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple


class ContainerError(ValueError):
    """The container breaks its format's rules."""


class Box(NamedTuple):
    """One box: its type, where its body starts, and where the box ends (within the data, or beyond it)."""

    kind: bytes
    body: int
    end: int


@dataclass
class Item:
    """One coded or derived picture, or a piece of metadata."""

    kind: bytes = b""
    kind_at: int = 0  # where the four letters of the type stand
    properties: list[int] = field(default_factory=list)  # numbers into the list of properties, from 1
    method: int = 0
    extents: list[tuple[int, int]] = field(default_factory=list)  # (offset, length); length 0: to the end


@dataclass
class Meta:
    """What the `meta` box says."""

    primary: int = 0
    items: dict[int, Item] = field(default_factory=dict)
    properties: list[Box] = field(default_factory=list)
    tiles: dict[int, list[int]] = field(default_factory=dict)  # a grid: the items that it is made of
    idat: Box | None = None
    parts: int = 0  # how much was read so far

    def count(self) -> None:
        """Count one more part; files of a phone have some hundreds.

        Raises:
            ContainerError: there are too many.
        """
        self.parts += 1
        if self.parts > _MAX_PARTS:
            raise ContainerError("it has tens of thousands of parts")


_MAX_BOXES = 4096
_MAX_PARTS = 32_768
_MAX_ITEMS = 1024


def boxes(data: bytes, start: int, end: int) -> Iterator[Box]:
    """The boxes between two offsets; the last may claim to reach beyond `end`.

    Stops at the first thing that cannot be a box.

    Raises:
        ContainerError: there are thousands of boxes.
    """
    at = start
    for _ in range(_MAX_BOXES):
        if at + 8 > end:
            return
        size, kind, body = int.from_bytes(data[at : at + 4], "big"), data[at + 4 : at + 8], at + 8
        if size == 1:
            size, body = int.from_bytes(data[at + 8 : at + 16], "big"), at + 16
        elif size == 0:
            size = end - at
        if at + size < body:
            return
        yield Box(kind, body, at + size)
        at += size
    raise ContainerError("it has thousands of boxes")


def read_meta(data: bytes, meta: Box, out: Meta) -> None:
    """Read the `meta` box, which must lie within `data`, into `out`.

    Raises:
        ContainerError: a box in it is damaged.
    """
    for box in boxes(data, meta.body + 4, meta.end):
        if box.end > meta.end:
            raise ContainerError("a box reaches out of the box around it")
        reader = _Reader(data, box.body, box.end)
        if box.kind == b"pitm":
            version, _ = reader.full_box()
            out.primary = reader.take(4 if version else 2)
        elif box.kind == b"iinf":
            _read_infos(data, reader, box, out)
        elif box.kind == b"iloc":
            _read_locations(reader, out)
        elif box.kind == b"iprp":
            _read_properties(data, box, out)
        elif box.kind == b"iref":
            _read_references(data, reader, box, out)
        elif box.kind == b"idat":
            out.idat = box


class _Reader:
    """Reads big-endian numbers within one box."""

    def __init__(self, data: bytes, at: int, end: int) -> None:
        self._data, self.at, self._end = data, at, end

    def take(self, size: int) -> int:
        if self.at + size > self._end:
            raise ContainerError("a box ends early")
        self.at += size
        return int.from_bytes(self._data[self.at - size : self.at], "big")

    def full_box(self) -> tuple[int, int]:
        """(version, flags)."""
        return self.take(1), self.take(3)


def _item(out: Meta, number: int) -> Item:
    if number not in out.items and len(out.items) >= _MAX_ITEMS:
        raise ContainerError("it has thousands of items")
    return out.items.setdefault(number, Item())


def _read_infos(data: bytes, reader: _Reader, box: Box, out: Meta) -> None:
    version, _ = reader.full_box()
    reader.take(4 if version else 2)
    for entry in boxes(data, reader.at, box.end):
        if entry.kind != b"infe":
            continue
        if entry.end > box.end:
            raise ContainerError("a box reaches out of the box around it")
        info = _Reader(data, entry.body, entry.end)
        version, _ = info.full_box()
        if version < 2:
            raise ContainerError("its items have no type")
        item = _item(out, info.take(4 if version > 2 else 2))
        info.take(2)
        item.kind_at = info.at
        item.kind = info.take(4).to_bytes(4, "big")


def _read_locations(reader: _Reader, out: Meta) -> None:
    version, _ = reader.full_box()
    sizes = reader.take(2)
    offset_size, length_size, base_size = sizes >> 12, sizes >> 8 & 15, sizes >> 4 & 15
    index_size = sizes & 15 if version in {1, 2} else 0
    wide = 4 if version == 2 else 2
    for _ in range(reader.take(wide)):
        out.count()
        item = _item(out, reader.take(wide))
        item.method = reader.take(2) & 15 if version in {1, 2} else 0
        reader.take(2)
        base = reader.take(base_size)
        for _ in range(reader.take(2)):
            reader.take(index_size)
            offset, length = reader.take(offset_size), reader.take(length_size)
            item.extents.append((base + offset, length))
            out.count()


def _read_properties(data: bytes, box: Box, out: Meta) -> None:
    for part in boxes(data, box.body, box.end):
        if part.end > box.end:
            raise ContainerError("a box reaches out of the box around it")
        if part.kind == b"ipco":
            for each in boxes(data, part.body, part.end):
                if each.end > part.end:
                    raise ContainerError("a box reaches out of the box around it")
                out.count()
                out.properties.append(each)
        elif part.kind == b"ipma":
            reader = _Reader(data, part.body, part.end)
            version, flags = reader.full_box()
            for _ in range(reader.take(4)):
                out.count()
                item = _item(out, reader.take(4 if version else 2))
                for _ in range(reader.take(1)):
                    out.count()
                    item.properties.append(reader.take(2) & 0x7FFF if flags & 1 else reader.take(1) & 0x7F)


def _read_references(data: bytes, reader: _Reader, box: Box, out: Meta) -> None:
    version, _ = reader.full_box()
    wide = 4 if version else 2
    for part in boxes(data, reader.at, box.end):
        if part.kind == b"dimg" and part.end <= box.end:
            reference = _Reader(data, part.body, part.end)
            source = reference.take(wide)
            tiles = out.tiles[source] = []
            for _ in range(reference.take(2)):
                out.count()
                tiles.append(reference.take(wide))
