"""The processor against the hub's own arithmetic (golden/make_vilt_processor.py) and the collected cases."""

from __future__ import annotations

import json
import math
import pickle
import subprocess
import sys
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
        ({"image_mean": [0.5, math.nan, 0.5]}, "image_mean"),
        ({"image_mean": [0.5, 0.5]}, "image_mean"),
        ({"image_std": 0.5}, "image_std"),
        ({"image_std": None}, "image_std"),
        ({"image_std": [0.5, "0.5", 0.5]}, "image_std"),
        ({"rescale_factor": math.inf}, "rescale_factor"),
        ({"rescale_factor": "1/255"}, "rescale_factor"),
        ({"rescale_factor": 10**400}, "rescale_factor"),
        ({"rescale_factor": 1e300}, "rescale_factor"),
        ({"image_std": [0.5, 1e-320, 0.5]}, "image_std"),
        ({"resample": 99}, "resample"),
        ({"resample": [3]}, "resample"),
        ({"resample": True}, "resample"),
        *(({"size_divisor": wrong}, "size_divisor") for wrong in (0, -32, "abc", None, True, math.inf, 32.0, 10**9)),
        *(({"size": wrong}, "shortest_edge") for wrong in (0, -384, "384", None, True, [], {}, 384.0, 100_000)),
    ],
)
def test_a_configuration_that_it_cannot_follow_is_refused(tmp_path: Path, config: dict[str, object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        make(tmp_path, **config)


def test_the_hubs_older_files_are_read(tmp_path: Path) -> None:
    older = make(tmp_path, size=384, do_resize=True, image_mean=[0.5, 0.5, 0.5], image_std=[0.5, 0.5, 0.5], resample=3)
    assert older == make(tmp_path)
    assert older == make(tmp_path, size={"shortest_edge": 384}, size_divisor=32, rescale_factor=1 / 255)


# In a process of its own, since memory that was taken before would hide what these take.
MEASURE = """
import pickle, sys
from pathlib import Path
from PIL import Image
from service.backends.processor import ViltProcessor
from tests.images.memory import peak_mib
processor = ViltProcessor.load(Path(sys.argv[1]))
processor(Image.new("RGB", (640, 480)))
for size in pickle.load(sys.stdin.buffer):
    picture = Image.new("RGB", size, (200, 100, 50))
    before = peak_mib()
    output = processor(picture)
    assert output.shape[1:] == ((32, 608) if size[0] > size[1] else (608, 32)), output.shape
    assert abs(output.reshape(3, -1).mean(axis=1) - [200 / 127.5 - 1, 100 / 127.5 - 1, 50 / 127.5 - 1]).max() < 1e-5
    grown = peak_mib() - before
    assert grown < 32, f"{size} took {grown} MiB"
print("bounded")
"""


def test_a_picture_of_one_long_line_takes_little_memory(tmp_path: Path) -> None:
    make(tmp_path)
    sizes = [(65_535, 2), (65_536, 2), (2, 65_536), (20_000_000, 1), (1, 20_000_000)]
    ran = subprocess.run(
        [sys.executable, "-c", MEASURE, str(tmp_path / "preprocessor_config.json")],
        input=pickle.dumps(sizes),
        capture_output=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert ran.stdout.strip() == b"bounded", ran.stderr.decode()


def test_what_is_averaged_down_first_stays_where_it_was(tmp_path: Path) -> None:
    """Of a line from black to white, each part keeps its brightness."""
    line = np.linspace(0, 255, 200_000).astype(np.uint8)
    output = make(tmp_path)(Image.fromarray(np.repeat(line[None, :, None], 3, axis=2)))
    expected = np.linspace(-1, 1, output.shape[2])
    assert np.abs(output[0, 0] - expected).max() < 0.02
