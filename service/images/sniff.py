"""What kind of file the bytes are. Names and declared types are never asked: they are wrong too often."""

from __future__ import annotations

from enum import StrEnum

from service.errors import Code, ImageError
from service.images.refusal import undecodable, unsupported


class Format(StrEnum):
    """The accepted picture formats."""

    JPEG = "jpeg"
    PNG = "png"
    GIF = "gif"
    WEBP = "webp"
    BMP = "bmp"
    TIFF = "tiff"
    HEIC = "heic"
    AVIF = "avif"


ACCEPTED_FORMATS: tuple[str, ...] = tuple(str(each) for each in Format)
ACCEPTED_TEXT = "JPEG, PNG, GIF, WebP, BMP, TIFF, HEIC, AVIF"

# A file this short cannot be any picture; below it nothing is said about what was cut off.
_STUB_BYTES = 16

_MAGIC: tuple[tuple[bytes, Format], ...] = (
    (b"\xff\xd8\xff", Format.JPEG),
    (b"\x89PNG\r\n\x1a\n", Format.PNG),
    (b"GIF87a", Format.GIF),
    (b"GIF89a", Format.GIF),
    (b"II*\0", Format.TIFF),
    (b"MM\0*", Format.TIFF),
    (b"II+\0", Format.TIFF),
    (b"MM\0+", Format.TIFF),
)
_BMP_HEADER_SIZES = frozenset({12, 40, 52, 56, 64, 108, 124})

_AVIF_BRANDS = frozenset({b"avif", b"avis"})
_HEIC_BRANDS = frozenset({b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"hevs"})
# Brands of the container alone; which codec is inside shows in the items.
_GENERIC_BRANDS = frozenset({b"mif1", b"mif2", b"msf1", b"miaf", b"MiHE", b"MiHB", b"MA1A", b"MA1B"})
_MAX_BRANDS = 64

