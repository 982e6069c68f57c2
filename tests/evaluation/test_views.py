"""Blind views: what they show, and that the seed decides."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from service.errors import ImageError
from service.evaluation.running.asker import RunError
from service.evaluation.running.views import Blank, Noise, Shuffled, Sighted, derangement, make_views
from tests.support.pictures import drawn_circle, encoded


def shown(data: bytes) -> np.ndarray:
    picture = Image.open(io.BytesIO(data))
    assert picture.format == "PNG"
    return np.asarray(picture.convert("RGB"))


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    path = tmp_path / "a.png"
    path.write_bytes(drawn_circle(size=(70, 40)))
    return path


def test_sighted_is_the_file(picture: Path) -> None:
    assert Sighted().picture(picture) == picture.read_bytes()


def test_blank_is_grey_and_as_large(picture: Path) -> None:
    pixels = shown(Blank().picture(picture))
    assert pixels.shape == (40, 70, 3)
    assert np.unique(pixels).tolist() == [128]


def test_sizes_are_those_of_the_upright_picture(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by a quarter
    path = tmp_path / "a.jpg"
    path.write_bytes(encoded(Image.new("RGB", (70, 40)), "JPEG", exif=exif))
    assert shown(Blank().picture(path)).shape == (70, 40, 3)
    assert shown(Noise(0).picture(path)).shape == (70, 40, 3)


def test_noise_is_uniform_and_decided_by_seed_and_content(tmp_path: Path) -> None:
    first, copy, other = (tmp_path / name for name in ("a.png", "b.png", "c.png"))
    first.write_bytes(drawn_circle(size=(200, 150)))
    copy.write_bytes(first.read_bytes())
    other.write_bytes(drawn_circle("blue", size=(200, 150)))
    pixels = shown(Noise(0).picture(first))
    assert pixels.shape == (150, 200, 3)
    counts = np.bincount(pixels.ravel(), minlength=256)
    # chi-square over 255 degrees of freedom: its mean is 255, its deviation 22.6
    chi_square = float(((counts - pixels.size / 256) ** 2 / (pixels.size / 256)).sum())
    assert 130 < chi_square < 400
    assert Noise(0).picture(first) == Noise(0).picture(copy)
    assert Noise(0).picture(first) != Noise(0).picture(other)
    assert Noise(0).picture(first) != Noise(1).picture(first)


def test_noise_of_a_large_picture_is_small_enough_to_be_sent(tmp_path: Path) -> None:
    path = tmp_path / "large.png"
    path.write_bytes(encoded(Image.new("RGB", (4001, 3000))))
    data = Noise(0).picture(path)
    assert Image.open(io.BytesIO(data)).size == (4001, 3000)
    assert len(data) < 20 * 1024 * 1024


@pytest.mark.parametrize("view", [Blank(), Noise(0)])
def test_a_view_of_its_size_needs_a_picture(tmp_path: Path, view: Blank | Noise) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(b"no picture")
    with pytest.raises(ImageError):
        view.picture(path)


@given(st.integers(2, 60), st.integers())
def test_shuffling_moves_every_picture_and_loses_none(count: int, seed: int) -> None:
    pictures = [Path(str(number)) for number in range(count)]
    moved = derangement(pictures * 2, seed)
    assert sorted(moved) == sorted(moved.values()) == sorted(pictures)
    assert all(path != other for path, other in moved.items())
    assert moved == derangement(pictures, seed)


def test_shuffling_depends_on_the_seed() -> None:
    pictures = [Path(str(number)) for number in range(50)]
    assert derangement(pictures, 0) != derangement(pictures, 1)


def test_shuffled_shows_the_other_file(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in "ab"]
    for path in paths:
        path.write_bytes(path.name.encode())
    view = Shuffled(paths, 0)
    assert [view.picture(path) for path in paths] == [b"b", b"a"]


def test_one_picture_cannot_be_shuffled() -> None:
    with pytest.raises(RunError, match="two pictures"):
        make_views(["shuffled"], [Path("a"), Path("a")], 0)


def test_views_come_sighted_first_and_each_once() -> None:
    views = make_views(["noise", "blank", "blank"], [Path("a")], 0)
    assert [view.name for view in views] == ["sighted", "blank", "noise"]
