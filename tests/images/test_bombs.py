"""Small files that ask for much: refused from the header, quickly, with little memory."""

from __future__ import annotations

import contextlib
import pickle
import struct
import subprocess
import sys
import time
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from service.images import DEFAULT_LIMITS, ImageError, ImageLimits, decode_image
from service.images.formats import coded_size
from tests.images.files import bmp, chunk, encoded, gif, jpeg_with, png_with, textured, tiff

ROOT = Path(__file__).parents[2]


def png_header(width: int, height: int) -> bytes:
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(bytes(64))) + chunk(b"IEND")


def jpeg_header(width: int, height: int, options: dict[str, object]) -> bytes:
    file = bytearray(encoded(textured(16, 16), "JPEG", **options))
    at = max(file.find(b"\xff\xc0"), file.find(b"\xff\xc2"))
    file[at + 5 : at + 9] = struct.pack(">HH", height, width)
    return bytes(file)


def webp_header(name: bytes, width: int, height: int) -> bytes:
    if name == b"VP8X":
        body = bytes(4) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    elif name == b"VP8L":
        body = b"\x2f" + struct.pack("<I", (width - 1) | (height - 1) << 14) + bytes(20)
    else:
        body = b"\x30\1\0\x9d\1\x2a" + struct.pack("<HH", width, height) + bytes(20)
    inner = name + struct.pack("<I", len(body)) + body + bytes(len(body) & 1)
    return b"RIFF" + struct.pack("<I", len(inner) + 4) + b"WEBP" + inner


def box_patched(file: bytes, width: int, height: int) -> bytes:
    """A HEIC or AVIF file with all its announced sizes changed."""
    out, at = bytearray(file), 0
    while (at := out.find(b"ispe", at + 1)) >= 0:
        out[at + 8 : at + 16] = struct.pack(">II", width, height)
    return bytes(out)


SMALL = textured(64, 64)
BOMBS = {
    "png": png_header(50_000, 50_000),
    "png-row": png_header(2**31 - 1, 1),
    "png-column": png_header(1, 2**31 - 1),
    "png-just-over": png_header(8192, 8193),
    "jpeg": jpeg_header(65_000, 65_000, {}),
    "jpeg-progressive": jpeg_header(65_535, 65_535, {"progressive": True}),
    "jpeg-just-over": jpeg_header(8192, 8193, {}),
    "gif-screen": gif((65_535, 65_535), (0, 0, 1, 1), colours=bytes(6), data=b"\x02\x02D\x01\0"),
    "gif-frame": gif((1, 1), (0, 0, 65_535, 65_535), colours=bytes(6), data=b"\x02\x02D\x01\0"),
    "gif-far-frame": gif((1, 1), (65_000, 65_000, 1, 1), colours=bytes(6), data=b"\x02\x02D\x01\0"),
    "webp-vp8": webp_header(b"VP8 ", 16_383, 16_383),
    "webp-vp8l": webp_header(b"VP8L", 16_384, 16_384),
    "webp-vp8x": webp_header(b"VP8X", 2**24, 2**24),
    "bmp": bmp(40_000, 40_000, 24, bytes(64)),
    "bmp-upside-down": bmp(40_000, -40_000, 24, bytes(64)),
    "bmp-rle": bmp(40_000, 40_000, 8, b"\0\1", compression=1, palette=bytes(1024)),
    "tiff": tiff(50_000, 50_000, bytes(64), bits=(8, 8, 8), photometric=2),
    "tiff-deflate": tiff(50_000, 50_000, zlib.compress(bytes(64)), t259=(3, [8])),
    "tiff-huge-numbers": tiff(2**32 - 1, 2**32 - 1, bytes(64)),
    "heic": box_patched(encoded(SMALL, "HEIC"), 30_000, 30_000),
    "heic-huge-numbers": box_patched(encoded(SMALL, "HEIC"), 2**32 - 1, 2**32 - 1),
    "avif": box_patched(encoded(SMALL, "AVIF"), 30_000, 30_000),
}