# What people really send by mistake, named so that they see the mistake.
_OTHERS: tuple[tuple[bytes, str], ...] = (
    (b"%PDF-", "a PDF document"),
    (b"MZ", "a Windows executable"),
    (b"\x7fELF", "a Linux executable"),
    (b"\xcf\xfa\xed\xfe", "a macOS executable"),
    (b"\x1f\x8b", "gzip data"),
    (b"PK\x03\x04", "a ZIP archive (or an office document)"),
    (b"PK\x05\x06", "a ZIP archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"\x28\xb5\x2f\xfd", "Zstandard data"),
    (b"BZh", "bzip2 data"),
    (b"\xfd7zXZ\0", "xz data"),
    (b"8BPS", "a Photoshop document"),
    (b"%!PS", "PostScript"),
    (b"\xc5\xd0\xd3\xc6", "PostScript"),
    (b"\0\0\x01\0", "a Windows icon"),
    (b"\0\0\x02\0", "a Windows cursor"),
    (b"\0\0\0\x0cjP  \r\n\x87\n", "a JPEG 2000 picture"),
    (b"\xff\x4f\xff\x51", "a JPEG 2000 picture"),
    (b"\xff\x0a", "a JPEG XL picture"),
    (b"\0\0\0\x0cJXL \r\n\x87\n", "a JPEG XL picture"),
    (b"qoif", "a QOI picture"),
    (b"icns", "a macOS icon"),
    (b"\x76\x2f\x31\x01", "an OpenEXR picture"),
    (b"#?RADIANCE", "a Radiance HDR picture"),
    (b"DDS ", "a DirectDraw texture"),
    (b"\x1aE\xdf\xa3", "a Matroska or WebM video"),
    (b"FLV\x01", "a Flash video"),
    (b"OggS", "Ogg audio or video"),
    (b"ID3", "an MP3 recording"),
    (b"fLaC", "a FLAC recording"),
    (b"SQLite format 3\0", "a SQLite database"),
    (b"version https://git-lfs", "a Git LFS pointer instead of the file itself"),
)


def sniff(data: bytes) -> Format:
    """The accepted format that `data` begins as.

    Raises:
        ImageError: `image_empty` for no bytes, `image_undecodable` for too few to tell, and
            `unsupported_media_type` (naming what was found and what is accepted) for everything else.
    """
    if not data:
        raise ImageError(Code.IMAGE_EMPTY, "The picture has no bytes. Check that the file was read before sending.")
    for magic, kind in _MAGIC:
        if data.startswith(magic):
            return _whole_enough(data, kind)
        if magic.startswith(data):
            raise undecodable(kind.upper(), f"there are only {len(data)} byte(s) of it")
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return _whole_enough(data, Format.WEBP)
    if data[4:8] == b"ftyp" and len(data) >= _STUB_BYTES:
        return _container_format(data)
    if data[:2] == b"BM" and int.from_bytes(data[14:18], "little") in _BMP_HEADER_SIZES:
        return _whole_enough(data, Format.BMP)
    found = _describe(data)
    if found is None:
        raise undecodable("", f"there are only {len(data)} byte(s), too few to tell what it is")
    raise unsupported(found, ACCEPTED_TEXT)


def _whole_enough(data: bytes, kind: Format) -> Format:
    if len(data) < _STUB_BYTES:
        raise undecodable(kind.upper(), f"there are only {len(data)} bytes of it")
    return kind


def _container_format(data: bytes) -> Format:
    """HEIC or AVIF by the brands in the `ftyp` box, which end where the box ends, whatever it claims."""
    end = min(int.from_bytes(data[:4], "big"), len(data), 16 + 4 * _MAX_BRANDS)
    major = data[8:12]
    brands = {major} | {data[at : at + 4] for at in range(16, end - 3, 4)}
    # The major brand decides where both codecs are listed.
    for brand_set in ({major}, brands):
        if brand_set & _AVIF_BRANDS:
            return Format.AVIF
        if brand_set & _HEIC_BRANDS:
            return Format.HEIC
    if brands & _GENERIC_BRANDS:
        # No codec among the brands: the codec configuration that the file carries tells it.
        head = data[: 64 * 1024]
        return Format.AVIF if b"av01" in head and b"hvc1" not in head else Format.HEIC
    shown = "".join(chr(each) if 32 < each < 127 else "?" for each in major)
    if major in {b"isom", b"iso2", b"mp41", b"mp42", b"avc1", b"qt  ", b"M4V "}:
        raise unsupported(f"an MP4 or QuickTime video (brand {shown})", ACCEPTED_TEXT)
    raise unsupported(f"an ISO media file of brand {shown}", ACCEPTED_TEXT)


def _describe(data: bytes) -> str | None:
    """A name for bytes that are no accepted picture; None where there are too few bytes to tell."""
    if len(data) < 4 or (len(data) < _STUB_BYTES and (data.startswith((b"RIFF", b"BM")) or b"ftyp" in data)):
        return None
    for magic, name in _OTHERS:
        if data.startswith(magic):
            return name
    if data[:4] == b"RIFF":
        return "a RIFF file that is not WebP (sound or video)"
    if len(data) < _STUB_BYTES and not data.isascii():
        return None
    head = data[:1024].removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if head.startswith((b"<svg", b"<?xml", b"<!doctype svg", b"<!--")) and b"<svg" in data[:4096].lower():
        return "an SVG drawing"
    if head.startswith((b"<!doctype html", b"<html", b"<head", b"<body", b"<!--", b"<script")):
        return "an HTML page"
    if head.startswith(b"<?xml"):
        return "an XML document"
    if head.startswith((b"{", b"[")):
        return "JSON or other text"
    if head.startswith((b"data:", b"ivborw0kggo", b"/9j/", b"r0lgod", b"uklgr")):
        return "base64 text of a picture; decode it first, or send it as base64"
    if _is_text(data[:1024]):
        return "plain text"
    return "bytes of an unknown kind" if len(data) >= _STUB_BYTES else None


def _is_text(head: bytes) -> bool:
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return True
    controls = sum(each < 32 and each not in b"\t\n\r\f" for each in head)
    if controls:
        return False
    try:
        # A cut through the last letter is no reason to call it binary.
        head[:-3].decode("utf-8") if len(head) > 3 else head.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
