"""Bytes to an upright RGB picture.

One decoder serves every route: upload, base64, data URL, address and batch give the same pixels or the same
refusal. Its policies:

| matter | policy |
|---|---|
| kind of file | by its bytes; names and declared types are ignored. JPEG (MPO too), PNG (APNG too), GIF, WebP, BMP, TIFF (BigTIFF too), HEIC and AVIF; anything else is `unsupported_media_type` and named |
| size | at most 20 MiB and 64 Mi pixels (67,108,864: the 64-megapixel pictures of phones pass), no edge above 1,000,000, decided from the header; `ImageLimits` changes it |
| several pictures | the first frame, page or MPO picture; later ones are not decoded. Of an APNG the default picture; of a GIF's or WebP's first frame, what it does not cover is transparent |
| transparency | laid on white |
| cut files | refused (`image_truncated`), never half decoded. This holds for whatever is missing: an end marker alone (JPEG's EOI, PNG's IEND, GIF's trailer) is also refused, since without it a cut cannot be told from a whole file. Bytes behind the end are ignored |
| orientation | EXIF 1 to 8 is applied (JPEG, PNG, WebP, TIFF); HEIC and AVIF are turned as their container says, which overrules EXIF by their standard. An unreadable or impossible value counts as upright; XMP is not asked |
| colour | an ICC profile is converted to sRGB (perceptual intent); a damaged, misplaced or over 4 MiB large one is ignored. Pictures without one are taken for sRGB; gamma and CICP tags are not interpreted |
| CMYK | by its profile, else by plain ink arithmetic; JPEG samples are inverted where Adobe's marker says so |
| more than 8 bits | the high byte (16-bit PNG and TIFF, 12-bit TIFF; 10- and 12-bit HEIC and AVIF by their decoders). Float TIFF: 0 is black, 1 is white, other ranges are refused, as are signed and 32-bit integers |
| TIFF | uncompressed, LZW, deflate, PackBits, JPEG, CCITT; other compressions and camera raw files are `unsupported_media_type` |
| BMP | all uncompressed kinds; run-length data up to 4 Mi pixels |
| metadata | dropped before a decoder sees it, but for orientation and profile; damage in it never refuses a picture |
| scale | every pixel, unless the caller says what it needs (`needed`): a JPEG is then decoded at 1/2, 1/4 or 1/8 of its size where that leaves 1.5 times what is needed (inks never) |
| disk | none is touched |
"""  # noqa: E501 - a table's rows are lines

from __future__ import annotations

from service.errors import ImageError
from service.images.decode import DecodedImage, decode_image
from service.images.files import read_picture
from service.images.limits import DEFAULT_LIMITS, ImageLimits
from service.images.peek import peek
from service.images.raster import memory_boundary
from service.images.reduced import Needed
from service.images.sniff import ACCEPTED_FORMATS
from service.images.sources import decode_base64, parse_data_url
from service.images.statistics import QUALITY, STATISTICS, STATISTICS_SIZE, picture_statistics

__all__ = [
    "ACCEPTED_FORMATS",
    "DEFAULT_LIMITS",
    "QUALITY",
    "STATISTICS",
    "STATISTICS_SIZE",
    "DecodedImage",
    "ImageError",
    "ImageLimits",
    "Needed",
    "decode_base64",
    "decode_image",
    "memory_boundary",
    "parse_data_url",
    "peek",
    "picture_statistics",
    "read_picture",
]
