"""The generator of drawn shapes: official format, determinism, scenes as promised, true pixels, ruined pictures."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, islice
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from models.shapes.degrade import DEGRADATIONS, degrade
from models.shapes.examples import Split, draw_split, stream
from models.shapes.phrasing import Group
from models.shapes.questions import UNANSWERABLE
from models.shapes.render import render
from models.shapes.scene import COLORS, Scene, Shape, easy_scene, varied_scene
from models.shapes.vqav2 import answer_type, question_type

ROOT = Path(__file__).parents[2]
# Geometry: the share of its box that each covers.
COVERED = {"circle": np.pi / 4, "rectangle": 1.0, "triangle": 0.5}


@pytest.fixture(scope="module")
def data_set(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shapes")
    command = [sys.executable, "-m", "models.shapes", "--out", folder, "--split", "val", "--count", "30", "--seed", "5"]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return folder


def test_questions_file_has_the_official_layout(data_set: Path) -> None:
    official = json.loads((data_set / "questions.json").read_text())
    assert set(official) == {"info", "license", "data_type", "task_type", "data_subtype", "questions"}
    assert official["task_type"] == "Open-Ended"
    assert len(official["questions"]) == 90
    for question in official["questions"]:
        assert set(question) == {"image_id", "question", "question_id"}
        assert question["question_id"] // 1000 == question["image_id"]


def test_annotations_file_has_the_official_layout(data_set: Path) -> None:
    questions = json.loads((data_set / "questions.json").read_text())["questions"]
    official = json.loads((data_set / "annotations.json").read_text())
    assert set(official) == {"info", "license", "data_type", "data_subtype", "annotations"}
    asked = [q["question_id"] for q in questions]
    assert [a["question_id"] for a in official["annotations"]] == asked
    assert len(set(asked)) == len(asked)
    for annotation in official["annotations"]:
        assert set(annotation) == {
            "question_type", "multiple_choice_answer", "answers", "image_id", "answer_type", "question_id",
        }  # fmt: skip
        assert [a["answer_id"] for a in annotation["answers"]] == list(range(1, 11))
        assert all(a["answer_confidence"] in ("yes", "maybe", "no") for a in annotation["answers"])
        given = [a["answer"] for a in annotation["answers"]]
        assert annotation["multiple_choice_answer"] == max(given, key=given.count)
        assert annotation["answer_type"] in ("yes/no", "number", "other")


def test_every_question_has_its_picture(data_set: Path) -> None:
    for question in json.loads((data_set / "questions.json").read_text())["questions"]:
        path = data_set / "images" / f"shapes_val_{question['image_id']:012d}.png"
        width, height = Image.open(path).size
        assert 2 / 3 - 0.01 <= width / height <= 1.51


@pytest.mark.parametrize("split", list(Split))
def test_the_same_seed_draws_the_same_examples(split: Split) -> None:
    first, second = list(draw_split(split, 7, 20)), list(draw_split(split, 7, 20))
    for a, b in zip(first, second, strict=True):
        assert np.array_equal(a.pixels, b.pixels)
        assert a.questions == b.questions  # people's answers among them
    other = list(draw_split(split, 8, 20))
    assert any(not np.array_equal(a.pixels, b.pixels) for a, b in zip(first, other, strict=True))


def test_splits_of_one_seed_share_no_scene() -> None:
    scenes = {split: {e.scene for e in draw_split(split, 0, 200, questions=1)} for split in Split}
    assert all(len(found) == 200 for found in scenes.values())
    for a, b in combinations(Split, 2):
        assert not scenes[a] & scenes[b]


def _scenes(split: Split, seed: int, count: int) -> Iterator[Scene]:
    return (varied_scene(rng) for rng in islice(stream(split, seed), count))


def _shared(a: Shape, b: Shape) -> float:
    """Square pixels that two boxes have in common."""
    width, height = (min(a.box[k] + a.box[k + 2], b.box[k] + b.box[k + 2]) - max(a.box[k], b.box[k]) for k in range(2))
    return max(0.0, width) * max(0.0, height)


def test_one_shape_hides_at_most_three_tenths_of_another_of_another_colour() -> None:
    pairs = [pair for scene in _scenes(Split.VAL, 2, 1500) for pair in combinations(scene.shapes, 2)]
    overlapping = [(a, b) for a, b in pairs if _shared(a, b) > 0]
    assert 0.02 < len(overlapping) / len(pairs) < 0.2
    for below, above in overlapping:
        assert _shared(below, above) <= 0.3 * min(s.box[2] * s.box[3] for s in (below, above)) + 1e-9
        # Red and blue are 360 apart on this scale, the background keeps 90 from a shape.
        assert np.linalg.norm(np.subtract(below.rgb, above.rgb)) >= 90
    assert any(scene.overlapping for scene in _scenes(Split.VAL, 2, 100))


def test_most_of_every_shape_is_visible() -> None:
    """However many lie on it: counted on a grid of points of its box."""
    for scene in _scenes(Split.VAL, 3, 1500):
        if not scene.overlapping:
            continue
        for number, shape in enumerate(scene.shapes):
            left, top, width, height = shape.box
            x, y = np.meshgrid(left + width * np.linspace(0, 1, 30), top + height * np.linspace(0, 1, 30))
            hidden = np.zeros(x.shape, bool)
            for other in scene.shapes[number + 1 :]:
                right, bottom = other.box[0] + other.box[2], other.box[1] + other.box[3]
                hidden |= (other.box[0] < x) & (x < right) & (other.box[1] < y) & (y < bottom)
            assert hidden.mean() < 0.5


def test_squares_have_equal_edges_and_other_rectangles_clearly_none() -> None:
    rectangles = [s for scene in _scenes(Split.VAL, 4, 600) for s in scene.shapes if s.kind == "rectangle"]
    elongations = np.array([max(s.box[2:]) / min(s.box[2:]) for s in rectangles])
    assert set(elongations[elongations < 1.25 - 1e-9]) == {1.0}
    assert 0.25 < (elongations == 1.0).mean() < 0.45
    assert [s.called("square") for s in rectangles] == [bool(e == 1.0) for e in elongations]
    assert all(s.called("rectangle") for s in rectangles)


def test_a_nearly_square_rectangle_is_neither() -> None:
    edges = {10.0: True, 10.1: None, 12.4: None, 12.5: False, 30.0: False}
    for height, square in edges.items():
        for box in ((0.0, 0.0, 10.0, height), (0.0, 0.0, height, 10.0)):
            assert Shape("rectangle", "red", box, COLORS["red"]).called("square") is square
    assert Shape("circle", "red", (0.0, 0.0, 10.0, 10.0), COLORS["red"]).called("square") is False


def test_every_colour_is_drawn_and_nearest_to_its_name() -> None:
    found = set()
    for scene in _scenes(Split.VAL, 5, 300):
        for shape in scene.shapes:
            found.add(shape.color)
            assert min(COLORS, key=lambda c: np.linalg.norm(np.subtract(COLORS[c], shape.rgb))) == shape.color
    assert found == set(COLORS)
    assert len(COLORS) == 11


def test_pixels_show_the_scene() -> None:
    """Each shape covers the share of its box that geometry gives."""
    scenes = [
        varied_scene(rng) if k % 3 else easy_scene(rng) for k, rng in enumerate(islice(stream(Split.VAL, 1), 200))
    ]
    for scene in scenes:
        pixels = render(scene)
        assert pixels.shape == (scene.height, scene.width, 3)
        assert pixels.dtype == np.uint8
        for shape in () if scene.overlapping else scene.shapes:
            left, top, width, height = shape.box
            assert shape.area == pytest.approx(COVERED[shape.kind] * width * height)
            if min(width, height) < 14:
                continue  # too small to tell: its edge pixels are a large share of it
            box = pixels[round(top) : round(top + height), round(left) : round(left + width)]
            painted = (np.abs(box.astype(int) - np.array(shape.rgb)).sum(-1) < 40).mean()
            assert painted == pytest.approx(COVERED[shape.kind], abs=0.15), shape


def test_the_later_shape_lies_on_the_earlier_one() -> None:
    shapes = [Shape("rectangle", c, box, COLORS[c]) for c, box in (("red", (4, 4, 20, 20)), ("blue", (20, 20, 20, 20)))]
    pixels = render(replace(easy_scene(np.random.default_rng(0)), shapes=tuple(shapes)))
    assert [tuple(pixels[y, y]) for y in (10, 22, 35)] == [COLORS["red"], COLORS["blue"], COLORS["blue"]]


def test_a_texture_has_two_near_colours_in_its_grain() -> None:
    textured = [s for s in _scenes(Split.VAL, 6, 100) if s.background.texture != "none"]
    assert {s.background.texture for s in textured} == {"stripes", "checks"}
    for scene in textured:
        pixels = render(replace(scene, shapes=()))
        colors = {tuple(int(v) for v in rgb) for rgb in np.unique(pixels.reshape(-1, 3), axis=0)}
        assert colors <= {scene.background.start, scene.background.end}
        assert np.abs(np.subtract(scene.background.start, scene.background.end)).max() <= 24
        grain = scene.background.grain
        patch = pixels[:grain, :grain].reshape(-1, 3)
        assert (patch == patch[0]).all()


@pytest.mark.parametrize(("group", "name"), [(g, n) for g in Group for n in DEGRADATIONS[g] if "oom" not in n])
def test_a_ruined_picture_hides_which_shape_it_showed(group: Group, name: str) -> None:
    """A circle and a triangle in the same box, ruined alike, differ little in the mean of any of 16 x 16 blocks."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        scene = varied_scene(rng, most=1) if seed % 2 else easy_scene(rng)
        clean = [render(_changed(scene, kind=kind)) for kind in ("circle", "triangle")]
        ruined = [DEGRADATIONS[group][name](pixels, np.random.default_rng(seed)) for pixels in clean]
        assert ruined[0].shape == clean[0].shape
        assert ruined[0].dtype == np.uint8
        assert _largest_block_difference(*clean) > 80
        assert _largest_block_difference(*ruined) < 40, seed


