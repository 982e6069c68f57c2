"""The generator's pictures and questions: repeatable, distinct, and of the sizes that are promised."""

from __future__ import annotations

import numpy as np
import pytest

from loadtest import pictures
from loadtest.questions import question
from service.answers import normalise
from service.images import decode_image


@pytest.mark.parametrize("make", [pictures.drawing, pictures.camera, pictures.camera_mixed, pictures.any_shape])
def test_a_seed_is_a_picture(make) -> None:
    made = [make(seed) for seed in range(12)]
    assert made == [make(seed) for seed in range(12)]
    assert len(set(made)) == 12
    for data in made:
        decode_image(data)


def test_sizes() -> None:
    sizes = [len(pictures.camera_mixed(seed)) for seed in range(40)]
    assert 15_000 < min(sizes) < 40_000 < 90_000 < max(sizes) < 200_000
    photo = pictures.photo(0)
    assert 1_000_000 < len(photo) < 4_000_000
    image = decode_image(photo)
    assert (image.width, image.height) == pictures.TWELVE_MEGAPIXELS
    shapes = [decode_image(pictures.any_shape(seed)) for seed in range(40)]
    ratios = [image.width / image.height for image in shapes]
    assert min(ratios) < 1 / 3 < 3 < max(ratios)


@pytest.mark.parametrize("make", [pictures.drawing, pictures.camera])
def test_a_stamp_changes_the_file_and_no_pixel(make) -> None:
    data = make(1)
    stamped = [pictures.stamped(data, number) for number in range(3)]
    assert len({data, *stamped}) == 4
    for each in stamped:
        assert np.array_equal(decode_image(each).pixels, decode_image(data).pixels)


def test_only_what_can_be_stamped_is() -> None:
    with pytest.raises(ValueError, match="JPEG or a PNG"):
        pictures.stamped(b"GIF89a", 1)


def test_no_question_repeats() -> None:
    assert len({normalise(question(n)) for n in range(5000)}) == 5000