@pytest.mark.parametrize("name", BOMBS)
def test_the_header_alone_refuses(name: str) -> None:
    started = time.process_time()
    with pytest.raises(ImageError) as caught:
        decode_image(BOMBS[name])
    assert time.process_time() - started < 1
    assert caught.value.code == "image_too_large"
    assert caught.value.status == 413
    assert caught.value.extra["max_pixels"] == DEFAULT_LIMITS.max_pixels


@pytest.mark.parametrize(("width", "height"), [(1_000_001, 1), (1, 1_000_001), (1, 67_000_000)])
@pytest.mark.parametrize("kind", ["PNG", "BMP", "TIFF"])
def test_one_long_line_is_refused(kind: str, width: int, height: int) -> None:
    files = {
        "PNG": png_header(width, height),
        "BMP": bmp(width, height, 24, bytes(64)),
        "TIFF": tiff(width, height, bytes(64), bits=(8, 8, 8), photometric=2),
    }
    with pytest.raises(ImageError) as caught:
        decode_image(files[kind])
    assert caught.value.code == "image_too_large"
    assert caught.value.extra == {"width": width, "height": height, "max_edge": 1_000_000}


def test_the_longest_line_passes() -> None:
    file = encoded(Image.new("L", (1_000_000, 1), 90), "PNG")
    assert decode_image(file).width == 1_000_000


# A fresh process that has only ever decoded small pictures, since memory taken before would hide what these take.
MEASURE = """
import pickle, sys
from service.images import ImageError, decode_image
from tests.images.memory import peak_mib
good, hostile = pickle.load(sys.stdin.buffer)
for file in good:
    decode_image(file)
for name, file in hostile.items():
    before = peak_mib()
    try:
        decode_image(file)
    except ImageError:
        pass
    grown = peak_mib() - before
    assert grown < 16, f"{name} took {grown} MiB"
print("bounded")
"""


HOSTILE = {
    "png-text": png_with(encoded(SMALL, "PNG"), chunk(b"zTXt", b"x\0\0" + zlib.compress(bytes(64 * 2**20)))),
    "png-itext": png_with(encoded(SMALL, "PNG"), chunk(b"iTXt", b"x\0\1\0\0\0" + zlib.compress(bytes(64 * 2**20)))),
    "png-profile": png_with(encoded(SMALL, "PNG"), chunk(b"iCCP", b"x\0\0" + zlib.compress(bytes(64 * 2**20)))),
    "png-pixels": png_header(64, 64)[:33] + chunk(b"IDAT", zlib.compress(bytes(64 * 2**20))) + chunk(b"IEND"),
    "heic-stream": box_patched(encoded(Image.new("RGB", (1024, 1024)), "HEIC"), 64, 64),
    "tiff-tile": tiff(
        64, 64, bytes(64), t259=(3, [8]), t322=(4, [2**20]), t323=(4, [2**20]), t324=(4, [8]), t325=(4, [9])
    ),
}


