"""From every kind of sample to 8-bit sRGB on white. Expected values are computed here, or come from the standards."""

from __future__ import annotations

import io
import struct

import numpy as np
import pytest
from PIL import Image, ImageCms

from service.images import ImageError, decode_image
from tests.images.files import (
    bmp,
    chunk,
    encoded,
    icc,
    icc_cmyk,
    icc_matrix,
    jpeg_with,
    jpeg_without,
    png,
    png_with,
    rgb_to_xyz,
    tiff,
)

SRGB = [(0.64, 0.33), (0.30, 0.60), (0.15, 0.06)]
DISPLAY_P3 = [(0.680, 0.320), (0.265, 0.690), (0.150, 0.060)]
ADOBE_RGB = [(0.64, 0.33), (0.21, 0.71), (0.15, 0.06)]


def pixel(file: bytes, x: int = 0, y: int = 0) -> tuple[int, ...]:
    return tuple(int(each) for each in decode_image(file).pixels[y, x])


def near(got: tuple[int, ...], expected: tuple[int, ...], tolerance: int) -> bool:
    return all(abs(a - b) <= tolerance for a, b in zip(got, expected, strict=True))


# ---- bit depths


@pytest.mark.parametrize("depth", [1, 2, 4, 8, 16])
def test_grey_png_of_every_depth(depth: int) -> None:
    top = 2**depth - 1
    levels = [0, top, top // 2 if depth > 1 else 0]
    bits = "".join(f"{level:0{depth}b}" for level in levels)
    row = int(bits.ljust(-(-len(bits) // 8) * 8, "0"), 2).to_bytes(-(-len(bits) // 8), "big")
    file = png(3, 1, depth, 0, row)
    expected = [level * 255 // top for level in levels]
    assert [pixel(file, x) for x in range(3)] == [(each,) * 3 for each in expected]


@pytest.mark.parametrize(
    ("colour", "samples", "expected"),
    [
        (0, [0x8040], (0x80, 0x80, 0x80)),
        (2, [0xFFFF, 0x80FF, 0x0001], (0xFF, 0x80, 0x00)),
        (4, [0x40FF, 0xFFFF], (0x40, 0x40, 0x40)),
        (4, [0x0000, 0x0000], (255, 255, 255)),
        (6, [0x1234, 0x5678, 0x9ABC, 0xFFFF], (0x12, 0x56, 0x9A)),
        (6, [0x0000, 0x0000, 0x0000, 0x8000], (127, 127, 127)),
    ],
)
def test_16_bit_png(colour: int, samples: list[int], expected: tuple[int, ...]) -> None:
    assert near(pixel(png(1, 1, 16, colour, struct.pack(f">{len(samples)}H", *samples))), expected, 1)


@pytest.mark.parametrize("order", ["<", ">"])
def test_16_bit_grey_tiff(order: str) -> None:
    samples = np.array([0x0000, 0x40C0, 0x80FF, 0xFFFF])
    file = tiff(4, 1, samples.astype(order + "u2").tobytes(), bits=(16,), order=order)
    assert [pixel(file, x)[0] for x in range(4)] == [0x00, 0x40, 0x80, 0xFF]


def test_16_bit_tiff_where_white_is_zero() -> None:
    file = tiff(2, 1, np.array([0, 0xFFFF], "<u2").tobytes(), bits=(16,), photometric=0)
    assert [pixel(file, 0)[0], pixel(file, 1)[0]] == [255, 0]


def test_8_bit_tiff_where_white_is_zero() -> None:
    file = tiff(2, 1, bytes([0, 200]), photometric=0)
    assert [pixel(file, 0)[0], pixel(file, 1)[0]] == [255, 55]


def test_12_bit_tiff() -> None:
    # 0x800 and 0xFFF, packed
    file = tiff(2, 1, bytes([0x80, 0x0F, 0xFF]), bits=(12,))
    assert [pixel(file, 0)[0], pixel(file, 1)[0]] == [0x80, 0xFF]


@pytest.mark.parametrize("compression", [None, "tiff_adobe_deflate"])
def test_48_bit_tiff(compression: str | None) -> None:
    file = tiff(1, 1, struct.pack("<3H", 0xFFFF, 0x8000, 0x0100), bits=(16, 16, 16), photometric=2)
    assert pixel(file) == (0xFF, 0x80, 0x01)
    wide = Image.fromarray(np.full((8, 8), 0x7F00, np.uint16))
    assert pixel(encoded(wide, "TIFF", compression=compression)) == (0x7F, 0x7F, 0x7F)


def test_float_tiff_from_black_to_white() -> None:
    samples = np.array([[0.0, 0.5, 1.0]], np.float32)
    file = encoded(Image.fromarray(samples), "TIFF")
    assert [pixel(file, x)[0] for x in range(3)] == [0, 128, 255]


@pytest.mark.parametrize("samples", [[0.0, 200.0], [-5.0, 0.5], [float("nan"), 0.5], [float("inf"), 0.0]])
def test_float_tiff_without_defined_brightness_is_refused(samples: list[float]) -> None:
    with pytest.raises(ImageError) as caught:
        decode_image(encoded(Image.fromarray(np.array([samples], np.float32)), "TIFF"))
    assert caught.value.code == "image_undecodable"
    assert "floating-point" in caught.value.detail


def test_32_bit_integer_tiff_is_refused() -> None:
    with pytest.raises(ImageError) as caught:
        decode_image(encoded(Image.fromarray(np.array([[1, 70000]], np.int32)), "TIFF"))
    assert caught.value.code == "image_undecodable"


# ---- transparency


def test_palette_with_graded_transparency() -> None:
    palette = bytes([255, 0, 0, 0, 0, 255, 0, 0, 0, 9, 9, 9])
    file = png(4, 1, 8, 3, bytes([0, 1, 2, 3]), chunk(b"PLTE", palette), chunk(b"tRNS", bytes([0, 255, 128])))
    assert pixel(file, 0) == (255, 255, 255)
    assert pixel(file, 1) == (0, 0, 255)
    assert near(pixel(file, 2), (127, 127, 127), 1)
    assert pixel(file, 3) == (9, 9, 9)


def test_palette_with_one_transparent_entry() -> None:
    file = png(2, 1, 8, 3, bytes([0, 1]), chunk(b"PLTE", bytes([255, 0, 0, 0, 0, 255])), chunk(b"tRNS", b"\0"))
    assert [pixel(file, 0), pixel(file, 1)] == [(255, 255, 255), (0, 0, 255)]


@pytest.mark.parametrize(("depth", "row", "key"), [(2, 0b01_11_00_00, 1), (4, 0x5F, 5), (8, 0x50, 0x50)])
def test_transparent_grey_level(depth: int, row: int, key: int) -> None:
    width = 1 if depth == 8 else 2
    file = png(width, 1, depth, 0, bytes([row]), chunk(b"tRNS", struct.pack(">H", key)))
    assert pixel(file, 0) == (255, 255, 255)
    other = png(width, 1, depth, 0, bytes([row]), chunk(b"tRNS", struct.pack(">H", key ^ 2)))
    assert pixel(other, 0) != (255, 255, 255)


def test_transparent_16_bit_grey_level_is_exact() -> None:
    file = png(2, 1, 16, 0, struct.pack(">2H", 0x1234, 0x1235), chunk(b"tRNS", struct.pack(">H", 0x1234)))
    assert [pixel(file, 0)[0], pixel(file, 1)[0]] == [255, 0x12]


def test_transparent_colour() -> None:
    key = chunk(b"tRNS", struct.pack(">3H", 255, 0, 0))
    file = png(3, 1, 8, 2, bytes([255, 0, 0, 255, 0, 1, 0, 0, 0]), key)
    assert [pixel(file, x) for x in range(3)] == [(255, 255, 255), (255, 0, 1), (0, 0, 0)]


def test_grey_with_alpha() -> None:
    file = png(3, 1, 8, 4, bytes([0, 0, 0, 255, 0, 51]))
    assert [pixel(file, x)[0] for x in range(3)] == [255, 0, 204]


@pytest.mark.parametrize("kind", ["WEBP", "TIFF", "AVIF", "HEIC"])
def test_alpha_lies_on_white(kind: str) -> None:
    pixels = np.zeros((64, 64, 4), np.uint8)
    pixels[:, :32] = (255, 0, 0, 0)
    pixels[:, 32:] = (0, 0, 255, 255)
    options = {"WEBP": {"lossless": True, "exact": True}, "AVIF": {"quality": 95}, "HEIC": {"quality": 95}}
    file = encoded(Image.fromarray(pixels), kind, **options.get(kind, {}))
    assert near(pixel(file, 8, 32), (255, 255, 255), 4)
    assert near(pixel(file, 56, 32), (0, 0, 255), 16)


@pytest.mark.parametrize(("extra", "samples"), [(1, (0, 0, 128, 128)), (2, (0, 0, 255, 128))])
def test_premultiplied_and_straight_alpha_in_tiff(extra: int, samples: tuple[int, ...]) -> None:
    file = tiff(1, 1, bytes(samples), bits=(8, 8, 8, 8), photometric=2, t338=(3, [extra]))
    assert near(pixel(file), (127, 127, 255), 2)


def test_premultiplied_grey_in_tiff() -> None:
    file = tiff(1, 1, bytes((64, 128)), bits=(8, 8), t338=(3, [1]))
    assert near(pixel(file), (191, 191, 191), 2)


def test_bitmap_alpha_counts_unless_it_is_all_zero() -> None:
    masks = struct.pack("<IIII", 0xFF0000, 0xFF00, 0xFF, 0xFF000000)

    def with_alpha(*pixels: tuple[int, int, int, int]) -> bytes:
        body = b"".join(bytes(each) for each in pixels)
        head = struct.pack("<IiiHHIIiiII", 124, len(pixels), 1, 1, 32, 3, len(body), 0, 0, 0, 0)
        info = (head + masks).ljust(124, b"\0")
        return b"BM" + struct.pack("<IHHI", 138 + len(body), 0, 0, 138) + info + body

    assert pixel(with_alpha((0, 0, 255, 0), (0, 0, 255, 255)), 0) == (255, 255, 255)
    assert pixel(with_alpha((0, 0, 255, 0), (0, 0, 255, 255)), 1) == (255, 0, 0)
    assert pixel(with_alpha((0, 0, 255, 0), (0, 0, 255, 0)), 0) == (255, 0, 0)


def test_32_bit_bitmap_has_no_alpha() -> None:
    assert pixel(bmp(1, 1, 32, bytes((30, 20, 10, 0)))) == (10, 20, 30)


# ---- CMYK


def _cmyk_file(ink: tuple[int, int, int, int], **options: object) -> bytes:
    return encoded(Image.new("CMYK", (32, 32), ink), "JPEG", quality=95, **options)


def test_cmyk_with_adobes_marker_is_stored_inverted() -> None:
    file = _cmyk_file((0, 255, 255, 0))
    assert b"Adobe" in file
    assert near(pixel(file), (255, 0, 0), 6)


def test_cmyk_without_adobes_marker_is_stored_as_ink() -> None:
    # The encoder wrote inverted samples; without the marker the same samples are ink: inverted (0, 255, 255, 0) is
    # (255, 0, 0, 255), which is black whatever the cyan.
    assert near(pixel(jpeg_without(_cmyk_file((0, 255, 255, 0)), 0xEE)), (0, 0, 0), 6)
    # ITU-T T.872: (0, 0, 0, 0) is white when there is no Adobe marker.
    assert near(pixel(jpeg_without(_cmyk_file((255, 255, 255, 255)), 0xEE)), (255, 255, 255), 6)


def test_cmyk_tiff_is_ink() -> None:
    file = tiff(2, 1, bytes((0, 255, 255, 0, 0, 0, 0, 255)), bits=(8, 8, 8, 8), photometric=5)
    assert [pixel(file, 0), pixel(file, 1)] == [(255, 0, 0), (0, 0, 0)]


def test_cmyk_profile_is_used() -> None:
    # A press on which cyan prints as a neutral grey of L* 50, which is sRGB 119.
    profile = icc_cmyk({(0, 0, 0, 0): (100, 0, 0), (1, 0, 0, 0): (50, 0, 0)}, default=(0, 0, 0))
    assert near(pixel(_cmyk_file((255, 0, 0, 0), icc_profile=profile)), (119, 119, 119), 4)
    assert near(pixel(_cmyk_file((255, 0, 0, 0))), (0, 255, 255), 6)


# ---- profiles


def to_srgb(colour: tuple[int, int, int], primaries: list[tuple[float, float]], gamma: float | None) -> tuple[int, ...]:
    """Colorimetry by the book: linearise, go through XYZ (white D65 on both sides), clip, encode as sRGB."""
    encoded_ = np.array(colour) / 255
    linear = (
        encoded_**gamma
        if gamma
        else np.where(encoded_ <= 0.04045, encoded_ / 12.92, ((encoded_ + 0.055) / 1.055) ** 2.4)
    )
    out = np.clip(np.linalg.inv(rgb_to_xyz(SRGB)) @ rgb_to_xyz(primaries) @ linear, 0, 1)
    curved = np.where(out <= 0.0031308, out * 12.92, 1.055 * out ** (1 / 2.4) - 0.055)
    return tuple(int(each) for each in np.rint(curved * 255))


def test_the_book_agrees_with_a_known_value() -> None:
    # Red of sRGB is (234, 51, 35) in Display P3, as CSS Color 4 has it: color(display-p3 0.9175 0.2003 0.1386).
    assert near(to_srgb((234, 51, 35), DISPLAY_P3, None), (255, 0, 0), 3)


@pytest.mark.parametrize("colour", [(234, 51, 35), (200, 100, 50), (60, 180, 90), (0, 255, 0), (128, 128, 128)])
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF", "AVIF", "HEIC"])
def test_display_p3_is_converted(kind: str, colour: tuple[int, int, int]) -> None:
    options = {
        "JPEG": {"quality": 100, "subsampling": 0},
        "WEBP": {"lossless": True},
        "AVIF": {"quality": 100, "subsampling": "4:4:4"},
        "HEIC": {"quality": 100, "chroma": 444},
    }
    file = encoded(
        Image.new("RGB", (16, 16), colour), kind, icc_profile=icc_matrix(DISPLAY_P3, None), **options.get(kind, {})
    )
    assert near(pixel(file), to_srgb(colour, DISPLAY_P3, None), 6)


@pytest.mark.parametrize("colour", [(200, 100, 50), (30, 120, 220)])
def test_adobe_rgb_is_converted(colour: tuple[int, int, int]) -> None:
    file = encoded(Image.new("RGB", (4, 4), colour), "PNG", icc_profile=icc_matrix(ADOBE_RGB, 563 / 256))
    expected = to_srgb(colour, ADOBE_RGB, 563 / 256)
    assert not near(colour, expected, 8)
    assert near(pixel(file), expected, 3)


def test_an_srgb_profile_changes_nothing() -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (32, 32, 3), dtype=np.uint8)
    for profile in (icc_matrix(SRGB, None), ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()):
        assert np.array_equal(decode_image(encoded(pixels, "PNG", icc_profile=profile)).pixels, pixels)


def test_profile_applies_under_transparency() -> None:
    pixels = np.array([[[200, 100, 50, 255], [200, 100, 50, 0]]], np.uint8)
    file = encoded(pixels, "PNG", icc_profile=icc_matrix(DISPLAY_P3, None))
    assert near(pixel(file, 0), to_srgb((200, 100, 50), DISPLAY_P3, None), 3)
    assert pixel(file, 1) == (255, 255, 255)


def test_profile_applies_to_a_palette() -> None:
    picture = Image.new("P", (2, 2), 0)
    picture.putpalette([200, 100, 50])
    file = encoded(picture, "PNG", icc_profile=icc_matrix(DISPLAY_P3, None))
    assert near(pixel(file), to_srgb((200, 100, 50), DISPLAY_P3, None), 3)


def test_grey_profile() -> None:
    curve = b"curv" + bytes(4) + struct.pack(">IHxx", 1, 256)  # gamma 1: linear light
    white = b"XYZ " + bytes(4) + struct.pack(">3i", 63190, 65536, 54061)
    profile = icc(b"mntr", b"GRAY", b"XYZ ", {b"kTRC": curve, b"wtpt": white})
    file = encoded(Image.new("L", (4, 4), 55), "PNG", icc_profile=profile)
    linear = 55 / 255
    expected = round((1.055 * linear ** (1 / 2.4) - 0.055) * 255)
    assert near(pixel(file), (expected,) * 3, 3)


P3 = icc_matrix(DISPLAY_P3, None)


@pytest.mark.parametrize(
    "profile",
    [
        b"",
        b"\0",
        b"junk" * 100,
        P3[:200],
        P3[:128] + b"\xff" * (len(P3) - 128),
        P3.replace(b"RGB ", b"CMYK"),
        P3.replace(b"RGB ", b"GRAY"),
        P3.replace(b"curv", b"xxxx"),
        P3.replace(b"acsp", b"xxxx"),
        P3 + bytes(5 * 2**20),
    ],
    ids=lambda profile: f"{len(profile)}-{profile[120:134].hex()}",
)
@pytest.mark.parametrize("mode", ["RGB", "L", "CMYK"])
def test_a_bad_profile_is_ignored(profile: bytes, mode: str) -> None:
    kind = "TIFF" if mode == "CMYK" else "PNG"
    colour = {"RGB": (200, 100, 50), "L": 90, "CMYK": (0, 255, 255, 0)}[mode]
    expected = {"RGB": (200, 100, 50), "L": (90, 90, 90), "CMYK": (255, 0, 0)}[mode]
    assert pixel(encoded(Image.new(mode, (4, 4), colour), kind, icc_profile=profile)) == expected


def test_profile_parts_of_a_jpeg() -> None:
    plain = encoded(Image.new("RGB", (16, 16), (200, 100, 50)), "JPEG", quality=100, subsampling=0)
    half = len(P3) // 2
    first, second = (
        (0xE2, b"ICC_PROFILE\0" + bytes((number, 2)) + part) for number, part in ((1, P3[:half]), (2, P3[half:]))
    )
    converted, as_stored = to_srgb((200, 100, 50), DISPLAY_P3, None), (200, 100, 50)
    assert near(pixel(jpeg_with(plain, first, second)), converted, 4)
    assert near(pixel(jpeg_with(plain, second, first)), converted, 4)
    assert near(pixel(jpeg_with(plain, first)), as_stored, 4)
    assert near(pixel(jpeg_with(plain, second)), as_stored, 4)


def test_profile_bomb_in_png_is_dropped() -> None:
    import zlib

    bomb = chunk(b"iCCP", b"x\0\0" + zlib.compress(bytes(200 * 2**20), 9))
    assert pixel(png_with(encoded(Image.new("RGB", (4, 4), (1, 2, 3)), "PNG"), bomb)) == (1, 2, 3)


# ---- other colour spaces


def test_lab_tiff() -> None:
    # L* 53.24, a* 80.09, b* 67.20 is red of sRGB (white D65; the profile connection's D50 moves it a little).
    file = tiff(1, 1, bytes((136, 80, 67)), bits=(8, 8, 8), photometric=8)
    assert near(pixel(file), (255, 0, 0), 24)
    assert near(pixel(tiff(1, 1, bytes((255, 0, 0)), bits=(8, 8, 8), photometric=8)), (255, 255, 255), 2)


def test_ycbcr_tiff() -> None:
    file = encoded(Image.new("RGB", (16, 16), (200, 100, 50)).convert("YCbCr"), "TIFF")
    assert near(pixel(file), (200, 100, 50), 3)


def test_palette_tiff_and_bitmap() -> None:
    picture = Image.new("P", (4, 4), 1)
    picture.putpalette([0, 0, 0, 10, 200, 30])
    for kind in ("TIFF", "BMP", "GIF", "PNG"):
        assert pixel(encoded(picture, kind)) == (10, 200, 30), kind


@pytest.mark.parametrize("kind", ["PNG", "BMP", "TIFF", "GIF", "WEBP", "AVIF", "JPEG"])
def test_bilevel_and_grey(kind: str) -> None:
    for mode, colour, expected in (("1", 1, 255), ("1", 0, 0), ("L", 90, 90)):
        picture = Image.new(mode, (16, 16), colour)
        if mode == "1" and kind in {"WEBP", "AVIF"}:
            picture = picture.convert("L")
        assert near(pixel(encoded(picture, kind)), (expected,) * 3, 3)


def test_pixels_are_read_only_and_own_their_memory() -> None:
    data = bytearray(encoded(Image.new("RGB", (4, 4), (1, 2, 3)), "BMP"))
    picture = decode_image(bytes(data))
    data[:] = bytes(len(data))
    assert picture.pixels[0, 0].tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="read-only"):
        picture.pixels[0, 0] = 0
    assert io.BytesIO(picture.pixels).read(3) == b"\1\2\3"
