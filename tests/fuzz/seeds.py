"""The files that the fuzzer starts from: every format in several kinds, small, and the collected cases."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
from PIL import Image

from tests.images.files import bmp, chunk, encoded, exif, gif, icc_cmyk, icc_matrix, jpeg_with, png, textured, tiff

CASES = Path(__file__).parents[1] / "cases" / "image"
P3 = [(0.680, 0.320), (0.265, 0.690), (0.150, 0.060)]


def seeds() -> dict[str, bytes]:
    """Name and bytes of each seed file; the same on every run."""
    picture = textured(40, 24)
    alpha = picture.convert("RGBA")
    alpha.putalpha(Image.fromarray(np.tile(np.arange(40, dtype=np.uint8) * 6, (24, 1))))
    other = picture.transpose(Image.Transpose.ROTATE_180)
    palette, wide = picture.quantize(16), Image.fromarray(np.arange(960, dtype=np.uint16).reshape(24, 40) * 64)
    profile = icc_matrix(P3, None)
    press = icc_cmyk({(0, 0, 0, 0): (100, 0, 0)}, default=(30, 10, 10))
    block = b"Exif\0\0" + exif(6)
    made = {
        "jpeg": encoded(picture, "JPEG"),
        "jpeg-progressive": encoded(picture, "JPEG", progressive=True, exif=block),
        "jpeg-restarts": encoded(picture, "JPEG", restart_marker_blocks=2, subsampling=0),
        "jpeg-grey": encoded(picture.convert("L"), "JPEG"),
        "jpeg-cmyk": encoded(picture.convert("CMYK"), "JPEG", icc_profile=press),
        "jpeg-profile": encoded(picture, "JPEG", icc_profile=profile),
        "jpeg-trailing": jpeg_with(encoded(picture, "JPEG"), (0xE1, block), (0xFE, b"note")) + b"trailing" * 20,
        "jpeg-mpo": encoded(picture, "MPO", save_all=True, append_images=[other]),
        "png": encoded(picture, "PNG"),
        "png-alpha": encoded(alpha, "PNG", exif=block),
        "png-palette": encoded(palette, "PNG", transparency=bytes(range(0, 256, 16))),
        "png-16": encoded(wide, "PNG"),
        "png-profile": encoded(picture, "PNG", icc_profile=profile),
        "png-key": png(2, 2, 2, 0, b"\x10\x40", chunk(b"tRNS", b"\0\1")),
        "apng": encoded(picture, "PNG", save_all=True, append_images=[other]),
        "gif": encoded(palette, "GIF"),
        "gif-animated": encoded(palette, "GIF", save_all=True, append_images=[other.quantize(8)], transparency=1),
        "gif-small-frame": gif((9, 7), (2, 1, 4, 4), colours=b"\xff\0\0\0\0\xff", data=b"\x02\x03\x84\x8f\x05\0"),
        "webp": encoded(picture, "WEBP", exif=block, icc_profile=profile),
        "webp-lossless": encoded(picture, "WEBP", lossless=True),
        "webp-alpha": encoded(alpha, "WEBP"),
        "webp-animated": encoded(picture, "WEBP", save_all=True, append_images=[other]),
        "bmp": encoded(picture, "BMP"),
        "bmp-palette": encoded(palette, "BMP"),
        "bmp-1": encoded(picture.convert("1"), "BMP"),
        "bmp-alpha": encoded(alpha, "BMP"),
        "bmp-rle8": bmp(8, 2, 8, b"\x04\x01\x04\x02\0\0\0\x03\1\2\3\0\x05\2\0\1", compression=1, palette=bytes(1024)),
        "bmp-rle4": bmp(8, 2, 4, b"\x08\x12\0\0\x08\x34\0\1", compression=2, palette=bytes(64)),
        "tiff": encoded(picture, "TIFF", tiffinfo={274: 6}, icc_profile=profile),
        "tiff-lzw": encoded(alpha, "TIFF", compression="tiff_lzw"),
        "tiff-deflate": encoded(picture, "TIFF", compression="tiff_adobe_deflate"),
        "tiff-jpeg": encoded(picture, "TIFF", compression="jpeg"),
        "tiff-g4": encoded(picture.convert("1"), "TIFF", compression="group4"),
        "tiff-g3": encoded(picture.convert("1"), "TIFF", compression="group3"),
        "tiff-packbits": encoded(palette, "TIFF", compression="packbits"),
        "tiff-pages": encoded(picture, "TIFF", save_all=True, append_images=[other]),
        "tiff-big": encoded(picture, "TIFF", big_tiff=True),
        "tiff-16": encoded(wide, "TIFF", compression="tiff_lzw"),
        "tiff-float": encoded(Image.fromarray(np.linspace(0, 1, 64, dtype=np.float32).reshape(8, 8)), "TIFF"),
        "tiff-lab": tiff(2, 2, bytes(range(12)), bits=(8, 8, 8), photometric=8),
        "tiff-cmyk": encoded(picture.convert("CMYK"), "TIFF", icc_profile=press),
        "tiff-motorola": tiff(4, 4, struct.pack(">16H", *range(0, 65536, 4096)), bits=(16,), order=">"),
        "tiff-tiles": tiff(16, 16, bytes(768), bits=(8, 8, 8), photometric=2, t322=(3, [16]), t323=(3, [16])),
        "heic": encoded(picture, "HEIC", quality=50),
        "heic-alpha": encoded(alpha, "HEIC", quality=50, exif=block),
        "heic-profile": encoded(picture, "HEIC", quality=50, icc_profile=profile),
        "heic-grid": encoded(textured(130, 130), "HEIC", quality=10, tile_size=64),
        "avif": encoded(picture, "AVIF", exif=block, icc_profile=profile),
        "avif-alpha": encoded(alpha, "AVIF"),
        "avif-animated": encoded(picture, "AVIF", save_all=True, append_images=[other]),
        "avif-10-bit": encoded(picture, "AVIF", quality=20, subsampling="4:2:2"),
    }
    cases = {f"case-{path.name}": path.read_bytes() for path in sorted(CASES.iterdir()) if path.stat().st_size < 8192}
    return made | cases
