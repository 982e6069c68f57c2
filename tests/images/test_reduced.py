"""JPEGs at a reduced scale: the same picture, whole or refused as at full size, and never smaller than is needed."""

from __future__ import annotations

import io
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from service.images import ImageError, decode_image
from service.images.reduced import MARGIN
from service.images.strict import decode_strictly
from tests.images.files import encoded, jpeg_with, textured
from tests.images.files import exif as exif_block

PICTURE = textured(320, 240)
# One 8-pixel block of a grey file, and 16 pixels of a colour one, are the least that can be missing.
SEQUENTIAL = {
    "colour": encoded(PICTURE, "JPEG"),
    "4:4:4": encoded(PICTURE, "JPEG", subsampling=0),
    "restarts": encoded(PICTURE, "JPEG", restart_marker_blocks=3),
    "grey": encoded(PICTURE.convert("L"), "JPEG"),
    "odd": encoded(textured(331, 253), "JPEG"),
}
INKS = {
    "sequential": encoded(PICTURE.convert("CMYK"), "JPEG"),
    "progressive": encoded(PICTURE.convert("CMYK"), "JPEG", progressive=True),
}
SCALES = {2: 60, 4: 35, 8: 15}  # the scale that a height of so many pixels leads to, for a picture 240 high


def height_of(pixels: int) -> Callable[[int, int], tuple[int, int]]:
    """What needs this height, at the picture's aspect ratio."""
    return lambda height, width: (pixels, round(pixels * width / height))


def smooth(width: int, height: int) -> Image.Image:
    """Light that changes over the picture; what a camera sees out of focus."""
    light = np.random.default_rng(5).integers(0, 256, (4, 5, 3)).astype(np.uint8)
    return Image.fromarray(light).resize((width, height), Image.Resampling.BICUBIC)


@pytest.mark.parametrize(("scale", "needed"), SCALES.items())
@pytest.mark.parametrize("name", SEQUENTIAL)
def test_the_scale_follows_from_what_is_needed(name: str, scale: int, needed: int) -> None:
    whole, reduced = decode_image(SEQUENTIAL[name]), decode_image(SEQUENTIAL[name], needed=height_of(needed))
    assert (reduced.width, reduced.height) == (whole.width, whole.height) == whole.picture.size
    assert reduced.picture.size == (math.ceil(whole.width / scale), math.ceil(whole.height / scale))
    assert reduced.picture.mode == "RGB"


@pytest.mark.parametrize("needed", SCALES.values())
def test_the_same_picture(needed: int) -> None:
    """Within 2 of 255 levels on average from averaging the full pixels, as libjpeg's blocks are no plain means."""
    file = encoded(smooth(640, 480), "JPEG", quality=95)
    size = (64, 48)
    whole = decode_image(file).picture.resize(size, Image.Resampling.BOX)
    reduced = decode_image(file, needed=height_of(needed)).picture
    assert reduced.width < 640
    difference = np.abs(np.asarray(whole, int) - np.asarray(reduced.resize(size, Image.Resampling.BOX), int))
    assert difference.mean() < 2
    assert np.abs(np.asarray(whole, int) - np.asarray(whole, int)[:, ::-1]).mean() > 20, "any picture would pass"


@given(
    st.integers(1, 700),
    st.integers(1, 700),
    st.integers(1, 900),
    st.integers(1, 900),
    st.sampled_from([1, 3, 6, 8]),
)
def test_never_below_the_margin(width: int, height: int, least_height: int, least_width: int, turn: int) -> None:
    asked: list[tuple[int, int]] = []

    def needed(upright_height: int, upright_width: int) -> tuple[int, int]:
        asked.append((upright_height, upright_width))
        return least_height, least_width

    file = jpeg_with(encoded(Image.new("L", (width, height), 90), "JPEG"), (0xE1, b"Exif\0\0" + exif_block(turn)))
    got = decode_image(file, needed=needed)
    upright = (height, width) if turn < 5 else (width, height)
    assert asked == [upright]
    assert (got.height, got.width) == upright
    if got.picture.size == (got.width, got.height):
        # In full although half of it would do: never.
        assert got.height // 2 < MARGIN * least_height or got.width // 2 < MARGIN * least_width
    else:
        assert got.picture.height >= MARGIN * least_height
        assert got.picture.width >= MARGIN * least_width


@pytest.mark.parametrize("turn", range(1, 9))
def test_upright_at_any_scale(turn: int) -> None:
    """331 x 253 turned: the size that is told is that of the full picture, the pixels those of the right way up."""
    block = (0xE1, b"Exif\0\0" + exif_block(turn))
    file = jpeg_with(encoded(smooth(331, 253), "JPEG"), block)
    whole, reduced = decode_image(file), decode_image(file, needed=lambda _height, _width: (40, 40))
    assert (reduced.width, reduced.height) == (whole.width, whole.height)
    small = whole.picture.resize(reduced.picture.size, Image.Resampling.BOX)
    assert np.abs(np.asarray(small, int) - np.asarray(reduced.picture, int)).mean() < 4


