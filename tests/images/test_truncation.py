"""Cut files are refused wherever the cut is; they never give pixels."""

from __future__ import annotations

import struct
import time
import zlib

import numpy as np
import pytest
from PIL import Image

from service.images import ImageError, decode_image
from tests.images.files import chunk, encoded, textured, tiff

PICTURE = textured()
ALPHA = PICTURE.convert("RGBA")
ALPHA.putalpha(Image.fromarray(np.tile(np.arange(160, dtype=np.uint8), (120, 1))))
TURNED = PICTURE.rotate(180)

FILES = {
    "jpeg": encoded(PICTURE, "JPEG"),
    "jpeg-progressive": encoded(PICTURE, "JPEG", progressive=True),
    "jpeg-restarts": encoded(PICTURE, "JPEG", restart_marker_blocks=3),
    "jpeg-grey": encoded(PICTURE.convert("L"), "JPEG"),
    "jpeg-cmyk": encoded(PICTURE.convert("CMYK"), "JPEG"),
    "png": encoded(PICTURE, "PNG"),
    "png-alpha": encoded(ALPHA, "PNG"),
    "apng": encoded(PICTURE, "PNG", save_all=True, append_images=[TURNED]),
    "gif": encoded(PICTURE.quantize(64), "GIF"),
    "gif-animated": encoded(PICTURE.quantize(64), "GIF", save_all=True, append_images=[TURNED.quantize(32)]),
    "webp": encoded(PICTURE, "WEBP"),
    "webp-lossless": encoded(PICTURE, "WEBP", lossless=True),
    "webp-alpha": encoded(ALPHA, "WEBP"),
    "webp-animated": encoded(PICTURE, "WEBP", save_all=True, append_images=[TURNED]),
    "bmp": encoded(PICTURE, "BMP"),
    "bmp-padded": encoded(PICTURE.crop((0, 0, 31, 20)), "BMP"),
    "bmp-palette": encoded(PICTURE.quantize(16), "BMP"),
    "tiff": encoded(PICTURE, "TIFF"),
    "tiff-lzw": encoded(PICTURE, "TIFF", compression="tiff_lzw"),
    "tiff-deflate": encoded(PICTURE, "TIFF", compression="tiff_adobe_deflate"),
    "tiff-jpeg": encoded(PICTURE, "TIFF", compression="jpeg"),
    "tiff-fax": encoded(PICTURE.convert("1"), "TIFF", compression="group4"),
    # The encoder puts four bytes behind the last directory that nothing refers to.
    "tiff-pages": encoded(PICTURE, "TIFF", save_all=True, append_images=[TURNED])[:-4],
    "tiff-big": encoded(PICTURE, "TIFF", big_tiff=True),
    "heic": encoded(PICTURE, "HEIC", quality=60),
    "heic-alpha": encoded(ALPHA, "HEIC", quality=60),
    "heic-grid": encoded(PICTURE, "HEIC", quality=60, tile_size=64),
    "avif": encoded(PICTURE, "AVIF"),
    "avif-alpha": encoded(ALPHA, "AVIF"),
    "avif-animated": encoded(PICTURE, "AVIF", save_all=True, append_images=[TURNED]),
}


def refusal(data: bytes) -> ImageError:
    started = time.process_time()
    with pytest.raises(ImageError) as caught:
        decode_image(data)
    assert time.process_time() - started < 2
    return caught.value


