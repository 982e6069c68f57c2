"""Grounding of GQA: how much of a model's attention lies on the regions that a question and its answer speak of.

For each region and each cell of the attention map, the cell's attention is weighted with the share of the cell that
the region covers, and all is added up (Hudson and Manning 2019, section 4.4; `eval.py`, computeGroundingScore).

The official code takes the map's row for x and its column for y. Published scores are computed like that, so it is
kept. Its branch for attention over objects (--objectFeatures) cannot run: it reads a variable before it is set.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from service.errors import DataError
from service.scoring.gqa_files import Question, read_objects
from service.scoring.rows import kind_of, read_array, records, text_of

_NUMBERS_OF_A_REGION: Final = 5  # x0, y0, x1, y1, attention


class Grounding:
    """Scene graphs and attention maps, and the score of one question by them.

    Args:
        scenes: the scene graphs, one object by picture id; a file, or a folder of chunks.
        attentions: a JSON array of `{"questionId", "attention"}`, all maps square and of one size.

    Raises:
        DataError: a file cannot be used; the place says which question or row.
    """

    def __init__(self, scenes: Path, attentions: Path) -> None:
        self._scenes_path, self._attentions_path = scenes, attentions
        self._scenes = read_objects(scenes, "scene graphs")
        rows = records(attentions, read_array(attentions, '{"questionId", "attention"}'), "questionId", "attention")
        self._maps: dict[str, NDArray[np.float64]] = {}
        size: int | None = None
        for place, row in rows:
            qid = text_of(attentions, place, row, "questionId")
            attention = _map(attentions, f"{place} (question {qid})", row["attention"], size)
            size = len(attention)
            self._maps[qid] = attention

    def score(self, qid: str, question: Question) -> float:
        """The attention that lies on the question's regions.

        Raises:
            DataError: the question has no attention map, its picture no scene graph, or that no such object.
        """
        if qid not in self._maps:
            raise DataError(self._attentions_path, "no attention for this question", f"question {qid}")
        attention = self._maps[qid]
        regions = [*self._regions(qid, question)]
        if question.whole_scene:
            regions.append((0.0, 0.0, 1.0, 1.0))
        if not regions:
            return 0.0
        return _attention_on(attention, np.array(regions, dtype=np.float64))

    def _regions(self, qid: str, question: Question) -> Iterable[tuple[float, float, float, float]]:
        """The boxes that the question points at, each (x0, y0, x1, y1) as fractions of the picture."""
        place = f"question {qid}"
        try:
            scene = self._scenes[question.image]
        except KeyError as error:
            raise DataError(self._scenes_path, f"no scene graph for the picture {question.image!r}", place) from error
        if question.pointers is None:
            raise DataError(self._scenes_path, "the question has no 'annotations', and so no regions", place)
        for pointer in question.pointers:
            try:
                if pointer not in scene["objects"]:
                    what = f"the scene graph of the picture {question.image!r} has no object {pointer!r}"
                    raise DataError(self._scenes_path, what, place)
                region = _box(scene, scene["objects"][pointer])
            except (KeyError, TypeError, ValueError, ZeroDivisionError, OverflowError) as error:
                if isinstance(error, DataError):
                    raise
                what = f"the object {pointer!r} of the picture {question.image!r} has no usable box ({error!r})"
                raise DataError(self._scenes_path, what, place) from error
            yield region


def _box(scene: Any, box: Any) -> tuple[float, float, float, float]:
    """The corners (x0, y0, x1, y1) of a box as fractions of its picture.

    Raises:
        KeyError, TypeError, ValueError, ZeroDivisionError, OverflowError: it has none.
    """
    width, height = scene["width"], scene["height"]
    corners = (
        float(box["x"]) / width,
        float(box["y"]) / height,
        float(box["x"] + box["w"]) / width,
        float(box["y"] + box["h"]) / height,
    )
    if not all(map(math.isfinite, corners)):
        raise ValueError("not finite")
    return corners


def _map(path: Path, place: str, rows: Any, size: int | None) -> NDArray[np.float64]:
    """One attention map, a square array of numbers, of the size that the first one has."""
    if not isinstance(rows, list) or not rows or not all(isinstance(row, list) for row in rows):
        raise DataError(path, f"expected an attention map, an array of rows, and this is {kind_of(rows)}", place)
    widths = {len(row) for row in rows}
    if widths == {_NUMBERS_OF_A_REGION} and len(rows) != _NUMBERS_OF_A_REGION:
        what = (
            "this is attention over objects (x0, y0, x1, y1, attention), which the official program cannot score: "
            "its --objectFeatures ends in an error; give spatial attention, a square map for each question"
        )
        raise DataError(path, what, place)
    if widths != {len(rows)}:
        raise DataError(path, f"the map is not square: {len(rows)} rows of {sorted(widths)} numbers", place)
    if size is not None and len(rows) != size:
        raise DataError(path, f"the map is {len(rows)} x {len(rows)}, and those before are {size} x {size}", place)
    if not all(isinstance(number, int | float) and _is_finite(number) for row in rows for number in row):
        raise DataError(path, "the map holds something that is no finite number", place)
    return np.array(rows, dtype=np.float64)


def _is_finite(number: float) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:  # a whole number that no float can hold
        return False


def _attention_on(attention: NDArray[np.float64], regions: NDArray[np.float64]) -> float:
    """The attention [n, n] on the regions [k, 4], added in the official order: by region, then cell by cell."""
    size = len(attention)
    edge = 1.0 / size
    low = edge * np.arange(size, dtype=np.float64)
    high = edge * np.arange(1, size + 1, dtype=np.float64)
    across = _overlap(low, high, regions[:, 0:1], regions[:, 2:3])[:, :, None]
    down = _overlap(low, high, regions[:, 1:2], regions[:, 3:4])[:, None, :]
    area = (high - low)[:, None] * (high - low)[None, :]
    parts = attention * (across * down / area)
    return float(np.cumsum(parts.ravel())[-1])  # cumsum adds one by one; sum would add in pairs


def _overlap(
    low: NDArray[np.float64], high: NDArray[np.float64], start: NDArray[np.float64], end: NDArray[np.float64]
) -> NDArray[np.float64]:
    """How much of the intervals [n] each interval [k, 1] covers: [k, n]."""
    lengths: NDArray[np.float64] = np.maximum(np.minimum(high, end) - np.maximum(low, start), 0.0)
    return lengths
