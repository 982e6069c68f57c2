"""What counts as which format, and which of several pictures in a file is used."""

from __future__ import annotations

import io
import struct

import numpy as np
import pytest
from PIL import Image

from service.images import ACCEPTED_FORMATS, ImageError, decode_image
from service.images.sniff import sniff
from tests.images.files import BLUE, GREEN, RED, bmp, chunk, encoded, gif, jpeg_with, quarters, textured, tiff

SOLID = {name: Image.new("RGB", (40, 30), colour) for name, colour in (("red", RED), ("green", GREEN), ("blue", BLUE))}


def first_pixel(file: bytes) -> list[int]:
    return [int(each) for each in decode_image(file).pixels[0, 0]]


def refusal(data: bytes) -> ImageError:
    with pytest.raises(ImageError) as caught:
        decode_image(data)
    return caught.value


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF", "HEIC", "AVIF"])
def test_every_accepted_format_is_named_and_drawn(kind: str) -> None:
    picture = decode_image(encoded(quarters(), kind))
    assert picture.format == kind.lower()
    assert picture.format in ACCEPTED_FORMATS
    assert (picture.width, picture.height) == (64, 48)
    corners = picture.pixels[[8, 8, 40, 40], [8, 56, 8, 56]].astype(int)
    assert np.abs(corners - [RED, GREEN, BLUE, (255, 255, 0)]).max() <= 40


@pytest.mark.parametrize(
    ("data", "named"),
    [
        (b"<?xml version='1.0'?>\n<svg xmlns='http://www.w3.org/2000/svg'/>", "SVG"),
        (b"\xef\xbb\xbf  <svg width='9'></svg>", "SVG"),
        (b"<!-- made by hand --><svg></svg>", "SVG"),
        (b"<!DOCTYPE html><html></html>", "HTML"),
        (b"\r\n<HTML><body>404</body></HTML>", "HTML"),
        (b"<?xml version='1.0'?><note/>", "XML"),
        (b'{"error": "not found"}', "JSON"),
        (b"%PDF-1.7\n%\xe2\xe3", "PDF"),
        (b"MZ" + bytes(126), "Windows executable"),
        (b"\x7fELF" + bytes(60), "Linux executable"),
        (b"\x1f\x8b\x08" + bytes(40), "gzip"),
        (b"PK\x03\x04" + bytes(40), "ZIP"),
        (b"8BPS\0\1" + bytes(40), "Photoshop"),
        (b"\0\0\x01\0\x01\0\x10\x10" + bytes(40), "icon"),
        (b"\0\0\0\x0cjP  \r\n\x87\n" + bytes(40), "JPEG 2000"),
        (b"\xff\x0a" + bytes(40), "JPEG XL"),
        (b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom" + bytes(40), "video"),
        (b"\0\0\0\x14ftypqt  \0\0\0\0qt  " + bytes(40), "video"),
        (b"RIFF\x24\0\0\0WAVEfmt " + bytes(40), "RIFF"),
        (b"Dear model, what is in the picture?", "plain text"),
        ("Liebes Modell, was ist auf dem Bild? Grüße".encode(), "plain text"),
        (b"iVBORw0KGgoAAAANSUhEUgAAACAAAAAYCAIAAAAUMWhj", "base64"),
        (bytes(range(128, 256)), "unknown kind"),
        (bytes(100), "unknown kind"),
        (b"P6 2 2 255 " + bytes(12), "unknown kind"),
        (b"BM" + bytes(60), "unknown kind"),
    ],
)
def test_other_files_are_named(data: bytes, named: str) -> None:
    error = refusal(data)
    assert error.code == "unsupported_media_type"
    assert error.status == 415
    assert named in error.detail
    for accepted in ("JPEG", "PNG", "GIF", "WebP", "BMP", "TIFF", "HEIC", "AVIF"):
        assert accepted in error.detail


@pytest.mark.parametrize(
    "data", [b"\0", b"a", b"\xff", b"GI", b"\x89PN", b"\xff\xd8\xff", b"RIFF", b"BM", b"II*", b"\xff\xd8"]
)
def test_too_few_bytes_to_tell(data: bytes) -> None:
    assert refusal(data).code == "image_undecodable"


def test_details_never_repeat_the_bytes() -> None:
    for data in (b"\x1b[31mRED\x1b[0m" * 9, b"\0\0\0\x18ftyp\x1b[31" + bytes(60), b"SECRET" * 30):
        error = refusal(data)
        assert "\x1b" not in error.detail
        assert "SECRET" not in error.detail


# ---- brands


def brands(major: bytes, *others: bytes) -> bytes:
    body = major + bytes(4) + b"".join(others)
    return struct.pack(">I", 8 + len(body)) + b"ftyp" + body


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (brands(b"avif", b"mif1", b"miaf"), "avif"),
        (brands(b"avis", b"msf1", b"miaf"), "avif"),
        (brands(b"mif1", b"avif", b"miaf"), "avif"),
        (brands(b"msf1", b"mif1", b"avis"), "avif"),
        (brands(b"heic", b"mif1"), "heic"),
        (brands(b"mif1", b"heic"), "heic"),
        (brands(b"heix", b"mif1", b"avif"), "heic"),
        (brands(b"mif1", b"miaf"), "heic"),
        (brands(b"mif1", b"miaf") + b"....av01....", "avif"),
    ],
)
def test_brands(head: bytes, expected: str) -> None:
    assert sniff(head + bytes(40)) == expected


