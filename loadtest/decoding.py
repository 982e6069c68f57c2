"""From a JPEG's bytes to the input of a ViLT-B/32: this service's way beside other libraries' and the usual one.

    make bench-decoding

Pictures of three sizes, and progressive ones, go through every way in turn, in rounds; times are medians over rounds,
ratios are to the usual way (Pillow, every pixel decoded, as the hub's processor has it) in the same round. How far the
result is from the usual one is told in grey levels of 255. OpenCV is not among this project's dependencies: the target
puts it into a folder of its own; without it its ways are left out.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import click
import numpy as np
import simplejpeg
from numpy.typing import NDArray
from PIL import Image, ImageFile, features

from loadtest import report
from loadtest.pictures import camera, photo
from loadtest.stats import median
from loadtest.wire import now
from service.backends.processor import ViltProcessor
from service.images import decode_image
from service.images.reduced import MARGIN

try:
    import cv2
except ImportError:
    cv2 = None

KINDS: Mapping[str, Callable[[int], bytes]] = {
    "640x480": camera,
    "1600x1200": lambda seed: camera(seed, 1600, 1200),
    "4032x3024": photo,
    "4032x3024 progressive": lambda seed: progressive(photo(seed)),
}
# What `dandelin/vilt-b32-finetuned-vqa` has in its preprocessor_config.json.
B32 = ViltProcessor(384, 32, (0.5, 0.5, 0.5), (0.5, 0.5, 0.5), 1 / 255, Image.Resampling.BICUBIC)
ROUNDS = 9
PICTURES = 3
USUAL = "pillow, all pixels"

Pixels = NDArray[np.float32]
Way = Callable[[bytes], Pixels]


def progressive(data: bytes) -> bytes:
    """The same picture as a progressive JPEG, as editors and web sites make them."""
    out = io.BytesIO()
    Image.open(io.BytesIO(data)).save(out, "JPEG", quality=88, progressive=True)
    return out.getvalue()


def ours(data: bytes) -> Pixels:
    """As the service does it, its checks for cut files included."""
    image = decode_image(data, needed=B32.target_size)
    return B32(image.picture, (image.height, image.width))


def ours_in_full(data: bytes) -> Pixels:
    """The service's decoder with every pixel."""
    return B32(decode_image(data).picture)


def pillow(data: bytes) -> Pixels:
    """What `Image.open(...).convert("RGB")` and the hub's processor do."""
    return B32(Image.open(io.BytesIO(data)).convert("RGB"))


def pillow_one_block(data: bytes) -> Pixels:
    """The same with the file handed to libjpeg in one piece."""
    with Image.open(io.BytesIO(data)) as opened:
        opened.decodermaxblock = max(len(data), ImageFile.MAXBLOCK)
        return B32(opened.convert("RGB"))


def pillow_thumbnail(data: bytes) -> Pixels:
    """Pillow's own short cut: `draft` and `reducing_gap=2`."""
    with Image.open(io.BytesIO(data)) as opened:
        size = (opened.height, opened.width)
        height, width = B32.target_size(*size)
        opened.draft("RGB", (2 * width, 2 * height))
        picture = opened.convert("RGB").resize((width, height), B32.resample, reducing_gap=2.0)
    return B32(picture, size)


def simplejpeg_reduced(data: bytes) -> Pixels:
    """libjpeg-turbo without Pillow's binding, at the scales in eighths that it also has; resized by Pillow."""
    height, width, *_ = simplejpeg.decode_jpeg_header(data)
    least = [int(edge * MARGIN) for edge in B32.target_size(height, width)]
    pixels = simplejpeg.decode_jpeg(data, "RGB", min_height=min(least[0], height), min_width=min(least[1], width))
    return B32(Image.fromarray(pixels), (height, width))


def simplejpeg_in_full(data: bytes) -> Pixels:
    """The same with every pixel."""
    return B32(Image.fromarray(simplejpeg.decode_jpeg(data, "RGB")))


def opencv_reduced(data: bytes) -> Pixels:
    """OpenCV's reduced scales, its area resize (it has no antialiased bicubic) and its normalisation."""
    height, width, *_ = simplejpeg.decode_jpeg_header(data)
    new = B32.target_size(height, width)
    scale = min(height / new[0], width / new[1]) / MARGIN
    flag = next((flag for least, flag in _opencv_scales() if scale >= least), cv2.IMREAD_COLOR_BGR)
    return _opencv(data, flag, new)


