"""HEIC and AVIF: every size that the container or a stream in it states is checked, and metadata is put out
of reach."""

from __future__ import annotations

from service.images.formats import coded_size, isobmff
from service.images.limits import ImageLimits
from service.images.prepared import Prepared
from service.images.refusal import truncated, undecodable, unsupported
from service.images.sniff import ACCEPTED_TEXT, Format

_CODED = {Format.HEIC: frozenset({b"hvc1", b"hev1"}), Format.AVIF: frozenset({b"av01"})}
_METADATA = frozenset({b"Exif", b"mime", b"uri "})
_CONTAINERS = frozenset({b"moov", b"trak", b"mdia", b"minf", b"stbl"})
# Boxes hold boxes; real files nest five deep.
_MAX_DEPTH = 8


def prepare_heic(data: bytes, limits: ImageLimits) -> Prepared:
    """Read and check a HEIC file.

    The turn that the container prescribes (`irot`, `imir`) is the decoder's business; EXIF has no say in HEIC
    and AVIF (ISO/IEC 23008-12) and is masked, as is XMP.

    Raises:
        ImageError: `image_too_large`, `image_truncated`, `image_undecodable`, or `unsupported_media_type`
            where the picture inside is of another codec.
    """
    return _prepare(data, limits, Format.HEIC)


def prepare_avif(data: bytes, limits: ImageLimits) -> Prepared:
    """Read and check an AVIF file; as `prepare_heic`."""
    return _prepare(data, limits, Format.AVIF)


def _prepare(data: bytes, limits: ImageLimits, kind: Format) -> Prepared:
    try:
        return _read(data, limits, kind)
    except (isobmff.ContainerError, coded_size.StreamError) as error:
        raise undecodable(kind.upper(), str(error)) from error


def _read(data: bytes, limits: ImageLimits, kind: Format) -> Prepared:
    name = kind.upper()
    meta_box = None
    meta = isobmff.Meta()
    cut = seen_content = False
    for box in isobmff.boxes(data, 0, len(data)):
        cut = cut or (box.end > len(data) and box.kind in {b"ftyp", b"meta", b"mdat", b"moov"})
        seen_content = seen_content or box.kind in {b"mdat", b"moov"}
        if box.kind == b"meta" and meta_box is None:
            meta_box = box
        elif box.kind == b"moov" and box.end <= len(data):
            _check_tracks(data, box, limits, meta, 0)
    if meta_box is None or meta_box.end > len(data):
        if cut or not seen_content:
            raise truncated(name, "inside its header")
        raise undecodable(name, "it holds no still picture")
    isobmff.read_meta(data, meta_box, meta)
    width, height = _check_sizes(data, meta, limits)
    primary = meta.items.get(meta.primary)
    if primary is None:
        raise undecodable(name, "it holds no still picture")
    parts = (
        [meta.items.get(each) for each in meta.tiles.get(meta.primary, [])] if primary.kind == b"grid" else [primary]
    )
    for part in parts:
        if part is None or part.kind not in _CODED[kind]:
            shown = "nothing" if part is None else part.kind.decode("latin-1").strip()
            raise unsupported(f"a {name} container with {shown!r} inside", ACCEPTED_TEXT)
    if not parts or not width or not height:
        raise undecodable(name, "its picture has no size")
    if cut or any(
        offset + length > len(data)
        for item in meta.items.values()
        if item.method == 0
        for offset, length in item.extents
    ):
        raise truncated(name, "inside its pixel data")
    pictures = [item for item in meta.items.values() if item.kind in _CODED[Format.HEIC] | _CODED[Format.AVIF]]
    if sum(length or len(data) for item in pictures for _, length in item.extents) > 2 * len(data):
        raise isobmff.ContainerError("a picture's data is listed many times")
    for number, item in meta.items.items():
        if item.kind == b"grid":
            _check_grid(data, meta, number, limits)
        elif item.kind in _CODED[Format.HEIC] | _CODED[Format.AVIF]:
            _check_stream(data, meta, item, limits)
    return Prepared(width=width, height=height, payload=_mask(data, meta), icc=_profile(data, meta, primary))


def _check_sizes(data: bytes, meta: isobmff.Meta, limits: ImageLimits) -> tuple[int, int]:
    """Check every announced and configured size; returns the primary picture's announced one."""
    size = (0, 0)
    primary = meta.items.get(meta.primary)
    for number, box in enumerate(meta.properties, 1):
        body = data[box.body : box.end]
        if box.kind == b"ispe" and len(body) >= 12:
            announced = int.from_bytes(body[4:8], "big"), int.from_bytes(body[8:12], "big")
            limits.check_pixels(*announced)
            if primary and number in primary.properties:
                size = announced
        elif box.kind == b"hvcC":
            for coded in coded_size.hevc_config_sizes(body):
                limits.check_pixels(*coded)
        elif box.kind == b"av1C":
            for coded in coded_size.av1_stream_sizes(body[4:]):
                limits.check_pixels(*coded)
    return size


