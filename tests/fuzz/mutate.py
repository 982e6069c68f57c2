"""Mutations of picture files: blind ones, and ones that know where a format keeps its structure."""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Callable

_NUMBERS = (0, 1, 2, 3, 7, 8, 16, 127, 128, 255, 256, 2047, 4096, 32767, 32768, 65535, 65536, 2**24 - 1, 2**31 - 1)
_NUMBERS_32 = (*_NUMBERS, 2**31, 2**32 - 1, 2**32 - 2, 16384, 60000, 1000000)
_ENDS = (b"\xff\xd9", b"\0;", b"\0\0\0\0IEND\xaeB`\x82", b"\0" * 64, b"\xff" * 64)

Mutation = Callable[[random.Random, bytearray], bytearray]


def mutate(rng: random.Random, seeds: dict[str, bytes]) -> tuple[str, bytes]:
    """(what was done, the file), all drawn from `rng`."""
    names = sorted(seeds)
    name = rng.choice(names)
    data = bytearray(seeds[name])
    done = [name]
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 5))):
        mutation = rng.choice((*_BLIND, *_aware(data) * 3, None))
        data = mutation(rng, data) if mutation else _splice(rng, data, seeds[rng.choice(names)])
        done.append(mutation.__name__.strip("_") if mutation else "splice")
    return "+".join(done), bytes(data)


def _aware(data: bytearray) -> tuple[Mutation, ...]:
    if data[:2] == b"\xff\xd8":
        return (_jpeg,)
    if data[:4] == b"\x89PNG":
        return (_png, _png_pixels)
    if data[:4] == b"RIFF":
        return (_riff,)
    if data[4:8] == b"ftyp":
        return (_boxes, _box_field)
    if data[:2] in (b"II", b"MM"):
        return (_tiff,)
    if data[:3] == b"GIF" or data[:2] == b"BM":
        return (_header_field,)
    return ()


def _bits(rng: random.Random, data: bytearray) -> bytearray:
    for _ in range(rng.choice((1, 1, 2, 4, 16)) if data else 0):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return data


