"""The processor against the hub's own arithmetic (golden/make_vilt_processor.py) and the collected cases."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from service.backends.processor import ViltProcessor

GOLDEN = Path(__file__).parents[1] / "golden" / "vilt_processor.npz"


def make(tmp_path: Path, **config: object) -> ViltProcessor:
    path = tmp_path / "preprocessor_config.json"
    path.write_text(json.dumps(config))
    return ViltProcessor.load(path)


def test_sizes_equal_the_hubs(tmp_path: Path) -> None:
    processor = make(tmp_path, size={"shortest_edge": 384}, size_divisor=32)
    golden = np.load(GOLDEN)
    for (height, width), target in zip(golden["sizes"], golden["targets"], strict=True):
        wanted = tuple(max(32, int(edge)) for edge in target)
        assert processor.target_size(int(height), int(width)) == wanted, (height, width)


def test_pixels_equal_the_hubs(tmp_path: Path) -> None:
    processor = make(tmp_path, size={"shortest_edge": 32}, size_divisor=8)
    golden = np.load(GOLDEN)
    for i in range(4):
        output = processor(Image.fromarray(golden[f"picture_{i}"]))
        assert output.dtype == np.float32
        assert output.flags.c_contiguous
        np.testing.assert_allclose(output, golden[f"output_{i}"], atol=1e-6, rtol=0)


def test_longest_edge_is_608_and_thin_pictures_keep_32(tmp_path: Path) -> None:
    processor = make(tmp_path, size={"shortest_edge": 384}, size_divisor=32)
    assert processor.longest_edge == 608
    assert processor.target_size(30, 608) == (32, 608)
    for height, width in ((30, 609), (5, 1093), (1, 2000)):
        assert processor.target_size(height, width) == (32, 608)
        assert processor.target_size(width, height) == (608, 32)


def test_every_size_is_a_listed_bucket(tmp_path: Path) -> None:
    processor = make(tmp_path, size={"shortest_edge": 384}, size_divisor=32)
    buckets = set(processor.sizes())
    assert len(buckets) <= 40
    random = np.random.default_rng(1)
    for height, width in random.integers(1, 3000, (3000, 2)):
        assert processor.target_size(int(height), int(width)) in buckets


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"do_resize": False}, "do_resize"),
        ({"do_normalize": False}, "do_normalize"),
        ({"image_std": [0.5, 0.0, 0.5]}, "image_std"),
        ({"resample": 99}, "resample"),
    ],
)
def test_a_configuration_that_it_cannot_follow_is_refused(tmp_path: Path, config: dict[str, object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        make(tmp_path, **config)
