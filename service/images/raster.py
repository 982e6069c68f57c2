"""The boundary to the decoders: the one place where their exceptions become an `ImageError`.

Everything here runs on a payload that a format's reader has checked. Pillow and pillow-heif are shaped for
this service when the module is imported: no Pillow plugin but the format's own is ever tried, pillow-heif is
not registered with Pillow at all, and no decoder starts threads of its own (the pool that calls is the one
that bounds them).
"""

from __future__ import annotations

import io
import logging
import struct
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

import pillow_heif
from PIL import AvifImagePlugin, Image, ImageFile

from service.errors import Code, ImageError
from service.images import exif
from service.images.quiet import silence_libtiff
from service.images.refusal import truncated, undecodable
from service.images.sniff import Format

# The pixel limit is checked from the header, per call; Pillow's own limit is global and half of it only
# warns.
Image.MAX_IMAGE_PIXELS = None
ImageFile.LOAD_TRUNCATED_IMAGES = False
AvifImagePlugin.DEFAULT_MAX_THREADS = 1
pillow_heif.options.DECODE_THREADS = 1
pillow_heif.options.THUMBNAILS = False
pillow_heif.options.DEPTH_IMAGES = False
pillow_heif.options.AUX_IMAGES = False
silence_libtiff()
logging.getLogger("PIL").setLevel(logging.CRITICAL)
# Pillow warns about odd metadata and palettes. Nobody reads it, and a filter set here once is safe among
# threads, which `warnings.catch_warnings` is not.
warnings.filterwarnings("ignore", module=r"PIL\.")

_PLUGIN = {
    Format.JPEG: "JPEG",
    Format.PNG: "PNG",
    Format.GIF: "GIF",
    Format.WEBP: "WEBP",
    Format.BMP: "BMP",
    Format.TIFF: "TIFF",
    Format.AVIF: "AVIF",
}

# Everything that the decoders were seen or are documented to raise on damaged input.
_DECODER_ERRORS = (
    OSError,
    SyntaxError,
    ValueError,
    RuntimeError,
    EOFError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    AssertionError,
    BufferError,
    struct.error,
    zlib.error,
    Image.DecompressionBombError,
)


@contextmanager
def memory_boundary(kind: str) -> Iterator[None]:
    """Turn a lack of memory into `image_too_large`, and let everything else pass."""
    try:
        yield
    except MemoryError as error:
        raise ImageError(
            Code.IMAGE_TOO_LARGE,
            f"There is not enough memory for this {kind.upper()} picture. Send a smaller copy.",
        ) from error


@contextmanager
def decoder_boundary(kind: Format) -> Iterator[None]:
    """Turn whatever a decoder raises, but for a lack of memory, into `image_truncated` or `image_undecodable`."""
    name = kind.upper()
    try:
        yield
    except ImageError:
        raise
    except _DECODER_ERRORS as error:
        # The decoder's words may hold bytes of the file, so they stay in the chain and out of the reply.
        if "truncated" in str(error).lower() or isinstance(error, EOFError):
            raise truncated(name, "inside its pixel data") from error
        raise undecodable(name, "its data is damaged or of a kind that is not supported") from error


def rasterise(kind: Format, payload: bytes) -> tuple[Image.Image, int]:
    """Decode the first picture of a checked payload.

    Returns:
        The loaded picture in the decoder's own mode, and the orientation that the decoder left to be applied
        (1 where it turned the picture itself or the format has none).

    Raises:
        ImageError: for anything that the decoder raises.
    """
    with decoder_boundary(kind):
        if kind is Format.HEIC:
            return _heic(payload), exif.UPRIGHT
        with Image.open(io.BytesIO(payload), formats=(_PLUGIN[kind],)) as opened:
            # In one go: between blocks of the usual 64 KiB a decoder waits for the interpreter each time.
            opened.decodermaxblock = max(len(payload), ImageFile.MAXBLOCK)
            opened.load()
            # Only AVIF's plugin states a turn here, and takes it from the container's `irot` and `imir`.
            turn = exif.orientation(opened.info.get("exif", b"")) if kind is Format.AVIF else exif.UPRIGHT
        return opened, turn


def _heic(payload: bytes) -> Image.Image:
    opened = pillow_heif.HeifFile(  # type: ignore[no-untyped-call]
        io.BytesIO(payload), convert_hdr_to_8bit=True, hdr_to_16bit=True
    )
    picture: Image.Image = opened[opened.primary_index].to_pillow()
    picture.info = {}
    return picture