def _check_stream(data: bytes, meta: isobmff.Meta, item: isobmff.Item, limits: ImageLimits) -> None:
    """Check the sizes that a coded picture's own stream states."""
    content = _content(data, meta, item)
    if item.kind in _CODED[Format.AVIF]:
        for coded in coded_size.av1_stream_sizes(content):
            limits.check_pixels(*coded)
        return
    for number in item.properties:
        box = meta.properties[number - 1] if 0 < number <= len(meta.properties) else None
        if box is not None and box.kind == b"hvcC" and box.end - box.body > 21:
            for coded in coded_size.hevc_stream_sizes(content, (data[box.body + 21] & 3) + 1):
                limits.check_pixels(*coded)


def _check_grid(data: bytes, meta: isobmff.Meta, number: int, limits: ImageLimits) -> None:
    """Check the size of a picture that is put together from tiles, and that its tiles are not far more than that."""
    content = _content(data, meta, meta.items[number])
    wide = 4 if content[1:2] and content[1] & 1 else 2
    if len(content) < 4 + 2 * wide:
        raise isobmff.ContainerError("its grid is damaged")
    width = int.from_bytes(content[4 : 4 + wide], "big")
    height = int.from_bytes(content[4 + wide : 4 + 2 * wide], "big")
    limits.check_pixels(width, height)
    # One tile may be listed many times, and is decoded anew each time.
    tiles = meta.tiles.get(number, [])
    largest = max((_area(data, meta, each) for each in tiles), default=0)
    if len(tiles) * largest > 4 * width * height + 2**22:
        raise isobmff.ContainerError("its tiles cover far more than the picture")


def _area(data: bytes, meta: isobmff.Meta, number: int) -> int:
    item = meta.items.get(number)
    for each in item.properties if item else []:
        box = meta.properties[each - 1] if 0 < each <= len(meta.properties) else None
        if box is not None and box.kind == b"ispe" and box.end - box.body >= 12:
            body = data[box.body : box.end]
            return int.from_bytes(body[4:8], "big") * int.from_bytes(body[8:12], "big")
    return 0


def _content(data: bytes, meta: isobmff.Meta, item: isobmff.Item) -> bytes:
    if item.method == 0:
        start, end = 0, len(data)
    elif item.method == 1 and meta.idat:
        start, end = meta.idat.body, meta.idat.end
    else:
        raise isobmff.ContainerError("a picture's data is stored in a way that is not supported")
    pieces = [
        data[start + offset : start + offset + length if length else end]
        for offset, length in item.extents
        if start + offset + length <= end
    ]
    return b"".join(pieces)


def _check_tracks(data: bytes, parent: isobmff.Box, limits: ImageLimits, meta: isobmff.Meta, depth: int) -> None:
    """Check the sizes in the tracks of an image sequence."""
    if depth > _MAX_DEPTH:
        raise isobmff.ContainerError("its boxes are nested too deep")
    for box in isobmff.boxes(data, parent.body, parent.end):
        meta.count()
        if box.end > parent.end:
            raise isobmff.ContainerError("a box reaches out of the box around it")
        body = data[box.body : min(box.end, box.body + 1024)]
        if box.kind in _CONTAINERS:
            _check_tracks(data, box, limits, meta, depth + 1)
        elif box.kind == b"tkhd" and len(body) >= 84:
            end = 92 + 4 if body[0] else 84
            limits.check_pixels(
                int.from_bytes(body[end - 8 : end - 6], "big"), int.from_bytes(body[end - 4 : end - 2], "big")
            )
        elif box.kind == b"stsd":
            for entry in isobmff.boxes(data, box.body + 8, box.end):
                meta.count()
                head = data[entry.body + 24 : entry.body + 28]
                limits.check_pixels(int.from_bytes(head[:2], "big"), int.from_bytes(head[2:], "big"))


def _profile(data: bytes, meta: isobmff.Meta, primary: isobmff.Item) -> bytes | None:
    for number in primary.properties:
        box = meta.properties[number - 1] if 0 < number <= len(meta.properties) else None
        if box is not None and box.kind == b"colr" and data[box.body : box.body + 4] in {b"prof", b"rICC"}:
            return data[box.body + 4 : box.end]
    return None


def _mask(data: bytes, meta: isobmff.Meta) -> bytes:
    """The file with its metadata items made unknown ones: decoders skip what they do not know."""
    spots = [item.kind_at for item in meta.items.values() if item.kind in _METADATA]
    if not spots:
        return data
    masked = bytearray(data)
    for at in spots:
        masked[at : at + 4] = b"skip"
    return bytes(masked)
