"""Metadata that is well formed and says nothing, or says it in the second place."""

from __future__ import annotations

import io
import struct

import numpy as np
import pytest
from PIL import Image, ImageCms

from service.errors import Code
from service.images import ImageError, decode_image
from tests.support.pictures import encoded

LEFT_RED = Image.new("RGB", (64, 48), "blue")
LEFT_RED.paste("red", (0, 0, 32, 48))


def app1(body: bytes) -> bytes:
    return b"\xff\xe1" + struct.pack(">H", len(body) + 2) + body


def orientation_block(turn: int) -> bytes:
    return app1(b"Exif\0\0MM\0*" + struct.pack(">IHHHIHHI", 8, 1, 0x0112, 3, 1, turn, 0, 0))


@pytest.mark.parametrize("first", [b"Exif\0\0", b"Exif\0\0MM\0*"])
def test_an_empty_exif_block_in_front_of_the_real_one(first: bytes) -> None:
    data = encoded(LEFT_RED, "JPEG")
    picture = decode_image(data[:2] + app1(first) + orientation_block(6) + data[2:])
    assert (picture.width, picture.height) == (48, 64)


def test_the_first_exif_block_with_content_counts() -> None:
    data = encoded(LEFT_RED, "JPEG")
    picture = decode_image(data[:2] + orientation_block(1) + orientation_block(6) + data[2:])
    assert (picture.width, picture.height) == (64, 48)


def test_a_profile_that_makes_one_colour_of_all_is_ignored() -> None:
    profile = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    for at in range(132, 132 + 12 * int.from_bytes(profile[128:132], "big"), 12):
        if profile[at : at + 4] in (b"rXYZ", b"gXYZ", b"bXYZ"):
            offset = int.from_bytes(profile[at + 4 : at + 8], "big")
            profile[offset + 8 : offset + 20] = bytes(12)
    picture = decode_image(encoded(LEFT_RED, "PNG", icc_profile=bytes(profile)))
    assert picture.pixels[24, 8].tolist() == [255, 0, 0]
    assert picture.pixels[24, 56].tolist() == [0, 0, 255]


def test_signed_samples_are_refused() -> None:
    """A little-endian TIFF of 2 x 1 grey samples of 8 bit, SampleFormat 2."""
    tags = [(256, 2), (257, 1), (258, 8), (259, 1), (262, 1), (273, 8), (277, 1), (278, 1), (279, 2), (339, 2)]
    entries = b"".join(struct.pack("<HHII", tag, 4 if tag == 273 else 3, 1, value) for tag, value in tags)
    data = b"II*\0" + struct.pack("<I", 10) + b"\x80\x7f" + struct.pack("<H", len(tags)) + entries + bytes(4)
    with pytest.raises(ImageError) as refused:
        decode_image(data)
    assert refused.value.code is Code.IMAGE_UNDECODABLE
    assert "signed" in refused.value.detail


@pytest.mark.parametrize(("scale", "order"), [(1, "<"), (257, "<"), (1, ">"), (257, ">")])
def test_a_tiff_palette_of_8_bit_values_is_taken_for_such(scale: int, order: str) -> None:
    """2 x 1 pixels: index 1 is (255, 128, 0), index 2 is (0, 64, 255)."""
    palette = np.zeros((3, 256), dtype=order + "u2")
    palette[:, 1], palette[:, 2] = (255, 128, 0), (0, 64, 255)
    where = 10
    tags = [(256, 3, 1, 2), (257, 3, 1, 1), (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, 3), (273, 4, 1, 8)]
    tags += [(277, 3, 1, 1), (278, 3, 1, 1), (279, 3, 1, 2), (320, 3, 768, where)]
    entries = b""
    for tag, kind, count, value in tags:
        short = struct.pack(order + "HH", value, 0) if kind == 3 and count == 1 else struct.pack(order + "I", value)
        entries += struct.pack(order + "HHI", tag, kind, count) + short
    start = where + 2 * 768
    head = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "I", start) + b"\x01\x02"
    data = head + (palette * scale).tobytes() + struct.pack(order + "H", len(tags)) + entries + bytes(4)
    assert decode_image(data).pixels[0].tolist() == [[255, 128, 0], [0, 64, 255]]


@pytest.mark.parametrize("quality", [50, 85])
@pytest.mark.parametrize("kept", [0.02, 0.5, 0.9])
def test_a_progressive_jpeg_cut_in_its_last_scan_and_closed(quality: int, kept: float) -> None:
    """Refining scans are last and hold a quarter of the file: half decoded is refused there too."""
    noise = np.random.default_rng(5).integers(0, 256, (60, 80, 3), dtype=np.uint8)
    out = io.BytesIO()
    Image.fromarray(noise).resize((640, 480)).save(out, "JPEG", quality=quality, progressive=True)
    data = out.getvalue()
    last = data.rindex(b"\xff\xda")
    cut = last + 14 + int((len(data) - last - 16) * kept)
    assert decode_image(data).width == 640
    with pytest.raises(ImageError) as refused:
        decode_image(data[:cut] + b"\xff\xd9")
    assert refused.value.code is Code.IMAGE_TRUNCATED