@pytest.mark.parametrize(("group", "name"), [(g, n) for g in Group for n in DEGRADATIONS[g]])
def test_a_ruined_picture_hides_where_a_colour_was(group: Group, name: str) -> None:
    """Red and blue, ruined alike, differ no more in one block than in all: there is a tint at most, and no shape."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        scene = varied_scene(rng, most=1) if seed % 2 else easy_scene(rng)
        clean = [render(_changed(scene, color=c, rgb=COLORS[c])) for c in ("red", "blue")]
        assert _largest_block_difference(*map(_without_tint, clean)) > 80
        ruined = [DEGRADATIONS[group][name](pixels, np.random.default_rng(seed)) for pixels in clean]
        assert _largest_block_difference(*map(_without_tint, ruined)) < 40, seed


@pytest.mark.parametrize(
    ("group", "name"), [(g, n) for g in Group for n in DEGRADATIONS[g] if "oom" in n or "cro" in n]
)
def test_what_a_crop_leaves_is_one_flat_region(group: Group, name: str) -> None:
    """On a plain background nothing of a shape's edge is left: one colour, within the rounding of the enlargement."""
    plain = 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        scene = varied_scene(rng) if seed % 3 else easy_scene(rng)
        scene = replace(scene, background=replace(scene.background, end=scene.background.start, texture="none"))
        cropped = DEGRADATIONS[group][name](render(scene), rng)
        assert cropped.shape == (scene.height, scene.width, 3)
        plain += int(np.ptp(cropped.astype(int), axis=(0, 1)).max()) <= 4
    assert plain >= 398  # of 400: where five shapes lie along all edges a crop may meet one