def test_brands_end_where_their_box_ends() -> None:
    # "avif" stands behind the box and is no brand; the claimed size of another reaches far beyond the file.
    assert sniff(brands(b"mif1", b"heic") + b"avif" + bytes(40)) == "heic"
    assert sniff(b"\xff\xff\xff\xff" + brands(b"mif1", b"heic")[4:] + bytes(40)) == "heic"
    assert refusal(brands(b"isom", b"iso2") + b"avif" * 20).code == "unsupported_media_type"


def test_one_decoder_does_not_get_the_others_files() -> None:
    heic, avif = encoded(SOLID["red"], "HEIC"), encoded(SOLID["red"], "AVIF")
    for wrong in (heic.replace(b"heic", b"avif", 2), avif.replace(b"avif", b"heic", 2)):
        error = refusal(wrong)
        assert error.code == "unsupported_media_type"
        assert "inside" in error.detail


# ---- several pictures in a file


def test_first_frame_of_an_animation() -> None:
    rest = [SOLID["green"], SOLID["blue"]]
    for kind, options in (("GIF", {}), ("PNG", {}), ("WEBP", {"lossless": True}), ("AVIF", {}), ("TIFF", {})):
        file = encoded(SOLID["red"], kind, save_all=True, append_images=rest, **options)
        picture = decode_image(file)
        assert (picture.width, picture.height) == (40, 30), kind
        assert np.abs(picture.pixels.astype(int) - RED).max() <= 8, kind


def test_later_frames_may_be_broken() -> None:
    file = bytearray(encoded(SOLID["red"], "TIFF", save_all=True, append_images=[SOLID["green"]]))
    second = int.from_bytes(file[4:8], "little")
    count = int.from_bytes(file[second : second + 2], "little")
    following = int.from_bytes(file[second + 2 + 12 * count :][:4], "little")
    file[following + 2 : following + 6] = b"\xff" * 4
    assert first_pixel(bytes(file)) == list(RED)


def test_default_picture_of_an_animated_png_counts() -> None:
    frames = encoded(
        SOLID["green"], "PNG", save_all=True, default_image=True, append_images=[SOLID["red"], SOLID["blue"]]
    )
    assert first_pixel(frames) == list(GREEN)


def test_mpo_is_a_jpeg() -> None:
    file = encoded(textured(), "MPO", save_all=True, append_images=[SOLID["red"]])
    picture = decode_image(file)
    assert picture.format == "jpeg"
    assert (picture.width, picture.height) == (160, 120)
    # Malformed multi-picture data is nobody's business.
    at = file.index(b"MPF\0")
    broken = file[: at + 8] + b"\xff" * 24 + file[at + 32 :]
    assert np.array_equal(decode_image(broken).pixels, picture.pixels)


def test_gif_frame_that_covers_a_part_of_the_screen() -> None:
    # One blue pixel, code size 2: clear, 1, end.
    one_pixel = b"\x02\x02\x4c\x01\0"
    colours = bytes((255, 0, 0, 0, 0, 255))
    picture = decode_image(gif((5, 4), (3, 2, 1, 1), colours=colours, data=one_pixel)).pixels
    assert picture.shape == (4, 5, 3)
    assert picture[2, 3].tolist() == [0, 0, 255]
    assert (np.delete(picture.reshape(-1, 3), 2 * 5 + 3, axis=0) == 255).all()


