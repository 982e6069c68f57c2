"""What is made of easy-VQA: facts read from its questions, pictures held out, shapes moved. Needs no torch."""

from __future__ import annotations

import numpy as np
import pytest

from models.shapes.scene import COLORS
from models.vilt import easyvqa

pytest.importorskip("easy_vqa", reason="the package easy-vqa is not installed")


@pytest.fixture(scope="module")
def train() -> easyvqa.EasyVQA:
    return easyvqa.load("train")


def _painted_color(pixels: np.ndarray) -> str:
    """The colour of the shape: the commonest one after the background."""
    colors, counts = np.unique(pixels.reshape(-1, 3), axis=0, return_counts=True)
    rgb = tuple(int(v) for v in colors[np.argsort(-counts)[1]])
    return {v: k for k, v in COLORS.items()}[rgb]


def test_facts_agree_with_the_pixels(train: easyvqa.EasyVQA) -> None:
    assert len(train.pixels) == 4000
    assert len(train.facts) > 3500
    for picture, (color, _) in list(train.facts.items())[:600]:
        assert _painted_color(train.pixels[picture]) == color


def test_facts_agree_with_every_official_answer(train: easyvqa.EasyVQA) -> None:
    for text, answer, picture in train.questions:
        if picture not in train.facts:
            continue
        facts = set(train.facts[picture])
        if answer not in ("yes", "no"):
            assert answer in facts
            continue
        asked = text.replace("shape", "").rstrip("?").split()
        there = bool(facts & set(asked))
        assert (answer == "yes") == (there != (easyvqa.question_kind(text) == "yes/no negated")), (text, answer, facts)


def test_held_out_pictures_are_not_trained_on(train: easyvqa.EasyVQA) -> None:
    trained, held_out = easyvqa.held_out(len(train.pixels))
    assert len(held_out) == 400
    assert not set(trained) & set(held_out)
    assert set(trained) | set(held_out) == set(range(4000))


def test_the_moved_shape_is_whole_and_upright(train: easyvqa.EasyVQA) -> None:
    """Moving changes no pixel's count; the rows of the shape keep their order from top to bottom."""
    rng = np.random.default_rng(0)
    for picture in range(60):
        before = train.pixels[picture]
        background = np.median(before.reshape(-1, 3), axis=0)
        moved = easyvqa.move_shape(before, rng)
        widths = [(np.abs(p.astype(int) - background).sum(2) > 20).sum(axis=1) for p in (before, moved)]
        assert [w for w in widths[0] if w] == [w for w in widths[1] if w]
        filled = np.flatnonzero(widths[1])
        assert filled[-1] - filled[0] + 1 == len(filled)  # not wrapped round the edge