def _bytes(rng: random.Random, data: bytearray) -> bytearray:
    for _ in range(rng.choice((1, 2, 8)) if data else 0):
        data[rng.randrange(len(data))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
    return data


def _number(rng: random.Random, data: bytearray, start: int = 0, end: int | None = None) -> bytearray:
    """Write a number that tends to hurt over a field of 2 or 4 bytes."""
    end = len(data) if end is None else min(end, len(data))
    width = rng.choice((2, 4))
    if end - start > width:
        at = rng.randrange(start, end - width)
        number = rng.choice(_NUMBERS_32) & (2 ** (8 * width) - 1)
        data[at : at + width] = number.to_bytes(width, rng.choice(("big", "little")))
    return data


def _cut(rng: random.Random, data: bytearray) -> bytearray:
    return data[: rng.randrange(len(data) + 1)]


def _cut_and_close(rng: random.Random, data: bytearray) -> bytearray:
    return _cut(rng, data) + rng.choice(_ENDS)


def _remove(rng: random.Random, data: bytearray) -> bytearray:
    at = rng.randrange(len(data) + 1)
    del data[at : at + rng.choice((1, 2, 4, 16, 64, 256))]
    return data


def _repeat(rng: random.Random, data: bytearray) -> bytearray:
    at = rng.randrange(len(data) + 1)
    piece = data[at : at + rng.choice((1, 4, 16, 64, 512))] * rng.choice((1, 2, 8, 64))
    data[at:at] = piece
    return data


def _insert(rng: random.Random, data: bytearray) -> bytearray:
    at = rng.randrange(len(data) + 1)
    data[at:at] = rng.randbytes(rng.choice((1, 4, 32)))
    return data


def _splice(rng: random.Random, data: bytearray, other: bytes) -> bytearray:
    return data[: rng.randrange(len(data) + 1)] + other[rng.randrange(len(other) + 1) :]


def _header_field(rng: random.Random, data: bytearray) -> bytearray:
    return _number(rng, data, 2, 64)


_BLIND: tuple[Mutation, ...] = (
    _bits, _bytes, _number, _cut, _cut_and_close, _remove, _repeat, _insert, _header_field,
)  # fmt: skip


def _pick(rng: random.Random, parts: list[bytearray]) -> None:
    """Drop, double, move or swap one of the parts, in place."""
    if not parts:
        return
    at = rng.randrange(len(parts))
    action = rng.randrange(4)
    if action == 0:
        del parts[at]
    elif action == 1:
        parts.insert(at, bytearray(parts[at]))
    elif action == 2:
        parts.insert(rng.randrange(len(parts)), parts.pop(at))
    else:
        other = rng.randrange(len(parts))
        parts[at], parts[other] = parts[other], parts[at]


def _jpeg(rng: random.Random, data: bytearray) -> bytearray:
    """Segments: dropped, doubled, moved, with a wrong length, another marker, or a changed body."""
    parts, at = [], 2
    while at + 4 <= len(data) and data[at] == 0xFF and data[at + 1] != 0xDA:
        end = at + 2 + int.from_bytes(data[at + 2 : at + 4], "big")
        parts.append(data[at:end])
        at = end
    tail = data[at:]
    part = rng.choice(parts) if parts else tail
    action = rng.randrange(6)
    if action == 0:
        _pick(rng, parts)
    elif action == 1:
        part[2:4] = struct.pack(">H", rng.choice(_NUMBERS) & 0xFFFF)
    elif action == 2:
        part[1:2] = bytes([rng.choice((0xC0, 0xC1, 0xC2, 0xC4, 0xC9, 0xDA, 0xDB, 0xDD, 0xE1, 0xE2, 0xEE, 0xD8))])
    elif action == 3:
        _number(rng, part, 4)
    elif action == 4:
        for _ in range(rng.choice((1, 4))):
            where = rng.randrange(len(tail) + 1)
            marker = rng.choice((0xD0, 0xD3, 0xD7, 0xD8, 0xD9, 0xDA, 0x01, 0xFE, 0x00))
            tail[where : where + rng.choice((0, 2))] = bytes((0xFF, marker))
    else:
        tail[-2:] = tail * rng.choice((1, 4, 40))  # many scans
    return data[:2] + b"".join(parts) + tail


def _png(rng: random.Random, data: bytearray) -> bytearray:
    """Chunks: dropped, doubled, moved, renamed, or changed, mostly with a right check sum."""
    parts, at = [], 8
    while at + 12 <= len(data):
        end = at + 12 + int.from_bytes(data[at : at + 4], "big")
        parts.append(data[at:end])
        at = end
    if not parts:
        return data
    part = rng.choice(parts)
    action = rng.randrange(5)
    if action == 0:
        _pick(rng, parts)
    elif action == 1:
        part[:4] = struct.pack(">I", rng.choice(_NUMBERS_32))
    elif action == 2:
        part[4:8] = rng.choice(
            (b"IHDR", b"PLTE", b"IDAT", b"tRNS", b"IEND", b"eXIf", b"iCCP", b"acTL", b"fcTL", b"fdAT")
        )
    elif action == 3:
        _number(rng, part, 8, len(part) - 4)
    else:
        where = rng.randrange(8, max(9, len(part) - 4))
        if where < len(part):
            part[where] = rng.randrange(256)
    if rng.random() < 0.9:
        part[-4:] = struct.pack(">I", zlib.crc32(part[4:-4]))
    return data[:8] + b"".join(parts)


def _png_pixels(rng: random.Random, data: bytearray) -> bytearray:
    """The pixel data, changed before compression and put back whole."""
    start = data.find(b"IDAT")
    if start < 4:
        return data
    length = int.from_bytes(data[start - 4 : start], "big")
    try:
        rows = bytearray(zlib.decompress(data[start + 4 : start + 4 + length]))
    except zlib.error:
        return data
    rows = rng.choice((_bits, _cut, _repeat))(rng, rows)
    body = b"IDAT" + zlib.compress(rows)
    chunk = struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))
    return data[: start - 4] + chunk + data[start + 8 + length :]