@pytest.mark.parametrize(
    ("screen", "size"), [((1, 1), (8, 6)), ((0, 0), (8, 6)), ((20, 1), (20, 6)), ((20, 30), (20, 30))]
)
def test_gif_frame_outside_the_screen_widens_it(screen: tuple[int, int], size: tuple[int, int]) -> None:
    one_pixel = b"\x02\x02\x4c\x01\0"
    picture = decode_image(gif(screen, (7, 5, 1, 1), colours=bytes((255, 0, 0, 0, 0, 255)), data=one_pixel))
    assert (picture.width, picture.height) == size
    assert picture.pixels[5, 7].tolist() == [0, 0, 255]


def test_gif_transparency_is_white() -> None:
    control = b"!\xf9\x04\x01\0\0\x01\0"
    file = gif((1, 1), (0, 0, 1, 1), colours=bytes((255, 0, 0, 0, 0, 255)), data=b"\x02\x02\x4c\x01\0", control=control)
    assert first_pixel(file) == [255, 255, 255]
    other = control.replace(b"\x01\0\0\x01", b"\x01\0\0\0")
    assert first_pixel(
        gif((1, 1), (0, 0, 1, 1), colours=bytes((255, 0, 0, 0, 0, 255)), data=b"\x02\x02\x4c\x01\0", control=other)
    ) == [0, 0, 255]


# ---- polyglots and odd structures


def test_polyglots_are_what_they_begin_as() -> None:
    png, jpeg = encoded(SOLID["red"], "PNG"), encoded(SOLID["green"], "JPEG", quality=95)
    page = b"<html><script>alert(1)</script></html>"
    assert decode_image(png + jpeg).format == "png"
    assert decode_image(jpeg + png).format == "jpeg"
    assert decode_image(jpeg_with(jpeg, (0xFE, page))).format == "jpeg"
    assert decode_image(png[:33] + chunk(b"tEXt", b"Comment\0" + page) + png[33:]).format == "png"
    assert decode_image(png + b"PK\x03\x04" + bytes(40)).format == "png"
    assert refusal(page + png).code == "unsupported_media_type"
    assert refusal(b"GIF89a" + png).code in {"image_undecodable", "image_truncated", "image_too_large"}
    assert refusal(b"%PDF-1.7\n" + jpeg).code == "unsupported_media_type"


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF", "HEIC", "AVIF"])
@pytest.mark.parametrize(("width", "height"), [(1, 1), (1, 2), (3, 1), (7, 9), (17, 33), (1, 5000), (5000, 1)])
def test_odd_sizes(kind: str, width: int, height: int) -> None:
    options = {}
    if kind == "HEIC":  # the encoder takes nothing longer
        width, height, options = min(width, 1000), min(height, 1000), {"chroma": 444}
    picture = decode_image(encoded(Image.new("RGB", (width, height), (200, 30, 60)), kind, **options))
    assert picture.pixels.shape == (height, width, 3)
    assert np.abs(picture.pixels.astype(int) - (200, 30, 60)).max() <= 12


@pytest.mark.parametrize("depth", [24, 32])
def test_bitmap_rows_from_the_top_and_from_the_bottom(depth: int) -> None:
    rows = [b"\0\0\xff\0", b"\xff\0\0\0"]  # red, blue
    pixels = b"".join(rows)
    upside_down, upright = (decode_image(bmp(1, height, depth, pixels)).pixels[:, 0].tolist() for height in (2, -2))
    assert upright == [list(RED), list(BLUE)]
    assert upside_down == [list(BLUE), list(RED)]


def test_run_length_bitmaps() -> None:
    palette = bytes((0, 0, 255, 0, 255, 0, 0, 0)) + bytes(1016)  # red, blue
    data = b"\x03\x01\x01\x00\0\0\0\x04\0\1\0\1\0\1"
    picture = decode_image(bmp(4, 2, 8, data, compression=1, palette=palette)).pixels
    assert picture[1].tolist() == [list(BLUE)] * 3 + [list(RED)]
    assert picture[0].tolist() == [list(RED), list(BLUE)] * 2
    assert refusal(bmp(4, 2, 8, data[:6], compression=1, palette=palette)).code == "image_undecodable"


