"""TIFF: the first page's directory is judged, and rewritten with only the tags that draw.

The rewritten directory is appended to the file and the header is pointed at it: later pages, EXIF and maker notes are
then out of the decoder's reach, while all offsets stay as they were.
"""

from __future__ import annotations

import numpy as np

from service.images.formats import tiff_directory as tags
from service.images.formats.tiff_directory import KIND, Directory
from service.images.limits import ImageLimits
from service.images.prepared import Prepared
from service.images.refusal import undecodable, unsupported
from service.images.sniff import ACCEPTED_TEXT

_RAW = 1
# CCITT run lengths, G3, G4, LZW, JPEG, deflate (two numbers), PackBits. Left out are old-style JPEG, which is read
# wrongly more often than rightly, and the codecs whose memory a small file can drive up (LZMA, Zstandard, WebP).
_COMPRESSIONS = frozenset({_RAW, 2, 3, 4, 5, 7, 8, 32946, 32773})
_YCBCR = 6
_WHITE_IS_ZERO = 0
_SEPARATE_PLANES = 2
_SIGNED = 2
_MAX_PROFILE_BYTES = 4 * 2**20
# A decoder's buffer for one strip or tile, in bytes for each pixel that the limit allows.
_STRIP_BYTES_PER_PIXEL = 4


def prepare(data: bytes, limits: ImageLimits) -> Prepared:
    """Read and check the first page of a TIFF or BigTIFF file.

    Raises:
        ImageError: `image_too_large`, `image_truncated`, `image_undecodable`, or `unsupported_media_type` for a
            compression that is not accepted.
    """
    page = tags.read_directory(data)
    if _is_camera_raw(page):
        raise unsupported("a camera raw file, of which only a small preview could be read", ACCEPTED_TEXT)
    width, height = page.value(tags.WIDTH, 0), page.value(tags.HEIGHT, 0)
    limits.check_pixels(max(width, 0), max(height, 0))
    if width <= 0 or height <= 0:
        raise undecodable(KIND, "its width or height is zero or missing")
    compression = page.value(tags.COMPRESSION, _RAW)
    if compression not in _COMPRESSIONS:
        raise unsupported(f"a TIFF picture with compression number {compression}", ACCEPTED_TEXT)
    if (kinds := page.values(tags.SAMPLE_FORMAT)) is not None and (kinds == _SIGNED).any():
        raise undecodable(KIND, "its samples are signed numbers, which say nothing about brightness")
    bits = page.values(tags.BITS)
    depth = 1 if bits is None else int(bits.max())
    _check_strips(page, width, height, depth, limits)
    tags.check_later_pages(page)
    turn = page.optional_value(tags.ORIENTATION, 1)
    return Prepared(
        width=width,
        height=height,
        payload=tags.drawing_alone(tags.with_wide_palette(page)),
        orientation=turn if 1 <= turn <= 8 else 1,
        icc=page.blob(tags.ICC, _MAX_PROFILE_BYTES),
        # The decoder inverts "0 is white" up to 8 bits a sample itself, and not above.
        inverted=page.value(tags.PHOTOMETRIC, 1) == _WHITE_IS_ZERO and depth > 8,
        grey_bits=12 if depth == 12 else 16,
    )


def _is_camera_raw(page: Directory) -> bool:
    """DNG says so; others have a reduced picture on the first page and the sensor's data in directories below it."""
    reduced = page.optional_value(tags.PAGE_KIND, 0) & 1
    return tags.DNG_VERSION in page.entries or (bool(reduced) and tags.SUB_DIRECTORIES in page.entries)


def _check_strips(page: Directory, width: int, height: int, depth: int, limits: ImageLimits) -> None:
    """See that all strips or tiles lie within the file and that none needs an absurd buffer."""
    samples = page.value(tags.SAMPLES, 1)
    if not 1 <= samples <= 8 or not 1 <= depth <= 64:
        raise undecodable(KIND, "its samples are of a kind that cannot be read")
    tiled = tags.STRIP_OFFSETS not in page.entries
    across = page.value(tags.TILE_WIDTH, 0) if tiled else width
    down = page.value(tags.TILE_HEIGHT, 0) if tiled else min(page.value(tags.ROWS_PER_STRIP, height), height)
    offsets, sizes = page.pieces()
    if offsets is None or across <= 0 or down <= 0:
        raise undecodable(KIND, "there is no picture data in it")
    if tiled and across * down > max(4 * width * height, 2**22):
        raise undecodable(KIND, "its tiles are far larger than the picture")
    planes = samples if page.value(tags.PLANAR, 1) == _SEPARATE_PLANES else 1
    row_bytes = (across * depth * (samples // planes) + 7) // 8
    if row_bytes * down > _STRIP_BYTES_PER_PIXEL * limits.max_pixels:
        raise undecodable(KIND, "one strip of it needs too much memory")
    rows = -(-height // down)
    needed = -(-width // across) * rows * planes
    if len(offsets) < needed:
        raise undecodable(KIND, "some of its strips or tiles are not listed")
    if page.value(tags.COMPRESSION, _RAW) == _RAW:
        _check_sampling(page)
        sizes = np.full(needed, row_bytes * down)
        if not tiled:  # the last strip of each plane may be lower
            sizes[rows - 1 :: rows] = row_bytes * (height - (rows - 1) * down)
    elif sizes is None or len(sizes) < needed or not sizes[:needed].any():
        raise undecodable(KIND, "the sizes of its strips are missing")
    tags.check_inside(page.data, offsets[:needed], sizes[:needed])


def _check_sampling(page: Directory) -> None:
    subsampling = page.values(tags.SUBSAMPLING)
    if page.value(tags.PHOTOMETRIC, 1) == _YCBCR and (subsampling is None or subsampling.max() > 1):
        # The decoder would read full colour samples that are not there.
        raise undecodable(KIND, "uncompressed YCbCr with reduced colour is not supported")