def _riff(rng: random.Random, data: bytearray) -> bytearray:
    """Chunks of a WebP, with the size of the whole mostly put right."""
    parts, at = [], 12
    while at + 8 <= len(data):
        end = at + 8 + int.from_bytes(data[at + 4 : at + 8], "little")
        end += end & 1
        parts.append(data[at:end])
        at = end
    if not parts:
        return data
    part = rng.choice(parts)
    action = rng.randrange(4)
    if action == 0:
        _pick(rng, parts)
    elif action == 1:
        part[4:8] = struct.pack("<I", rng.choice(_NUMBERS_32))
    elif action == 2:
        part[:4] = rng.choice((b"VP8 ", b"VP8L", b"VP8X", b"ALPH", b"ANIM", b"ANMF", b"ICCP", b"EXIF"))
    else:
        _number(rng, part, 8)
    body = b"WEBP" + b"".join(parts)
    size = len(body) if rng.random() < 0.9 else rng.choice(_NUMBERS_32)
    return bytearray(b"RIFF" + struct.pack("<I", size) + body)


_BOXES = (b"ispe", b"ipma", b"iloc", b"pitm", b"iinf", b"infe", b"iref", b"dimg", b"auxl", b"irot", b"imir", b"pixi")
_MORE_BOXES = (
    b"hvcC",
    b"av1C",
    b"colr",
    b"clap",
    b"meta",
    b"mdat",
    b"idat",
    b"ipco",
    b"iprp",
    b"ftyp",
    b"moov",
    b"tkhd",
)


def _boxes(rng: random.Random, data: bytearray) -> bytearray:
    """One box anywhere in the tree: its size, its name, or its presence."""
    found = [at for name in (*_BOXES, *_MORE_BOXES) if (at := data.find(name)) >= 4]
    if not found:
        return data
    at = rng.choice(found)
    size = int.from_bytes(data[at - 4 : at], "big")
    action = rng.randrange(4)
    if action == 0:
        data[at - 4 : at] = struct.pack(
            ">I", rng.choice((*_NUMBERS_32, size + 1, max(size - 1, 0), size * 2)) & (2**32 - 1)
        )
    elif action == 1:
        data[at : at + 4] = rng.choice((*_BOXES, *_MORE_BOXES, b"free", b"uuid"))
    elif action == 2:
        data[at - 4 : at - 4] = data[at - 4 : at - 4 + min(size, 4096)] * rng.choice((1, 8))
    else:
        del data[at - 4 : at - 4 + size]
    return data


def _box_field(rng: random.Random, data: bytearray) -> bytearray:
    """A number within one box."""
    found = [at for name in (*_BOXES, *_MORE_BOXES) if (at := data.find(name)) >= 4]
    if not found:
        return data
    at = rng.choice(found)
    return _number(rng, data, at + 4, at + max(8, int.from_bytes(data[at - 4 : at], "big") - 4))


def _tiff(rng: random.Random, data: bytearray) -> bytearray:
    """One entry of the first directory: its tag, type, count or value."""
    order = "<" if data[:2] == b"II" else ">"
    if len(data) < 8:
        return data
    big = data[2:4] in (b"+\0", b"\0+")
    start = int.from_bytes(data[8:16] if big else data[4:8], "little" if order == "<" else "big")
    if start + 2 > len(data):
        return data
    count = struct.unpack_from(order + "H", data, start)[0] or 1
    at = start + (8 if big else 2) + (20 if big else 12) * rng.randrange(min(count, 64))
    action = rng.randrange(4)
    if action == 0:
        data[at : at + 2] = struct.pack(
            order + "H", rng.choice((256, 257, 258, 259, 262, 273, 277, 278, 279, 284, 317, 322, 323, 324, 338, 339))
        )
    elif action == 1:
        data[at + 2 : at + 4] = struct.pack(order + "H", rng.randrange(20))
    elif action == 2:
        data[at + 4 : at + 8] = struct.pack(order + "I", rng.choice(_NUMBERS_32))
    else:
        data[at + 8 : at + 12] = struct.pack(
            order + "I", rng.choice((*_NUMBERS_32, rng.randrange(70), 32773, 34712, 50000))
        )
    return data
