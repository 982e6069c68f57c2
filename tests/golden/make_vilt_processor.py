"""Writes vilt_processor.npz: what transformers' own ViltImageProcessor makes of some pictures.

Run in the export environment (`make install-export`): `.venv-export/bin/python tests/golden/make_vilt_processor.py`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from transformers import ViltImageProcessor
from transformers.models.vilt.image_processing_vilt import get_resize_output_image_size


def main() -> None:
    random = np.random.default_rng(20261130)
    # Ratios up to 19: beyond about 20 the hub's processor gives an edge of 0 and fails.
    heights = random.integers(20, 4000, 400)
    widths = np.clip(heights * np.exp(random.uniform(-2.9, 2.9, 400)), 2, 65000).astype(int)
    fixed = [(480, 640), (640, 480), (384, 384), (30, 608), (608, 30), (3024, 4032), (1, 1), (639, 384), (384, 640)]
    sizes = np.array([*zip(heights, widths, strict=True), *fixed])
    blank = [np.zeros((h, w, 1), dtype=np.uint8) for h, w in sizes]
    targets = [
        get_resize_output_image_size(b, shorter=384, longer=int(1333 / 800 * 384), size_divisor=32) for b in blank
    ]
    processor = ViltImageProcessor(size={"shortest_edge": 32}, size_divisor=8, do_pad=False)
    pictures, outputs = {}, {}
    for i, (height, width) in enumerate([(32, 32), (40, 61), (97, 50), (20, 110)]):
        pixels = random.integers(0, 256, (height, width, 3), dtype=np.uint8)
        pictures[f"picture_{i}"] = pixels
        outputs[f"output_{i}"] = np.asarray(processor(pixels, return_tensors="np")["pixel_values"][0], dtype=np.float32)
    np.savez_compressed(
        Path(__file__).parent / "vilt_processor.npz", sizes=sizes, targets=np.array(targets), **pictures, **outputs
    )


if __name__ == "__main__":
    main()
