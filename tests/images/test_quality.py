"""Picture statistics: values that can be worked out by hand, and orders that a person would see."""

from __future__ import annotations

import time

import numpy as np
import pytest
from PIL import Image, ImageFilter

from service.images import measure_quality


def flat(value: int, width: int = 300, height: int = 200) -> np.ndarray:  # type: ignore[type-arg]
    return np.full((height, width, 3), value, np.uint8)


def checks(width: int, height: int, square: int) -> np.ndarray:  # type: ignore[type-arg]
    y, x = np.mgrid[0:height, 0:width]
    return np.repeat(((x // square + y // square) % 2 * 255).astype(np.uint8)[..., None], 3, axis=2)


@pytest.mark.parametrize("value", [0, 15, 16, 128, 239, 240, 255])
def test_flat_pictures(value: int) -> None:
    quality = measure_quality(flat(value))
    assert quality.luminance == pytest.approx(value / 255, abs=1e-4)
    assert quality.contrast == pytest.approx(0, abs=1e-4)
    assert quality.sharpness == pytest.approx(0, abs=1e-3)
    assert quality.dark_share == (1 if value < 16 else 0)
    assert quality.bright_share == (1 if value > 239 else 0)
    assert (quality.width, quality.height) == (300, 200)


@pytest.mark.parametrize(("colour", "luminance"), [((255, 0, 0), 0.2126), ((0, 255, 0), 0.7152), ((0, 0, 255), 0.0722)])
def test_luma_weights(colour: tuple[int, int, int], luminance: float) -> None:
    pixels = np.zeros((10, 10, 3), np.uint8)
    pixels[:] = colour
    assert measure_quality(pixels).luminance == pytest.approx(luminance, abs=1e-4)


def test_half_black_half_white() -> None:
    pixels = flat(0, 200, 100)
    pixels[:, 100:] = 255
    quality = measure_quality(pixels)
    assert quality.luminance == pytest.approx(0.5)
    assert quality.contrast == pytest.approx(0.5)
    assert quality.dark_share == quality.bright_share == pytest.approx(0.5)


def test_laplacian_of_one_bright_pixel() -> None:
    pixels = flat(0, 5, 5)
    pixels[2, 2] = 255
    # Inside: -4 times 255 once and 255 four times, in 9 places, with mean 0.
    assert measure_quality(pixels).sharpness == pytest.approx((16 + 4) * 255**2 / 9, rel=1e-5)


def test_sharpness_falls_with_blur_and_hardly_depends_on_size() -> None:
    values = {}
    for scale in (1, 4, 12):
        picture = Image.fromarray(checks(256 * scale, 192 * scale, 16 * scale))
        values[scale] = [
            measure_quality(np.asarray(picture.filter(ImageFilter.GaussianBlur(radius * scale)))).sharpness
            for radius in (0, 1, 3, 8)
        ]
        assert values[scale] == sorted(values[scale], reverse=True)
        assert values[scale][0] > 20 * values[scale][2]
    for column in range(3):
        of_sizes = [values[scale][column] for scale in values]
        assert max(of_sizes) < 2 * min(of_sizes)


@pytest.mark.parametrize(("width", "height"), [(1, 1), (1, 9000), (9000, 1), (2, 2), (257, 1), (256, 256), (5000, 3)])
def test_odd_sizes(width: int, height: int) -> None:
    quality = measure_quality(flat(100, width, height))
    assert quality.luminance == pytest.approx(100 / 255, abs=1e-4)
    assert quality.sharpness == pytest.approx(0, abs=1e-3)


def test_large_pictures_take_milliseconds() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (6000, 8000, 3), dtype=np.uint8)
    best = min(_timed(pixels) for _ in range(5))
    assert best < 0.01


def _timed(pixels: np.ndarray) -> float:  # type: ignore[type-arg]
    started = time.perf_counter()
    measure_quality(pixels)
    return time.perf_counter() - started


@pytest.mark.parametrize(
    "pixels",
    [np.zeros((4, 4), np.uint8), np.zeros((4, 4, 4), np.uint8), np.zeros((4, 4, 3)), np.zeros((0, 4, 3), np.uint8)],
)
def test_other_arrays_are_refused(pixels: np.ndarray) -> None:  # type: ignore[type-arg]
    with pytest.raises(ValueError, match="expected uint8"):
        measure_quality(pixels)
