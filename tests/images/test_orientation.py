"""Which way up: EXIF in the formats that have it, the container's turn in those that do not listen to EXIF."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from service.images import decode_image
from service.images.exif import orientation
from tests.images.files import Pixels, chunk, encoded, exif, jpeg_with, png_with, quarters

UPRIGHT = quarters(64, 48)


def stored(upright: Pixels, value: int) -> Pixels:
    """What a camera stores for an orientation, from the definition in the standard (CIPA DC-008, tag 274).

    The value says at which side of the picture the stored row 0 and column 0 lie.
    """
    height, width = upright.shape[:2]
    rows, columns = (height, width) if value <= 4 else (width, height)
    row, column = np.mgrid[0:rows, 0:columns]
    right, down = width - 1, height - 1
    y, x = {
        1: (row, column),  # top, left
        2: (row, right - column),  # top, right
        3: (down - row, right - column),  # bottom, right
        4: (down - row, column),  # bottom, left
        5: (column, row),  # left, top
        6: (column, right - row),  # right, top
        7: (down - column, right - row),  # right, bottom
        8: (down - column, row),  # left, bottom
    }[value]
    return np.ascontiguousarray(upright[y, x])


def close(got: Pixels, tolerance: int) -> bool:
    """Equal but for coding, away from the edges between the colours."""
    if got.shape != UPRIGHT.shape:
        return False
    difference = np.abs(got.astype(int) - UPRIGHT)
    difference[20:28] = 0
    difference[:, 28:36] = 0
    return bool(difference.max() <= tolerance)


@pytest.mark.parametrize("value", range(1, 9))
@pytest.mark.parametrize(
    ("kind", "options", "tolerance"),
    [
        ("JPEG", {"quality": 95, "subsampling": 0}, 12),
        ("PNG", {}, 0),
        ("WEBP", {"lossless": True}, 0),
        ("AVIF", {"quality": 95, "subsampling": "4:4:4"}, 12),
        ("HEIC", {"quality": 95, "chroma": 444}, 12),
    ],
)
def test_all_eight(kind: str, options: dict[str, object], tolerance: int, value: int) -> None:
    block = b"Exif\0\0" + exif(value)
    file = encoded(stored(UPRIGHT, value), kind, exif=block, **options)
    assert close(decode_image(file).pixels, tolerance)


@pytest.mark.parametrize("compression", [None, "tiff_lzw", "jpeg"])
@pytest.mark.parametrize("value", range(1, 9))
def test_all_eight_in_tiff(value: int, compression: str | None) -> None:
    file = encoded(stored(UPRIGHT, value), "TIFF", tiffinfo={274: value}, compression=compression)
    assert close(decode_image(file).pixels, 40 if compression == "jpeg" else 0)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("kind", [1, 3, 4])
def test_value_types_and_byte_orders(order: str, kind: int) -> None:
    assert orientation(exif(6, order=order, kind=kind)) == 6


@pytest.mark.parametrize("value", [0, 9, 99, 255])
def test_impossible_values_are_ignored(value: int) -> None:
    assert close(decode_image(encoded(UPRIGHT, "PNG", exif=exif(value))).pixels, 0)


@pytest.mark.parametrize(
    "block",
    [
        b"",
        b"Exif\0\0",
        b"II*\0",
        b"II*\0\xff\xff\xff\xff",
        b"XX*\0\x08\0\0\0\x01\0" + bytes(16),
        exif(6)[:14],
        exif(6).replace(b"*\0", b"+\0"),
        b"\0" * 40,
    ],
)
def test_unreadable_blocks_leave_the_picture_as_stored(block: bytes) -> None:
    assert orientation(block) == 1
    png = png_with(encoded(UPRIGHT, "PNG"), chunk(b"eXIf", block))
    assert close(decode_image(png).pixels, 0)
    jpeg = jpeg_with(encoded(UPRIGHT, "JPEG", quality=95, subsampling=0), (0xE1, b"Exif\0\0" + block))
    assert close(decode_image(jpeg).pixels, 12)


def test_damage_beside_the_entry_does_not_hide_it() -> None:
    zero_denominator = struct.pack("<HHII", 0x011A, 5, 1, 0xFFFF0000)
    block = exif(6, extra=zero_denominator)
    lying_count = block[:8] + struct.pack("<H", 0xFFFF) + block[10:]
    for each in (block, lying_count, b"Exif\0\0" + block, b"Exif\0\0Exif\0\0" + block):
        file = png_with(encoded(stored(UPRIGHT, 6), "PNG"), chunk(b"eXIf", each))
        assert close(decode_image(file).pixels, 0)


def test_exif_block_with_a_wrong_check_sum_is_ignored() -> None:
    bad = chunk(b"eXIf", exif(6))[:-1] + b"\0"
    assert close(decode_image(png_with(encoded(UPRIGHT, "PNG"), bad)).pixels, 0)


def test_exif_behind_the_pixels_of_a_png_counts() -> None:
    file = encoded(stored(UPRIGHT, 8), "PNG")
    end = file.index(b"IEND") - 4
    assert close(decode_image(file[:end] + chunk(b"eXIf", exif(8)) + file[end:]).pixels, 0)


def test_first_exif_segment_counts() -> None:
    plain = encoded(stored(UPRIGHT, 6), "JPEG", quality=95, subsampling=0)
    file = jpeg_with(
        plain,
        (0xE1, b"http://ns.adobe.com/xap/1.0/\0<x/>"),
        (0xE1, b"Exif\0\0" + exif(6)),
        (0xE1, b"Exif\0\0" + exif(3)),
    )
    assert close(decode_image(file).pixels, 12)