def test_bombs_take_little_memory() -> None:
    good = [encoded(SMALL, kind) for kind in ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF", "HEIC", "AVIF")]
    ran = subprocess.run(
        [sys.executable, "-c", MEASURE],
        input=pickle.dumps((good, BOMBS | HOSTILE)),
        capture_output=True,
        check=False,
        cwd=ROOT,
    )
    assert ran.stdout.strip() == b"bounded", ran.stderr.decode()


@pytest.mark.parametrize("name", ["png-text", "png-itext", "png-profile"])
def test_metadata_bombs_are_dropped_and_the_picture_kept(name: str) -> None:
    assert np.array_equal(decode_image(HOSTILE[name]).pixels, np.asarray(SMALL))


def test_64_megapixel_phone_pictures_pass() -> None:
    for width, height in ((9248, 6936), (6936, 9248), (9216, 6912), (8192, 8192)):
        DEFAULT_LIMITS.check_pixels(width, height)
    assert 40e6 <= DEFAULT_LIMITS.max_pixels <= 144e6


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF", "HEIC", "AVIF"])
def test_the_limit_is_exact_for_every_format(kind: str) -> None:
    file = encoded(SMALL.quantize(8) if kind == "GIF" else SMALL, kind)
    assert decode_image(file, limits=ImageLimits(max_pixels=64 * 64)).width == 64
    with pytest.raises(ImageError) as caught:
        decode_image(file, limits=ImageLimits(max_pixels=64 * 64 - 1))
    assert caught.value.code == "image_too_large"


def test_too_many_bytes() -> None:
    file = encoded(SMALL, "PNG")
    assert decode_image(file, limits=ImageLimits(max_bytes=len(file))).width == 64
    with pytest.raises(ImageError) as caught:
        decode_image(file, limits=ImageLimits(max_bytes=len(file) - 1))
    assert caught.value.code == "image_too_large"
    assert caught.value.extra == {"bytes": len(file), "max_bytes": len(file) - 1}


@pytest.mark.parametrize("kind", ["HEIC", "AVIF"])
def test_the_stream_inside_a_container_cannot_be_larger_than_allowed(kind: str) -> None:
    file = box_patched(encoded(textured(256, 256), kind), 64, 64)
    with pytest.raises(ImageError) as caught:
        decode_image(file, limits=ImageLimits(max_pixels=200 * 200))
    assert caught.value.code == "image_too_large"
    assert "256 x 256" in caught.value.detail


def test_a_grid_cannot_be_larger_than_allowed() -> None:
    file = box_patched(encoded(textured(256, 256), "HEIC", tile_size=64), 64, 64)
    with pytest.raises(ImageError) as caught:
        decode_image(file, limits=ImageLimits(max_pixels=200 * 200))
    assert caught.value.code == "image_too_large"


@pytest.mark.parametrize(("width", "height"), [(64, 48), (1000, 8), (8, 1000)])
def test_stream_sizes_are_read_right(width: int, height: int) -> None:
    heic = encoded(textured(width, height), "HEIC")
    at = heic.index(b"hvcC")
    config = heic[at + 4 : at - 4 + int.from_bytes(heic[at - 4 : at], "big")]
    # The encoder codes whole blocks of 8 and no fewer than 64, and crops.
    assert list(coded_size.hevc_config_sizes(config)) == [tuple(max(64, -(-side // 8) * 8) for side in (width, height))]
    avif = encoded(textured(width, height), "AVIF")
    data = avif[avif.index(b"mdat") + 4 :]
    assert list(coded_size.av1_stream_sizes(data)) == [(width, height)]


def test_progressive_jpeg_with_too_many_scans_is_refused_at_once() -> None:
    file = encoded(Image.new("L", (8000, 8000), 90), "JPEG", progressive=True)
    last = file.rindex(b"\xff\xda")
    bomb = file[:-2] + file[last:-2] * 3000 + b"\xff\xd9"
    started = time.process_time()
    with pytest.raises(ImageError) as caught:
        decode_image(bomb)
    assert time.process_time() - started < 1
    assert caught.value.code == "image_undecodable"
    assert decode_image(file).width == 8000


def box(kind: bytes, *parts: bytes) -> bytes:
    body = b"".join(parts)
    return struct.pack(">I", 8 + len(body)) + kind + body


def heic(*parts: bytes, data: bytes = b"") -> bytes:
    """A HEIC container with these boxes in its `meta` box, and item 1 of type hvc1 as the picture."""
    info = box(b"infe", b"\2\0\0\0\0\1\0\0hvc1\0")
    first = (box(b"pitm", bytes(4), b"\0\1"), box(b"iinf", bytes(4), b"\0\1", info))
    return box(b"ftyp", b"heic\0\0\0\0mif1") + box(b"meta", bytes(4), *first, *parts) + box(b"mdat", data)


def many_locations() -> bytes:
    """A thousand pictures that all consist of the same 15 MB, in units of no length."""
    data = bytes(15_000_000)
    numbers = range(1, 1000)
    infos = [box(b"infe", b"\2\0\0\0", struct.pack(">HH", number, 0), b"hvc1\0") for number in numbers]
    places = [struct.pack(">HHHII", number, 0, 1, 100, len(data)) for number in numbers]
    config = box(b"hvcC", bytes(21) + b"\3\0")
    size = box(b"ispe", bytes(4), struct.pack(">II", 8, 8))
    links = [struct.pack(">HBBB", number, 2, 1, 2) for number in numbers]
    return heic(
        box(b"iinf", bytes(4), struct.pack(">H", len(infos)), *infos),
        box(b"iloc", bytes(4), b"\x44\0", struct.pack(">H", len(places)), *places),
        box(b"iprp", box(b"ipco", config, size), box(b"ipma", bytes(4), struct.pack(">I", len(links)), *links)),
        data=data,
    )


def overlapping_pages() -> bytes:
    """A TIFF whose later directories all lie over one another in the same bytes."""
    file = bytearray(tiff(2, 2, bytes(4)) + bytes(2_000_000))
    count = int.from_bytes(file[8:10], "little")
    struct.pack_into("<I", file, 10 + 12 * count, 1000)
    for page in range(400):
        struct.pack_into("<H", file, 1000 + 4 * page, 4000)
        struct.pack_into("<I", file, 1000 + 4 * page + 2 + 12 * 4000, 1000 + 4 * (page + 1))
    return bytes(file)


@pytest.mark.parametrize("parts", [b"!\xfe\0", b"\0"])
def test_a_gif_of_very_many_blocks_is_refused(parts: bytes) -> None:
    plain = gif((1, 1), (0, 0, 1, 1), colours=bytes(6), data=b"\x02\x02D\x01\0")
    before, after = plain[:19], plain[19:]  # behind the palette of two colours
    assert decode_image(before + parts * 100_000 + after).width == 1
    with pytest.raises(ImageError) as caught:
        decode_image(before + parts * 700_000 + after)
    assert caught.value.code == "image_undecodable"
    assert "blocks" in caught.value.detail


def test_files_of_very_many_small_parts_are_bounded_in_time() -> None:
    plain = encoded(SMALL, "JPEG")
    files = [
        jpeg_with(plain, *[(0xFE, b"")] * 1_000_000),
        png_with(encoded(SMALL, "PNG"), chunk(b"tEXt") * 1_000_000),
        encoded(SMALL, "WEBP")[:12] + b"JUNK\0\0\0\0" * 2_000_000,
        plain[:2] + b"\xff" * 15_000_000 + plain[2:],
        plain[:-2] + b"\xff" * 15_000_000 + b"\0" + plain[-2:],
        encoded(SMALL, "HEIC")[:28] + (b"\0\0\0\x08free" * 2_000_000),
        b"GIF89a" + bytes(7) + b"!\xfe\0" * 5_000_000,
        tiff(1, 2_000_000, bytes(64), t273=(4, [8] * 2_000_000), t278=(4, [1])),
        overlapping_pages(),
        heic(box(b"iprp", box(b"ipma", bytes(4), struct.pack(">I", 5_000_000), b"\0\1\0" * 5_000_000))),
        heic(box(b"iprp", box(b"ipco", box(b"free") * 2_000_000))),
        heic(box(b"iprp", box(b"ipco", box(b"hvcC", bytes(22) + b"\xff" + b"\x21\xff\xff" + bytes(131_070)) * 100))),
        heic(box(b"iref", bytes(4), box(b"dimg", b"\0\1\xff\xff", b"\0\1" * 65_535) * 100)),
        heic(box(b"iloc", bytes(4), b"\0\0", struct.pack(">H", 65_535), b"\0\1\0\0\xff\xff" * 65_535)),
        many_locations(),
        box(b"ftyp", b"avis\0\0\0\0msf1") + box(b"moov", box(b"trak", box(b"trak") * 4000) * 500),
        plain[:-2].replace(b"\xff\xc0", b"\xff\xdd\0\4\0\1\xff\xc0", 1) + b"\xff\xd0" * 9_000_000 + plain[-2:],
    ]
    for file in files:
        started = time.process_time()
        with contextlib.suppress(ImageError):
            decode_image(file)
        assert time.process_time() - started < 8, file[:60]