def _changed(scene: Scene, **other: object) -> Scene:
    return replace(scene, shapes=(replace(scene.shapes[0], **other),))


def _without_tint(pixels: np.ndarray) -> np.ndarray:
    return pixels - pixels.mean(axis=(0, 1))


def _largest_block_difference(a: np.ndarray, b: np.ndarray) -> float:
    high, wide = (edge // 16 for edge in a.shape[:2])
    difference = (a.astype(float) - b)[: 16 * high, : 16 * wide].reshape(16, high, 16, wide, 3).mean(axis=(1, 3))
    return float(np.abs(difference).max())


def test_questions_about_a_ruined_picture_are_unanswerable() -> None:
    ruined = [e for e in draw_split(Split.TEST, 0, 300) if e.damage]
    assert 10 < len(ruined) < 45  # 24 expected
    assert all(q.answer == UNANSWERABLE and not q.answerable for e in ruined for q in e.questions)
    assert {degrade(ruined[0].pixels, np.random.default_rng(k), Group.TEST)[1] for k in range(60)} == set(
        DEGRADATIONS[Group.TEST]
    )


def test_official_question_and_answer_types() -> None:
    assert question_type("What color is the circle?") == "what color is the"
    assert question_type("How many shapes are there?") == "how many"
    assert question_type("Is there a red shape?") == "is there a"
    assert question_type("Count the circles.") == "none of the above"
    assert [answer_type(a) for a in ("yes", "no", "3", "red", UNANSWERABLE)] == [
        "yes/no", "yes/no", "number", "other", "other",
    ]  # fmt: skip