def cuts(length: int) -> list[int]:
    """Offsets: all near both ends, and some hundred between."""
    step = max(1, length // 150)
    return sorted({*range(min(64, length)), *range(0, length, step), *range(max(0, length - 24), length)})


@pytest.mark.parametrize("name", FILES)
def test_whole_files_are_decoded(name: str) -> None:
    assert decode_image(FILES[name]).pixels.shape[2] == 3


@pytest.mark.parametrize("name", FILES)
def test_no_cut_gives_pixels(name: str) -> None:
    file = FILES[name]
    for at in cuts(len(file)):
        error = refusal(file[:at])
        if at >= 16:
            assert error.code == "image_truncated", f"cut at {at} of {len(file)}: {error.detail}"


def test_stubs_are_undecodable() -> None:
    assert refusal(b"").code == "image_empty"
    for name, file in FILES.items():
        for at in range(1, 16):
            assert refusal(file[:at]).code == "image_undecodable", f"{name} cut at {at}"


@pytest.mark.parametrize("name", ["jpeg", "jpeg-progressive", "jpeg-restarts", "jpeg-grey", "jpeg-cmyk"])
@pytest.mark.parametrize("tail", [b"\0" * 5000, b"\xff" * 5000, b"<html>" * 500], ids=["zeros", "ones", "text"])
def test_a_lost_tail_that_was_filled_up(name: str, tail: bytes) -> None:
    """Downloads into preallocated files leave such tails."""
    file = FILES[name]
    for share in (0.5, 0.8, 0.95):
        refusal(file[: int(len(file) * share)] + tail)


@pytest.mark.parametrize("name", ["jpeg", "jpeg-restarts", "jpeg-grey", "jpeg-cmyk"])
def test_a_cut_jpeg_with_an_end_marker_put_behind_it(name: str) -> None:
    file = FILES[name]
    start = file.index(b"\xff\xda") + 14
    # All but the last block: 24 bytes.
    for at in range(start, len(file) - 24, 17):
        refusal(file[:at] + b"\xff\xd9")


@pytest.mark.parametrize("options", [{}, {"subsampling": 0}, {"quality": 95}])
def test_a_progressive_jpeg_cut_between_its_scans_and_closed(options: dict[str, int]) -> None:
    file = encoded(PICTURE, "JPEG", progressive=True, **options)
    scans = [at for at in range(len(file) - 1) if file[at : at + 2] == b"\xff\xda"]
    assert len(scans) == 10
    for at in scans[1:]:
        assert refusal(file[:at] + b"\xff\xd9").code == "image_truncated"


def test_mid_grey_pictures_are_no_cut_ones() -> None:
    """The grey that a decoder fills in is also a colour."""
    for options in ({}, {"progressive": True}, {"restart_marker_blocks": 2}):
        picture = PICTURE.copy()
        picture.paste((128, 128, 128), (0, 60, 160, 120))
        assert decode_image(encoded(picture, "JPEG", **options)).pixels[119, 159].tolist() == [128, 128, 128]


def test_gif_whose_picture_ends_early() -> None:
    file = FILES["gif"]
    for share in (0.3, 0.6, 0.9):
        # Cut within the pixel data at a block's end, then closed as the format wants it.
        refusal(_whole_blocks(file, int(len(file) * share)) + b"\0;")


def _whole_blocks(file: bytes, until: int) -> bytes:
    at = file.index(b",", 13 + 3 * 64) + 11
    while at + 1 + file[at] < until:
        at += 1 + file[at]
    return file[:at]


@pytest.mark.parametrize("interlaced", [0, 1])
@pytest.mark.parametrize("colour", [(0, 0, 0), (9, 120, 200)])
def test_png_whose_pixel_data_ends_early(colour: tuple[int, int, int], interlaced: int) -> None:
    width, height = 20, 13
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, interlaced))
    # Adam7 (PNG specification, 8.2): columns and rows of each pass of a 20 x 13 picture.
    passes = [(3, 2), (2, 2), (5, 2), (5, 4), (10, 3), (10, 7), (20, 6)] if interlaced else [(width, height)]
    rows = b"".join(b"\0" + bytes(colour) * columns for columns, lines in passes for _ in range(lines))
    for count in (0, 1, 50, len(rows) // 2, len(rows) - 61, len(rows) - 1):
        body = zlib.compress(rows[:count])
        error = refusal(b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", body) + chunk(b"IEND"))
        assert error.code == "image_truncated", count
    whole = b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND")
    assert (decode_image(whole).pixels == colour).all()
    assert decode_image(whole).pixels.shape == (height, width, 3)


def test_tiff_whose_compressed_data_ends_early() -> None:
    for count in (0, 10, 299):
        strip = zlib.compress(bytes(count))
        refusal(tiff(10, 10, strip, bits=(8, 8, 8), photometric=2, t259=(3, [8])))
    whole = tiff(10, 10, zlib.compress(bytes(300)), bits=(8, 8, 8), photometric=2, t259=(3, [8]))
    assert decode_image(whole).pixels.shape == (10, 10, 3)


@pytest.mark.parametrize("name", FILES)
def test_what_follows_the_picture_is_ignored(name: str) -> None:
    whole = decode_image(FILES[name]).pixels
    for tail in (b"\0" * 33, b"\xff" * 7, b"trailing notes of an editor", FILES["png"], FILES["jpeg"]):
        assert np.array_equal(decode_image(FILES[name] + tail).pixels, whole)
