"""Picture files made by hand or by encoders: headers that lie, odd samples, structures that no encoder makes."""

from __future__ import annotations

import io
import struct
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt
import pillow_heif
from PIL import Image

Pixels = npt.NDArray[np.uint8]

RED, GREEN, BLUE, YELLOW = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 0)


def quarters(width: int = 64, height: int = 48) -> Pixels:
    """Upright: red top left, green top right, blue bottom left, yellow bottom right."""
    pixels = np.zeros((height, width, 3), dtype=np.uint8)
    middle_y, middle_x = height // 2, width // 2
    pixels[:middle_y, :middle_x], pixels[:middle_y, middle_x:] = RED, GREEN
    pixels[middle_y:, :middle_x], pixels[middle_y:, middle_x:] = BLUE, YELLOW
    return pixels


def textured(width: int = 160, height: int = 120) -> Image.Image:
    """Something in every block, so that lost data shows."""
    y, x = np.mgrid[0:height, 0:width]
    pixels = np.stack([x * 255 // width, y * 255 // height, (x * 7 + y * 3) % 256], axis=-1)
    return Image.fromarray(pixels.astype(np.uint8))


def encoded(picture: Image.Image | Pixels, kind: str, **options: Any) -> bytes:
    """The file that an encoder makes of a picture; kind is Pillow's name, or HEIC."""
    out = io.BytesIO()
    # Copies, since encoders leave their settings behind in a picture.
    picture = picture.copy() if isinstance(picture, Image.Image) else Image.fromarray(picture)
    if "append_images" in options:
        options["append_images"] = [each.copy() for each in options["append_images"]]
    if kind == "HEIC":
        pillow_heif.from_pillow(picture).save(out, **options)
    else:
        picture.save(out, kind, **options)
    return out.getvalue()


def exif(orientation: int, *, order: str = "<", kind: int = 3, extra: bytes = b"") -> bytes:
    """An EXIF block without prefix, with one entry, and `extra` raw entries of 12 bytes behind it."""
    mark = {"<": b"II", ">": b"MM"}[order]
    value = struct.pack(order + {1: "Bxxx", 3: "Hxx", 4: "I"}[kind], orientation)
    entries = struct.pack(order + "HHI", 0x0112, kind, 1) + value + extra
    count = 1 + len(extra) // 12
    return mark + struct.pack(order + "HIH", 42, 8, count) + entries + bytes(4)


def jpeg_with(file: bytes, *segments: tuple[int, bytes]) -> bytes:
    """`file` with segments (marker, body) put behind its start marker."""
    inserted = b"".join(
        b"\xff" + bytes([marker]) + struct.pack(">H", len(body) + 2) + body for marker, body in segments
    )
    return file[:2] + inserted + file[2:]


def jpeg_without(file: bytes, marker: int) -> bytes:
    """`file` without the header segments that have this marker."""
    out, at = bytearray(file[:2]), 2
    while file[at + 1] != 0xDA:
        end = at + 2 + int.from_bytes(file[at + 2 : at + 4], "big")
        if file[at + 1] != marker:
            out += file[at:end]
        at = end
    return bytes(out + file[at:])


def chunk(name: bytes, body: bytes = b"") -> bytes:
    """One PNG chunk."""
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def png(width: int, height: int, depth: int, colour: int, rows: bytes, *extra: bytes) -> bytes:
    """A PNG of packed `rows` (unfiltered, without filter bytes), with `extra` chunks in front of the pixels."""
    stride = len(rows) // height
    lines = b"".join(b"\0" + rows[at : at + stride] for at in range(0, len(rows), stride))
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + b"".join(extra) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND")


def png_with(file: bytes, *chunks: bytes) -> bytes:
    """`file` with chunks put behind its header."""
    return file[:33] + b"".join(chunks) + file[33:]


def tiff(
    width: int,
    height: int,
    strip: bytes,
    *,
    bits: tuple[int, ...] = (8,),
    photometric: int = 1,
    order: str = "<",
    **tags: tuple[int, list[int]],
) -> bytes:
    """A one-strip TIFF; further tags as `t338=(3, [1])` (type, values)."""
    entries: dict[int, tuple[int, list[int]]] = {
        256: (4, [width]),
        257: (4, [height]),
        258: (3, list(bits)),
        259: (3, [1]),
        262: (3, [photometric]),
        273: (4, [0]),
        277: (3, [len(bits)]),
        278: (4, [height]),
        279: (4, [len(strip)]),
    }
    entries |= {int(name[1:]): value for name, value in tags.items()}
    letters = {1: "B", 3: "H", 4: "I", 7: "B"}
    start = 8 + 2 + 12 * len(entries) + 4
    blobs: list[bytes] = []
    at = start
    packed = {}
    for tag, (kind, values) in sorted(entries.items()):
        body = struct.pack(f"{order}{len(values)}{letters[kind]}", *values)
        if len(body) > 4:
            packed[tag] = (kind, len(values), struct.pack(order + "I", at))
            blobs.append(body)
            at += len(body)
        else:
            packed[tag] = (kind, len(values), body.ljust(4, b"\0"))
    if entries[273][1] == [0]:
        packed[273] = (4, 1, struct.pack(order + "I", at))
    directory = b"".join(
        struct.pack(order + "HHI", tag, kind, count) + value for tag, (kind, count, value) in packed.items()
    )
    mark = {"<": b"II", ">": b"MM"}[order]
    head = mark + struct.pack(order + "HIH", 42, 8, len(packed)) + directory + bytes(4)
    return head + b"".join(blobs) + strip


def bmp(width: int, height: int, depth: int, pixels: bytes, *, compression: int = 0, palette: bytes = b"") -> bytes:
    """A BMP with the 40-byte header."""
    offset = 54 + len(palette)
    info = struct.pack(
        "<IiiHHIIiiII", 40, width, height, 1, depth, compression, len(pixels), 0, 0, len(palette) // 4, 0
    )
    return b"BM" + struct.pack("<IHHI", offset + len(pixels), 0, 0, offset) + info + palette + pixels


def gif(
    screen: tuple[int, int], frame: tuple[int, int, int, int], *, colours: bytes, data: bytes, control: bytes = b""
) -> bytes:
    """A GIF of one frame (x, y, width, height) on a screen, with a global palette of two colours."""
    head = b"GIF89a" + struct.pack("<HHBBB", *screen, 0x80, 0, 0) + colours
    return head + control + b"," + struct.pack("<HHHHB", *frame, 0) + data + b";"


def icc_matrix(primaries: list[tuple[float, float]], gamma: float | None) -> bytes:
    """An ICC v2 display profile of RGB primaries (x, y) with white D65; gamma None: the curve of sRGB."""
    to_xyz = rgb_to_xyz(primaries)
    bradford = np.array([[0.8951, 0.2664, -0.1614], [-0.7502, 1.7135, 0.0367], [0.0389, -0.0685, 1.0296]])
    d65, d50 = xy_to_xyz(0.3127, 0.3290), np.array([0.9642, 1.0, 0.8249])
    adapt = np.linalg.inv(bradford) @ np.diag((bradford @ d50) / (bradford @ d65)) @ bradford
    columns = (adapt @ to_xyz).T
    if gamma is None:
        steps = np.linspace(0, 1, 1024)
        linear = np.where(steps <= 0.04045, steps / 12.92, ((steps + 0.055) / 1.055) ** 2.4)
        curve = b"curv" + bytes(4) + struct.pack(">I", 1024) + np.rint(linear * 65535).astype(">u2").tobytes()
    else:
        curve = b"curv" + bytes(4) + struct.pack(">IHxx", 1, round(gamma * 256))
    tags = {name: _xyz(column) for name, column in zip((b"rXYZ", b"gXYZ", b"bXYZ"), columns, strict=True)}
    tags |= {b"wtpt": _xyz(d50), b"rTRC": curve, b"gTRC": curve, b"bTRC": curve}
    return icc(b"mntr", b"RGB ", b"XYZ ", tags)


def icc(kind: bytes, space: bytes, connection: bytes, tags: dict[bytes, bytes]) -> bytes:
    """An ICC v2 profile with these tags, and the two that each must have."""
    text = b"test"
    tags = {
        **tags,
        b"desc": b"desc" + bytes(4) + struct.pack(">I", len(text) + 1) + text + bytes(1 + 8 + 3 + 67),
        b"cprt": b"text" + bytes(4) + text + b"\0",
    }
    table, body, at = b"", b"", 128 + 4 + 12 * len(tags)
    for name, value in tags.items():
        value += bytes(-len(value) % 4)
        table += name + struct.pack(">II", at, len(value))
        body += value
        at += len(value)
    header = struct.pack(">I4sI4s4s4s", at, b"test", 0x02400000, kind, space, connection) + bytes(12) + b"acsp"
    header = header.ljust(68, b"\0") + struct.pack(">iii", 63190, 65536, 54061)
    return header.ljust(128, b"\0") + struct.pack(">I", len(tags)) + table + body


def icc_cmyk(corners: dict[tuple[int, int, int, int], tuple[int, int, int]], default: tuple[int, int, int]) -> bytes:
    """A CMYK print profile with two grid points a channel: corner (0 or 1 each) to (L 0-100, a, b)."""
    grid = b""
    for index in range(16):
        corner = (index >> 3 & 1, index >> 2 & 1, index >> 1 & 1, index & 1)
        lightness, a, b = corners.get(corner, default)
        grid += bytes([round(lightness * 255 / 100), a + 128, b + 128])
    identity = bytes(range(256))
    matrix = struct.pack(">9i", 65536, 0, 0, 0, 65536, 0, 0, 0, 65536)
    lut = b"mft1" + bytes(4) + bytes([4, 3, 2, 0]) + matrix + 4 * identity + grid + 3 * identity
    return icc(b"prtr", b"CMYK", b"Lab ", {b"A2B0": lut, b"wtpt": _xyz(np.array([0.9642, 1.0, 0.8249]))})


def xy_to_xyz(x: float, y: float) -> npt.NDArray[np.float64]:
    """The colour of luminance 1 at a chromaticity."""
    return np.array([x / y, 1.0, (1 - x - y) / y])


def rgb_to_xyz(primaries: list[tuple[float, float]]) -> npt.NDArray[np.float64]:
    """The matrix from linear RGB with white D65 to XYZ."""
    columns = np.stack([xy_to_xyz(*each) for each in primaries], axis=1)
    return columns * np.linalg.solve(columns, xy_to_xyz(0.3127, 0.3290))


def _xyz(value: npt.NDArray[np.float64]) -> bytes:
    return b"XYZ " + bytes(4) + struct.pack(">3i", *(round(float(each) * 65536) for each in value))