def test_old_bitmap_header() -> None:
    pixels = b"\0\0\xff\0"
    info = struct.pack("<IHHHH", 12, 1, 1, 1, 24)
    file = b"BM" + struct.pack("<IHHI", 26 + len(pixels), 0, 0, 26) + info + pixels
    assert first_pixel(file) == list(RED)


@pytest.mark.parametrize("compression", [34712, 34925, 50000, 50001, 6, 34661, 9999])
def test_tiff_compressions_that_are_not_accepted(compression: int) -> None:
    error = refusal(tiff(4, 4, bytes(64), t259=(3, [compression])))
    assert error.code == "unsupported_media_type"
    assert str(compression) in error.detail


def test_camera_raw_files_are_not_taken_for_their_previews() -> None:
    preview = bytes(48)
    for file in (
        tiff(4, 4, preview, bits=(8, 8, 8), photometric=2, t50706=(1, [1, 4, 0, 0])),  # DNG
        tiff(4, 4, preview, bits=(8, 8, 8), photometric=2, t254=(4, [1]), t330=(4, [8])),  # NEF, ARW and others
    ):
        error = refusal(file)
        assert error.code == "unsupported_media_type"
        assert "camera raw" in error.detail
    assert decode_image(tiff(4, 4, preview, bits=(8, 8, 8), photometric=2, t254=(4, [0]))).width == 4


def test_tiff_with_tiles() -> None:
    tile = np.zeros((16, 16, 3), np.uint8)
    tile[3, 5] = RED
    file = tiff(10, 10, tile.tobytes(), bits=(8, 8, 8), photometric=2, t322=(3, [16]), t323=(3, [16]))
    # The tile's place and size are told by other tags than a strip's.
    file = file.replace(
        struct.pack("<H", 273) + struct.pack("<HI", 4, 1), struct.pack("<H", 324) + struct.pack("<HI", 4, 1)
    )
    file = file.replace(
        struct.pack("<H", 279) + struct.pack("<HI", 4, 1), struct.pack("<H", 325) + struct.pack("<HI", 4, 1)
    )
    picture = decode_image(file).pixels
    assert picture.shape == (10, 10, 3)
    assert picture[3, 5].tolist() == list(RED)
    assert picture.sum() == 255


def test_bigtiff() -> None:
    file = encoded(quarters(), "TIFF", big_tiff=True)
    assert file[2:4] == b"+\0"
    assert np.array_equal(decode_image(file).pixels, quarters())


def test_heic_grid_like_those_of_phones() -> None:
    picture = textured(200, 140)
    file = encoded(picture, "HEIC", quality=95, tile_size=64)
    assert b"grid" in file
    got = decode_image(file).pixels.astype(int)
    assert got.shape == (140, 200, 3)
    assert np.abs(got - np.asarray(picture)).mean() < 12


def test_metadata_that_breaks_other_decoders_is_not_read() -> None:
    bad = b"Exif\0\0" + b"\xff" * 60
    avif = encoded(quarters(), "AVIF", exif=b"Exif\0\0II*\0\x08\0\0\0\0\0\0\0\0\0")
    at = avif.index(b"II*\0\x08")
    broken = avif[:at] + b"\xff" * 8 + avif[at + 8 :]
    assert np.array_equal(decode_image(broken).pixels, decode_image(avif).pixels)
    jpeg = encoded(quarters(), "JPEG")
    assert np.array_equal(
        decode_image(jpeg_with(jpeg, (0xE1, bad), (0xED, b"\xff" * 99))).pixels, decode_image(jpeg).pixels
    )


def test_nothing_is_printed_and_nothing_warns(
    capfd: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder
) -> None:
    fax = encoded(textured().convert("1"), "TIFF", compression="group4")
    damaged = bytearray(fax)
    damaged[40:400] = bytes(range(256)) + bytes(104)
    for file in (bytes(damaged), *(encoded(quarters(), kind) for kind in ("JPEG", "PNG", "TIFF", "HEIC", "AVIF"))):
        try:
            decode_image(file)
        except ImageError:
            continue
    palette = Image.new("P", (2, 2))
    palette.info["transparency"] = b"\0\1"
    decode_image(encoded(palette, "PNG"))
    printed = capfd.readouterr()
    assert (printed.out, printed.err) == ("", "")
    assert not recwarn.list


def test_any_bytes_like_thing_that_the_caller_reads() -> None:
    assert decode_image(io.BytesIO(encoded(quarters(), "PNG")).getvalue()).width == 64
