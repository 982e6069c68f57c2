"""A few predictions to look at: the same ones whenever the same run is reported."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from service.errors import ImageError
from service.evaluation.reporting.predictions import View
from service.images import decode_image

SEED: Final = 20_150_503
EACH: Final = 6
LONGEST_SIDE: Final = 240
_JPEG_QUALITY: Final = 80

KINDS: Final = {
    "confident_and_wrong": "Surest of an answer that nobody gave",
    "right_and_unsure": "Right, and least sure of it",
    "abstained": "Abstained or called unanswerable",
    "failed": "Failed",
    "random": "Drawn at random",
}


@dataclass(frozen=True)
class Shown:
    """One prediction with its picture.

    Attributes:
        kind: a key of `KINDS`.
        row: the prediction's columns.
        picture: the picture as a JPEG data URL, or None.
        missing: why there is no picture; None where there is one.
        width, height: of the picture as shown, in pixels.
    """

    kind: str
    row: dict[str, Any]
    picture: str | None
    missing: str | None
    width: int = 0
    height: int = 0


def choose(view: View, score: NDArray[np.float64], *, each: int = EACH, seed: int = SEED) -> dict[str, list[int]]:
    """The rows to show of each kind, at most `each`; none twice.

    Args:
        view: the predictions.
        score: (n,), how sure the model was; NaN where unknown.
        each, seed: how many of a kind, and which of equals.
    """
    order = np.random.default_rng(seed).permutation(len(view))  # decides between equals
    sure = view.answered & np.isfinite(score)
    said = view.answered & ~view.unanswerable
    candidates = {
        "confident_and_wrong": _sorted(order, sure & said & (view.accuracy == 0), -score),
        "right_and_unsure": _sorted(order, sure & said & (view.accuracy == 1), score),
        "abstained": _sorted(order, view.abstained | view.unanswerable),
        "failed": _sorted(order, view.failed),
        "random": _sorted(order, np.ones(len(view), dtype=np.bool_)),
    }
    taken: set[int] = set()
    chosen = {}
    for kind, rows in candidates.items():
        chosen[kind] = [row for row in rows if row not in taken][:each]
        taken.update(chosen[kind])
    return chosen


def _sorted(order: NDArray[np.int64], among: NDArray[np.bool_], key: NDArray[np.float64] | None = None) -> list[int]:
    rows = order[among[order]]
    if key is not None:
        rows = rows[np.argsort(key[rows], kind="stable")]
    return [int(row) for row in rows]


def show(view: View, chosen: dict[str, list[int]], folder: Path) -> Iterator[Shown]:
    """The chosen predictions with their pictures.

    Args:
        view: the predictions.
        chosen: from `choose`.
        folder: of the run, where a relative path of a picture starts.
    """
    for kind, rows in chosen.items():
        for index in rows:
            row = view.row(index)
            try:
                url, width, height = thumbnail(folder / row["image"])
                yield Shown(kind, row, url, None, width, height)
            except OSError as error:
                yield Shown(kind, row, None, f"the picture's file cannot be read: {error.strerror}")
            except ImageError as error:
                yield Shown(kind, row, None, f"the picture cannot be shown: {error.detail}")


def thumbnail(path: Path, longest: int = LONGEST_SIDE) -> tuple[str, int, int]:
    """A picture file as a small JPEG data URL, with its width and height in pixels.

    Raises:
        OSError: the file cannot be read.
        ImageError: it is no picture that the service takes.
    """
    picture = decode_image(path.read_bytes()).picture.copy()
    picture.thumbnail((longest, longest), Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    picture.save(buffer, "JPEG", quality=_JPEG_QUALITY, optimize=True)
    return "data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode("ascii"), *picture.size