@pytest.mark.parametrize("needed", SCALES.values())
@pytest.mark.parametrize("name", SEQUENTIAL)
def test_a_cut_file_with_an_end_marker_is_refused_at_every_scale(name: str, needed: int) -> None:
    file = SEQUENTIAL[name]
    start = file.index(b"\xff\xda") + 14
    for at in range(start, len(file) - 24, max(17, len(file) // 150)):
        with pytest.raises(ImageError):
            decode_image(file[:at] + b"\xff\xd9", needed=height_of(needed))


def test_mid_grey_is_no_cut_at_any_scale() -> None:
    picture = PICTURE.copy()
    picture.paste((128, 128, 128), (0, 120, 320, 240))
    for needed in SCALES.values():
        got = decode_image(encoded(picture, "JPEG"), needed=height_of(needed)).pixels
        assert got[-1, -1].tolist() == [128, 128, 128]


def test_what_is_never_reduced() -> None:
    """Formats that have no reduced scales."""
    for file in (encoded(PICTURE, "PNG"), encoded(PICTURE, "WEBP"), encoded(PICTURE, "HEIC", quality=80)):
        got = decode_image(file, needed=height_of(20))
        assert got.picture.size == (got.width, got.height) == (320, 240)
        assert np.array_equal(got.pixels, decode_image(file).pixels)


PROGRESSIVE = {
    "colour": encoded(smooth(331, 253), "JPEG", progressive=True),
    "4:4:4": encoded(smooth(331, 253), "JPEG", progressive=True, subsampling=0),
    "4:2:2": encoded(smooth(331, 253), "JPEG", progressive=True, subsampling=1),
    "rgb": encoded(smooth(331, 253), "JPEG", progressive=True, keep_rgb=True),
    "grey": encoded(smooth(331, 253).convert("L"), "JPEG", progressive=True),
}


@pytest.mark.parametrize("scale", [1, 2, 4, 8])
@pytest.mark.parametrize("name", PROGRESSIVE)
def test_progressive_pictures_have_the_pixels_that_pillow_gives(name: str, scale: int) -> None:
    file = PROGRESSIVE[name]
    with Image.open(io.BytesIO(file)) as opened:
        opened.draft(None, (331 // scale, 253 // scale))
        expected = np.asarray(opened.convert("RGB"))
    needed = None if scale == 1 else height_of(SCALES[scale])
    got = decode_image(file, needed=needed)
    assert (got.width, got.height) == (331, 253)
    assert np.array_equal(got.pixels, expected)


@pytest.mark.parametrize("name", PROGRESSIVE)
def test_progressive_pictures_are_refused_when_cut_in_their_details(name: str) -> None:
    """At 1/8 none of what is missing would show."""
    file = PROGRESSIVE[name]
    last = file.rindex(b"\xff\xda") + 10
    for at in {last + 4, (last + len(file)) // 2, len(file) - 40}:
        with pytest.raises(ImageError):
            decode_image(file[:at] + b"\xff\xd9", needed=height_of(15))


def test_a_progressive_picture_that_the_strict_decoder_warns_of_is_judged_as_ever() -> None:
    """Bytes that no block needs harm no pixel. libjpeg warns of them, and the picture is taken, with every pixel."""
    file = PROGRESSIVE["colour"]
    odd = file[:-2] + bytes(7) + file[-2:]
    assert decode_strictly(file, None) is not None
    assert decode_strictly(odd, None) is None
    assert np.array_equal(decode_image(odd, needed=height_of(15)).pixels, decode_image(file).pixels)


@pytest.mark.parametrize("name", INKS)
def test_inks_are_decoded_in_full(name: str) -> None:
    got = decode_image(INKS[name], needed=height_of(15))
    assert got.picture.size == (got.width, got.height) == (320, 240)
    with pytest.raises(ImageError):
        decode_image(INKS[name][:-300] + b"\xff\xd9", needed=height_of(15))


def test_data_that_ends_inside_its_last_block_is_missed_at_no_scale() -> None:
    """No pixel is grey there, so that nothing in the picture tells."""
    file = SEQUENTIAL["colour"]
    for needed in (None, *map(height_of, SCALES.values())):
        for missing in range(3, 12):
            with pytest.raises(ImageError):
                decode_image(file[:-missing] + b"\xff\xd9", needed=needed)


@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_the_smallest_pictures_are_decoded_at_their_own_size(mode: str) -> None:
    """simplejpeg would take one that is rounded up to as many pixels."""
    for height in range(1, 18):
        for width in range(1, 18):
            file = encoded(textured(width, height).convert(mode), "JPEG")
            found = decode_strictly(file, None)
            assert found is not None
            with Image.open(io.BytesIO(file)) as theirs:
                assert np.array_equal(np.asarray(found), np.asarray(theirs)), (width, height)


@pytest.mark.parametrize(("width", "height"), [(403, 303), (17, 400), (1027, 9), (64, 64)])
def test_odd_sizes_are_rounded_up_at_every_scale(width: int, height: int) -> None:
    file = encoded(textured(width, height), "JPEG")
    for scale in (8, 4, 2):
        if min(width, height) // scale:
            found = decode_strictly(file, (width // scale, height // scale))
            assert found is not None
            assert found.size == (-(-width // scale), -(-height // scale))
