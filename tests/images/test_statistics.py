"""Statistics of pictures: by hand where the 64-pixel thumbnail is the picture itself, and of any size."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageEnhance, ImageFilter

from service.images import QUALITY, STATISTICS, picture_statistics

PIXELS = 64
ALWAYS = math.log(1024.5 / 0.5)  # log-odds of all 32 x 32 means, half a pixel away from always


def of(pixels: np.ndarray) -> dict[str, float]:
    """The statistics of (64, 64) grey or (64, 64, 3) pixels."""
    return dict(picture_statistics(Image.fromarray(pixels.astype(np.uint8)).convert("RGB")))


def grid() -> tuple[np.ndarray, np.ndarray]:
    return np.mgrid[:PIXELS, :PIXELS]


def test_the_names() -> None:
    given_ = picture_statistics(Image.new("RGB", (64, 64)))
    assert tuple(given_) == STATISTICS
    assert len(STATISTICS) == len(set(STATISTICS)) == 8
    assert STATISTICS[:3] == QUALITY == ("brightness", "contrast", "sharpness")


@pytest.mark.parametrize("size", [(64, 64), (1, 1), (1, 5000), (4000, 10), (63, 65), (1000, 700)])
@pytest.mark.parametrize(
    ("color", "brightness", "saturation"),
    [
        ((0, 0, 0), 0.0, 0.0),
        ((255, 255, 255), 1.0, 0.0),
        ((255, 0, 0), 0.299, math.log(256)),
        ((10, 200, 40), (0.299 * 10 + 0.587 * 200 + 0.114 * 40) / 255, math.log(191)),
    ],
)
def test_a_flat_picture_of_any_size(size, color, brightness, saturation) -> None:
    expected = {
        "brightness": brightness, "contrast": 0, "sharpness": 0, "saturation": saturation, "color_count": 0,
        "color_concentration": ALWAYS, "tone_concentration": ALWAYS, "coarse_gradient": 0,
    }  # fmt: skip
    assert picture_statistics(Image.new("RGB", size, color)) == pytest.approx(expected, abs=1e-4)


def test_half_black_half_white() -> None:
    _, x = grid()
    # The Laplacian is +255 in one of 62 inner columns, -255 in the next; of 15 steps between coarse columns one is 255.
    assert of(255 * (x >= 32)) == pytest.approx(
        {
            "brightness": 0.5,
            "contrast": math.log(1 + 127.5),
            "sharpness": math.log(1 + 2 * 255**2 / 62),
            "saturation": 0,
            "color_count": math.log(2),
            "color_concentration": ALWAYS,
            "tone_concentration": ALWAYS,
            "coarse_gradient": math.log(1 + 255 / 15),
        },
        abs=1e-4,
    )


def test_a_checkered_picture_of_single_pixels() -> None:
    y, x = grid()
    # The Laplacian is 4 x 255 everywhere, of either sign; all 2 x 2 means are the same grey.
    assert of(255 * ((x + y) % 2)) == pytest.approx(
        {
            "brightness": 0.5,
            "contrast": math.log(1 + 127.5),
            "sharpness": math.log(1 + 1020**2),
            "saturation": 0,
            "color_count": 0,
            "color_concentration": ALWAYS,
            "tone_concentration": ALWAYS,
            "coarse_gradient": 0,
        },
        abs=1e-4,
    )


def test_a_checkered_picture_of_two_colours() -> None:
    y, x = grid()
    red = ((x // 4 + y // 4) % 2)[..., None]
    found = of(np.where(red, [255, 0, 0], [0, 0, 255]))
    assert found["brightness"] == pytest.approx((0.299 + 0.114) / 2, abs=1e-5)
    assert found["contrast"] == pytest.approx(math.log(1 + 255 * (0.299 - 0.114) / 2), abs=1e-4)
    assert found["saturation"] == pytest.approx(math.log(256))
    assert found["color_count"] == pytest.approx(math.log(2))
    assert found["coarse_gradient"] == pytest.approx(math.log(256))  # red and blue change at every coarse step


def test_stripes_of_sixteen_greys() -> None:
    _, x = grid()
    found = of(16 * (x // 4) + 4)
    assert found["color_count"] == pytest.approx(math.log(16))
    # 8 of 16 equally frequent ones: as likely as not
    assert found["color_concentration"] == pytest.approx(0, abs=1e-9)
    assert found["tone_concentration"] == pytest.approx(0, abs=1e-9)
    assert found["coarse_gradient"] == pytest.approx(math.log(17), abs=1e-5)


def test_half_of_the_picture_in_rare_colours() -> None:
    _, x = grid()
    # Above one grey. Below 16 greens in columns of 4: of 32 x 32 means 512 are grey and 32 of each green.
    picture = np.zeros((PIXELS, PIXELS, 3))
    picture[..., 1] = 16 * (x // 4) + 4
    picture[:32] = 200
    found = of(picture)
    assert found["color_count"] == pytest.approx(math.log(17))
    inside = 512 + 7 * 32
    assert found["color_concentration"] == pytest.approx(math.log((inside + 0.5) / (1024 - inside + 0.5)))


def noise(seed: int = 0, size: tuple[int, int] = (200, 160)) -> Image.Image:
    values = np.random.default_rng(seed).integers(0, 256, (*size, 3))
    return Image.fromarray(values.astype(np.uint8))


def scene(size: int = 256) -> Image.Image:
    """Smooth and sharp parts in many colours."""
    y, x = np.mgrid[:size, :size] / size
    ring = (np.hypot(x - 0.5, y - 0.5) < 0.3) * 120
    return Image.fromarray(np.stack([255 * x * 0.5 + ring, 255 * y * 0.5 + ring, 90 + 0 * x], 2).astype(np.uint8))


def test_a_blurred_picture_is_less_sharp() -> None:
    sharpness = [
        picture_statistics(scene().filter(ImageFilter.GaussianBlur(r)) if r else scene())["sharpness"]
        for r in (0, 4, 8, 16)
    ]
    assert sharpness == sorted(set(sharpness), reverse=True)


def test_a_darker_picture_is_less_bright_and_a_paler_one_less_saturated() -> None:
    for name, enhance in (
        ("brightness", ImageEnhance.Brightness),
        ("contrast", ImageEnhance.Contrast),
        ("saturation", ImageEnhance.Color),
    ):
        values = [picture_statistics(enhance(scene()).enhance(factor))[name] for factor in (1.0, 0.6, 0.3, 0.0)]
        assert values == sorted(set(values), reverse=True), name
    assert values[-1] == pytest.approx(0, abs=1e-6)


def test_turning_a_picture_around_changes_nothing_but_rounding() -> None:
    for turned in (Image.Transpose.FLIP_LEFT_RIGHT, Image.Transpose.FLIP_TOP_BOTTOM, Image.Transpose.ROTATE_180):
        square = scene(PIXELS)
        for name, value in picture_statistics(square.transpose(turned)).items():
            # A gradient looks at the neighbour above or on the left: the other way round another row is the first.
            loose = 0.3 if name == "coarse_gradient" else 1e-4
            assert value == pytest.approx(picture_statistics(square)[name], abs=loose)


@given(st.integers(1, 150), st.integers(1, 150), st.integers(0, 2**32 - 1))
def test_any_picture_has_finite_statistics_always_the_same(width, height, seed) -> None:
    found = picture_statistics(noise(seed, (height, width)))
    assert found == picture_statistics(noise(seed, (height, width)))
    assert all(type(value) is float and math.isfinite(value) for value in found.values())
    assert 0 <= found["brightness"] <= 1 + 1e-6
    assert all(found[name] >= 0 for name in ("contrast", "sharpness", "saturation", "color_count", "coarse_gradient"))
    assert abs(found["color_concentration"]) <= ALWAYS + 1e-9
    assert abs(found["tone_concentration"]) <= ALWAYS + 1e-9


@pytest.mark.parametrize("size", [(1, 1), (1, 5000), (5000, 1), (4000, 10), (2, 3), (3000, 2000)])
def test_extreme_sizes(size) -> None:
    width, height = size
    for picture in (noise(1, (height, width)), Image.new("RGB", size, (255, 255, 255))):
        found = picture_statistics(picture)
        assert tuple(found) == STATISTICS
        assert all(math.isfinite(value) for value in found.values())


def test_a_picture_is_left_as_it_was() -> None:
    picture = scene()
    before = picture.tobytes(), picture.size, picture.mode
    picture_statistics(picture)
    assert (picture.tobytes(), picture.size, picture.mode) == before


def test_a_large_picture_has_the_statistics_of_a_small_one() -> None:
    large, small = picture_statistics(scene(1024)), picture_statistics(scene(128))
    for name in ("brightness", "contrast", "saturation", "coarse_gradient"):
        assert large[name] == pytest.approx(small[name], abs=0.05)
