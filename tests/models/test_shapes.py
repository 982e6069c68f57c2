"""The generator of drawn shapes: official format, determinism, disjoint wordings, answers true to facts and pixels."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from models.shapes.annotators import annotate, vqa_accuracy
from models.shapes.degrade import DEGRADATIONS, degrade
from models.shapes.examples import Mixture, Split, draw_example, draw_split, stream
from models.shapes.phrasing import EASY, OBJECTS, TEMPLATES, Group, Kind
from models.shapes.questions import ANSWERS, UNANSWERABLE, Asker, Question
from models.shapes.render import render
from models.shapes.scene import COLORS, SHAPES, easy_scene, varied_scene
from models.shapes.vqav2 import answer_type, question_type

ROOT = Path(__file__).parents[2]
CLEAN = Mixture(degraded=0.0, disturbed=0.0)


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
        assert a.questions == b.questions
    other = list(draw_split(split, 8, 20))
    assert any(not np.array_equal(a.pixels, b.pixels) for a, b in zip(first, other, strict=True))


def test_splits_of_one_seed_share_no_scene() -> None:
    scenes = {split: {e.scene for e in draw_split(split, 0, 200, questions=1)} for split in Split}
    for a, b in combinations(Split, 2):
        assert not scenes[a] & scenes[b]


def test_wordings_objects_and_damages_are_disjoint_between_groups() -> None:
    wordings = {g: {t for templates in TEMPLATES[g].values() for t in templates} for g in Group}
    wordings[Group.TRAIN] |= {t for templates in EASY.values() for t in templates}
    for a, b in combinations(Group, 2):
        assert not wordings[a] & wordings[b]
        assert not set(OBJECTS[a]) & set(OBJECTS[b])
        assert not set(DEGRADATIONS[a]) & set(DEGRADATIONS[b])


def test_no_calibration_or_test_question_matches_a_training_wording() -> None:
    """Stronger than comparing templates: two templates could still give the same question."""
    templates = [t for group in (EASY, TEMPLATES[Group.TRAIN]) for ts in group.values() for t in ts]
    slots = {
        "color": "|".join(COLORS),
        "noun": "|".join(("shape", *SHAPES)),
        "object": "|".join(o for objects in OBJECTS.values() for o in objects),
    }
    things = rf"(?:(?:{slots['color']}) )?(?:{slots['noun']})"
    slots |= {"thing": things, "things": things + "s", "a": "a " + things}
    patterns = []
    for template in templates:
        parts = re.split(r"\{(\w+)\}", template)
        pattern = "".join(f"(?:{slots[p]})" if k % 2 else re.escape(p) for k, p in enumerate(parts))
        patterns.append(pattern)
    training = re.compile("|".join(f"(?:{p})" for p in patterns))
    trained = [q.text for e in draw_split(Split.TRAIN, 1, 60) for q in e.questions]
    assert all(training.fullmatch(t) for t in trained)  # the patterns do recognise training questions
    for split in (Split.CALIBRATION, Split.TEST):
        for example in draw_split(split, 1, 400):
            for question in example.questions:
                assert not training.fullmatch(question.text), question.text


def test_every_kind_is_worded_in_every_group() -> None:
    for group in Group:
        assert set(TEMPLATES[group]) == set(Kind)


def _believe(question: Question, kinds: list[str], colors: list[str]) -> str | None:
    """The right answer worked out from the wording alone, apart from the generator; None for what it cannot read.

    `kinds` and `colors`: of each shape of the scene.
    """
    words = re.findall(r"[a-z]+", question.text)
    color = next((w for w in words if w in COLORS), None)
    kind = next((w.removesuffix("s") for w in words if w.removesuffix("s") in SHAPES), None)
    matching = [(c, k) for c, k in zip(colors, kinds, strict=True) if color in (None, c) and kind in (None, k)]
    if question.topic in ("present", "absent"):
        negated = bool({"no", "not", "missing"} & set(words))
        return "yes" if bool(matching) != negated else "no"
    if question.topic == "count":
        return str(len(matching))
    if question.topic == "color":
        return matching[0][0] if len(matching) == 1 else None
    if question.topic in ("shape", "shape_of_color"):
        return matching[0][1] if len(matching) == 1 else None
    if question.topic == "is_color":
        of_kind = [c for c, k in zip(colors, kinds, strict=True) if kind in (None, k)]
        return "yes" if (of_kind == [color]) != ("not" in words) else "no"
    if question.topic == "object_present":
        return "no"
    return UNANSWERABLE


@pytest.mark.parametrize("split", [Split.TRAIN, Split.CALIBRATION, Split.TEST])
def test_answers_follow_from_the_facts(split: Split) -> None:
    asker = Asker(split.group)
    topics = set()
    for _, rng in zip(range(400), stream(split, 3), strict=False):
        example = draw_example(rng, asker, 6, CLEAN)
        kinds, colors = [s.kind for s in example.scene.shapes], [s.color for s in example.scene.shapes]
        for question in example.questions:
            topics.add(question.topic)
            assert question.answer in ANSWERS
            assert question.answer == _believe(question, kinds, colors), (question, kinds, colors)
    assert len(topics) == 10


def test_answers_are_balanced_enough_to_need_the_picture() -> None:
    questions = [q for e in draw_split(Split.VAL, 0, 500, questions=6) for q in e.questions]
    for topic in ("present", "absent", "is_color"):
        share = np.mean([q.answer == "yes" for q in questions if q.topic == topic])
        assert 0.4 < share < 0.6, topic
    counts = {q.answer for q in questions if q.topic == "count"}
    assert counts == {"0", "1", "2", "3", "4", "5"}


def test_pixels_show_the_scene() -> None:
    """Each shape covers the share of its box that geometry gives: circle pi/4, rectangle 1, triangle 1/2."""
    covered = {"circle": np.pi / 4, "rectangle": 1.0, "triangle": 0.5}
    for _, rng in zip(range(150), stream(Split.TRAIN, 11), strict=False):
        scene = varied_scene(rng) if rng.random() < 0.7 else easy_scene(rng)
        pixels = render(scene)
        assert pixels.shape == (scene.height, scene.width, 3)
        assert pixels.dtype == np.uint8
        for shape in scene.shapes:
            left, top, width, height = shape.box
            box = pixels[round(top) : round(top + height), round(left) : round(left + width)]
            painted = (np.abs(box.astype(int) - np.array(shape.rgb)).sum(-1) < 40).mean()
            assert painted == pytest.approx(covered[shape.kind], abs=0.16), shape
            nearest = min(COLORS, key=lambda c: sum((a - b) ** 2 for a, b in zip(COLORS[c], shape.rgb, strict=True)))
            assert nearest == shape.color


def test_shapes_do_not_touch() -> None:
    for _, rng in zip(range(200), stream(Split.VAL, 2), strict=False):
        for a, b in combinations(varied_scene(rng).shapes, 2):
            apart_x = a.box[0] + a.box[2] < b.box[0] or b.box[0] + b.box[2] < a.box[0]
            apart_y = a.box[1] + a.box[3] < b.box[1] or b.box[1] + b.box[3] < a.box[1]
            assert apart_x or apart_y


@pytest.mark.parametrize(("group", "name"), [(g, n) for g in Group for n in DEGRADATIONS[g]])
def test_a_ruined_picture_hides_which_shape_it_showed(group: Group, name: str) -> None:
    """A circle and a triangle in the same box, ruined alike, hardly differ in the mean of any 4 x 4 block."""
    for seed in range(10):
        scene = easy_scene(np.random.default_rng(seed))
        shape = scene.shapes[0]
        clean = [render(replace(scene, shapes=(replace(shape, kind=kind),))) for kind in ("circle", "triangle")]
        ruined = [DEGRADATIONS[group][name](pixels, np.random.default_rng(seed)) for pixels in clean]
        assert ruined[0].shape == clean[0].shape
        assert ruined[0].dtype == np.uint8
        assert _largest_block_difference(*clean) > 80
        assert _largest_block_difference(*ruined) < 25, seed


def _largest_block_difference(a: np.ndarray, b: np.ndarray) -> float:
    difference = (a.astype(float) - b).reshape(16, 4, 16, 4, 3).mean(axis=(1, 3))
    return float(np.abs(difference).max())


def test_questions_about_a_ruined_picture_are_unanswerable() -> None:
    ruined = [e for e in draw_split(Split.TEST, 0, 300) if e.damage]
    assert len(ruined) > 5
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


def test_vqa_accuracy_of_the_official_metric() -> None:
    """By hand: with m of 10 agreeing, leaving one out gives min(1, (m-1)/3) m times and min(1, m/3) 10-m times."""
    answers = ["red"] * 2 + ["blue"] * 8
    assert vqa_accuracy("red", answers) == pytest.approx((2 * (1 / 3) + 8 * (2 / 3)) / 10)
    assert vqa_accuracy("blue", answers) == 1.0
    assert vqa_accuracy("green", answers) == 0.0
    assert vqa_accuracy("4", annotate(Question("how many shapes?", "4", "count"))) == 1.0