def opencv_in_full(data: bytes) -> Pixels:
    """The same with every pixel."""
    height, width, *_ = simplejpeg.decode_jpeg_header(data)
    return _opencv(data, cv2.IMREAD_COLOR_BGR, B32.target_size(height, width))


def _opencv_scales() -> list[tuple[int, int]]:
    return [(8, cv2.IMREAD_REDUCED_COLOR_8), (4, cv2.IMREAD_REDUCED_COLOR_4), (2, cv2.IMREAD_REDUCED_COLOR_2)]


def _opencv(data: bytes, flag: int, size: tuple[int, int]) -> Pixels:
    pixels = cv2.imdecode(np.frombuffer(data, np.uint8), flag)
    resized = cv2.resize(pixels, size[::-1], interpolation=cv2.INTER_AREA)
    # One pass that also turns blue-green-red round.
    normalised: Pixels = cv2.dnn.blobFromImage(resized, 1 / 127.5, mean=(127.5,) * 3, swapRB=True)[0]
    return normalised


def ways() -> Mapping[str, Way]:
    """Every way whose library is there, the usual one first."""
    found: dict[str, Way] = {
        USUAL: pillow,
        "pillow, all pixels, one block": pillow_one_block,
        "pillow, draft, gap 2": pillow_thumbnail,
        "service, all pixels": ours_in_full,
        "service": ours,
        "simplejpeg, all pixels": simplejpeg_in_full,
        "simplejpeg, reduced": simplejpeg_reduced,
    }
    if cv2 is not None:
        cv2.setNumThreads(1)
        found |= {"opencv, all pixels": opencv_in_full, "opencv, reduced": opencv_reduced}
    return found


def measure(rounds: int, kinds: Mapping[str, Callable[[int], bytes]]) -> list[dict[str, Any]]:
    """A row for each way and kind of picture."""
    rows = []
    chosen = ways()
    for kind, make in kinds.items():
        pictures = [make(seed) for seed in range(PICTURES)]
        usual = [pillow(picture) for picture in pictures]
        times: dict[str, list[float]] = {name: [] for name in chosen}
        for number in range(-1, rounds):
            for name, way in chosen.items():
                begun = now()
                for picture in pictures:
                    way(picture)
                if number >= 0:  # the first round warms up
                    times[name].append((now() - begun) * 1000 / len(pictures))
        for name, way in chosen.items():
            levels = np.concatenate(
                [np.abs(way(picture) - reference).ravel() for picture, reference in zip(pictures, usual, strict=True)]
            ) * (255 * B32.std[0])
            ratios = [mine / theirs for mine, theirs in zip(times[name], times[USUAL], strict=True)]
            rows.append(
                {
                    "picture": kind,
                    "way": name,
                    "median_ms": round(median(times[name]), 2),
                    "least_ms": round(min(times[name]), 2),
                    "of_usual": round(median(ratios), 3),
                    "mean_levels": round(float(levels.mean()), 3),
                    "p99_levels": round(float(np.quantile(levels, 0.99)), 2),
                    "max_levels": round(float(levels.max()), 1),
                }
            )
    return rows


def _versions() -> dict[str, str]:
    found = {"libjpeg-turbo in pillow": str(features.version("libjpeg_turbo"))}
    for package in ("pillow", "simplejpeg", "opencv-python-headless"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "missing"
    return found


@click.command()
@click.option("--quick", is_flag=True, help="A miniature: shows that it works, measures nothing.")
@report.results_option
def main(quick: bool, results: Path) -> None:
    """Measure decoding and preparing beside other ways."""
    machine = report.Machine()
    rows = measure(1, {"640x480": camera}) if quick else measure(ROUNDS, KINDS)
    summary: dict[str, Any] = {"versions": _versions()}
    for row in rows:
        if row["way"] == "service":
            summary[f"service, {row['picture']}"] = {key: row[key] for key in ("median_ms", "of_usual", "mean_levels")}
    report.write("decoding", "vilt-b32", results, machine=machine, summary=summary, rows=rows, quick=quick)


if __name__ == "__main__":
    main()
