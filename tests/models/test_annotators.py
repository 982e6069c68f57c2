"""Ten simulated people: how often they err, in which way, and that they are the same ten for the same seed."""

from __future__ import annotations

import colorsys
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from models.shapes.annotators import annotate, doubts
from models.shapes.examples import Split, draw_split
from models.shapes.questions import ANSWERS, UNANSWERABLE, Question
from models.shapes.scene import COLORS, Background, Scene, Shape

WHITE = Background((255, 255, 255), (255, 255, 255))
RED = Shape("circle", "red", (4.0, 4.0, 20.0, 20.0), COLORS["red"])
ALONE = Scene(64, 64, WHITE, (RED,))
OVERLAPPING = Scene(64, 64, WHITE, (RED, Shape("circle", "blue", (20.0, 20.0, 20.0, 20.0), COLORS["blue"])))
ASKED = 3000


def _said(question: Question, scene: Scene = ALONE) -> Counter[str]:
    """What people answer, over many askings."""
    rng = np.random.default_rng(0)
    return Counter(answer for _ in range(ASKED) for answer in annotate(question, scene, rng).answers)


def _is_share(count: int, share: float) -> bool:
    """Within five standard errors of a binomial draw."""
    people = 10 * ASKED
    return abs(count / people - share) < 5 * (share * (1 - share) / people) ** 0.5


def test_ten_people_answer_each_question() -> None:
    for split in Split:
        for example in draw_split(split, 4, 40):
            assert all(len(question.answers) == 10 for question in example.questions)


def test_the_same_seed_gives_the_same_answers() -> None:
    question = Question("how many shapes are there?", "4", "count")
    first, second, other = (annotate(question, ALONE, np.random.default_rng(k)) for k in (1, 1, 2))
    assert first == second
    assert replace(first, answers=()) == question
    assert any(annotate(question, ALONE, np.random.default_rng(k)) != first for k in range(10)) or other != first


@pytest.mark.parametrize(("right", "wrong"), [("yes", "no"), ("no", "yes")])
def test_one_in_twenty_misses_a_yes_or_no(right: str, wrong: str) -> None:
    said = _said(Question("is there a circle?", right, "present"))
    assert set(said) == {right, wrong}
    assert _is_share(said[wrong], 0.05)


@pytest.mark.parametrize(("right", "wrong"), [("left", "right"), ("right", "left")])
def test_one_in_twenty_five_mixes_up_left_and_right(right: str, wrong: str) -> None:
    said = _said(Question("is the red shape left or right of the blue shape?", right, "side"))
    assert set(said) == {right, wrong}
    assert _is_share(said[wrong], 0.04)


def test_people_miscount_by_one_the_likelier_the_more_there_is() -> None:
    missed = []
    for count in range(6):
        said = _said(Question("how many shapes are there?", str(count), "count"))
        assert set(said) == {str(n) for n in (count - 1, count, count + 1) if n >= 0}
        if count:
            assert abs(said[str(count - 1)] - said[str(count + 1)]) < 5 * (10 * ASKED * 0.15) ** 0.5
        missed.append(1 - said[str(count)] / said.total())
    assert missed == sorted(missed)
    assert 0 < missed[0] < 0.03
    assert 0.1 < missed[5] < 0.2


def test_overlapping_shapes_are_miscounted_half_as_often_again() -> None:
    question = Question("how many shapes are there?", "5", "count")
    apart, over = (1 - _said(question, scene)["5"] / (10 * ASKED) for scene in (ALONE, OVERLAPPING))
    assert over / apart == pytest.approx(1.5, abs=0.12)


def test_a_colour_is_taken_for_one_near_it() -> None:
    """Near by the eye's own measure: hue, or, of what has none, lightness; other names of the same colour beside."""
    other_names = {"gray": {"grey", "silver"}, "brown": {"maroon"}, "green": {"lime"}}
    for color, rgb in COLORS.items():
        said = _said(Question("what color is the shape?", color, "color"))
        assert said[color] > 0.8 * said.total()
        for wrong in set(said) - {color} - other_names.get(color, set()):
            assert _near(rgb, COLORS[wrong]), (color, wrong)


def _near(a: tuple[int, int, int], b: tuple[int, int, int]) -> bool:
    (hue, saturation, _), (other_hue, other_saturation, _) = (
        colorsys.rgb_to_hsv(*(v / 255 for v in rgb)) for rgb in (a, b)
    )
    if not saturation or not other_saturation:
        return saturation == other_saturation
    apart = abs(hue - other_hue)
    return min(apart, 1 - apart) <= 1 / 6 + 0.01


def test_a_square_is_called_so_by_two_of_five_and_another_rectangle_by_few() -> None:
    square = _said(Question("what shape is this?", "rectangle", "shape", square=True))
    assert set(square) == {"rectangle", "square"}
    assert _is_share(square["square"], 0.4)
    oblong = _said(Question("what shape is this?", "rectangle", "shape"))
    assert set(oblong) == {"rectangle", "square"}
    assert oblong["square"] < 0.06 * oblong.total()


@pytest.mark.parametrize("topic", ["off_topic", "false_premise"])
def test_most_say_that_a_question_cannot_be_answered(topic: str) -> None:
    said = _said(Question("what does the label say?", UNANSWERABLE, topic))
    assert said[UNANSWERABLE] > 0.85 * said.total()


@pytest.mark.parametrize("hidden", ["red", "yes", "3", "left", UNANSWERABLE])
def test_some_say_what_they_think_they_see_in_a_ruined_picture(hidden: str) -> None:
    said = _said(Question("what color is it?", UNANSWERABLE, "degraded", hidden=hidden))
    assert said[UNANSWERABLE] > 0.8 * said.total()
    assert hidden == UNANSWERABLE or _is_share(said[hidden], 0.04)
    assert hidden in said


def test_nobody_is_likelier_wrong_than_right_and_no_single_wrong_answer_beats_the_right_one() -> None:
    for split in Split:
        for example in draw_split(split, 6, 100):
            for question in example.questions:
                instead = doubts(question, example.scene)
                assert all(share > 0 for share in instead.values())
                assert sum(share for answer, share in instead.items() if answer != question.answer) < 0.5, question


def test_most_people_are_right_about_most_questions() -> None:
    """The commonest answer is the right one nearly always; where it is not, people disagreed."""
    questions = [q for split in Split for e in draw_split(split, 8, 80) for q in e.questions]
    right = [q.answers.count(q.answer) for q in questions]
    assert np.mean(right) > 9
    most = [Counter(q.answers).most_common(1)[0] for q in questions]
    assert np.mean([answer == q.answer for (answer, _), q in zip(most, questions, strict=True)]) > 0.98
    assert {q.answer for q in questions} <= set(ANSWERS)
