"""Questions about drawn shapes: answers that follow from words and scene, balance, and wordings kept apart."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import combinations, islice

import numpy as np
import pytest

from models.shapes.degrade import DEGRADATIONS
from models.shapes.examples import Mixture, Split, draw_example, draw_split, stream
from models.shapes.phrasing import EASY, OBJECTS, TEMPLATES, Group, Kind
from models.shapes.questions import ANSWERS, UNANSWERABLE, Question
from models.shapes.scene import COLORS, Scene, Shape, easy_scene
from models.shapes.topics import SHARES, Asker

CLEAN = Mixture(degraded=0.0, disturbed=0.0)
KINDS = ("circle", "rectangle", "triangle")
NAMES = (*KINDS, "square")
COVERED = {"circle": np.pi / 4, "rectangle": 1.0, "triangle": 0.5}

# How this file reads a question. A thing: "red circle", "shape", "biggest one", "blue object".
_COLOR, _NOUN = "|".join(COLORS), "|".join((*NAMES, "shape", "one", "object"))
_THING = re.compile(rf"\b(?:({_COLOR}) )?({_NOUN})s?\b")
_ABOUT_THE_ONLY_SHAPE = {
    "what", "which", "color", "colour", "is", "it", "its", "does", "have", "do", "you", "see", "the", "of", "shape",
    "shapes", "in", "image", "picture", "contain", "present", "name", "this", "there", "kind", "can", "shown", "here",
    "show", "called", "figure", "would", "call", "that", "has", "a", "contains", "drawing",
}  # fmt: skip
_OBJECT = re.compile(
    r"(is there|there is|can you see|do you see|does (the|this) (picture|image|drawing) show( you)?) (an?|any) [a-z]+\b"
    r"|is (an?|any) [a-z]+ (visible|part of the picture)\b"
)
# What may stand before a question and changes nothing.
_BEFORE = re.compile(
    r"((in (the|this) (image|picture|drawing),|can you tell me( if)?|do you know( if)?|tell me,?|please|do you see that"
    r"|is it (so|true) that) )+"
)
_NOT = {"no", "not", "missing", "absent", "lack"}


@dataclass(frozen=True)
class _Thing:
    color: str | None
    noun: str

    def among(self, scene: Scene) -> list[Shape]:
        return [s for s in scene.shapes if self.color in (None, s.color) and _called(s, self.noun)]


def _called(shape: Shape, noun: str) -> bool:
    if noun == "square":
        return shape.kind == "rectangle" and shape.box[2] == shape.box[3]
    return noun in (shape.kind, "shape", "one", "object")


def _things(text: str) -> list[_Thing]:
    return [_Thing(color or None, noun) for color, noun in _THING.findall(text)]


def _size(shape: Shape) -> float:
    return COVERED[shape.kind] * shape.box[2] * shape.box[3]


def _believe(text: str, scene: Scene) -> str:
    """The right answer from the words and the scene's shapes alone: no topic, nothing of the generator's own logic."""
    before = _BEFORE.match(text)
    text, stated = text[before.end() if before else 0 :], bool(before) and before[0].endswith("that ")
    words = re.findall(r"[a-z]+", text)
    things = _things(text)
    if re.match(r"how many|(can you )?count|what (is the )?(number|count) of", text):
        return str(len(things[0].among(scene))) if things else UNANSWERABLE
    if {"left", "right"} & set(words) or "which side" in text:
        return _beside(text, scene)
    if found := {"biggest", "largest", "smallest"} & set(words):
        shape = (min if "smallest" in found else max)(scene.shapes, key=_size)
        return shape.color if {"color", "colour", "colors"} & set(words) else shape.kind
    if stated or words[0] in ("is", "are", "does", "do", "can", "would", "could", "there"):
        return _yes_or_no(text, words, scene)
    if {"color", "colour", "colors"} & set(words):
        named = [thing for thing in things if thing.noun in (*NAMES, "shape")]
        matching = named[0].among(scene) if named else _only_shape(words, scene)
        return matching[0].color if len(matching) == 1 else UNANSWERABLE
    if color := next((w for w in words if w in COLORS), None):
        matching = _Thing(color, "shape").among(scene)
        return matching[0].kind if len(matching) == 1 else UNANSWERABLE
    if {"shape", "shown", "figure"} & set(words):
        matching = _only_shape(words, scene)
        return matching[0].kind if matching else UNANSWERABLE
    return UNANSWERABLE


def _only_shape(words: list[str], scene: Scene) -> list[Shape]:
    """The shape that is meant where none is named; nothing where the words speak of something else."""
    return list(scene.shapes) if set(words) <= _ABOUT_THE_ONLY_SHAPE and len(scene.shapes) == 1 else []


def _beside(text: str, scene: Scene) -> str:
    found = _THING.search(text, re.search(r"(left of|right of|side of|than|look at|seen from) the ", text).end())
    other = _Thing(found[1], found[2])
    [one] = _things(text[: found.start()] + text[found.end() :])
    places = [[s.box[0] + s.box[2] / 2 for s in thing.among(scene)] for thing in (one, other)]
    if any(len(place) != 1 for place in places):
        return UNANSWERABLE
    assert abs(places[0][0] - places[1][0]) >= 0.15 * scene.width - 1e-9, "a side that people would not agree on"
    side = "left" if places[0] < places[1] else "right"
    asked = {"left", "right"} & set(re.findall(r"[a-z]+", text))
    return ("yes" if {side} == asked else "no") if len(asked) == 1 else side


def _yes_or_no(text: str, words: list[str], scene: Scene) -> str:
    """Whether there is such a thing; of one that is there alone ("is the circle red?") that is the same."""
    color = next((w for w in words if w in COLORS), None)
    name = next((w.removesuffix("s") for w in words if w.removesuffix("s") in NAMES), None)
    if not (color or name):
        return "no" if _OBJECT.match(text) else UNANSWERABLE
    there = bool(_Thing(color, name or "shape").among(scene))
    return "yes" if there != bool(_NOT & set(words)) else "no"


def _asked(split: Split, pictures: int, each: int) -> list[tuple[Question, Scene]]:
    asker = Asker(split.group)
    drawn = (draw_example(rng, asker, each, CLEAN) for rng in islice(stream(split, 3), pictures))
    return [(question, example.scene) for example in drawn for question in example.questions]


@pytest.mark.parametrize("split", [Split.TRAIN, Split.CALIBRATION, Split.TEST])
def test_answers_follow_from_words_and_scene(split: Split) -> None:
    topics = Counter()
    for question, scene in _asked(split, 900, 6):
        topics[question.topic] += 1
        assert question.answer in ANSWERS
        assert question.answer == _believe(question.text, scene), (question, scene.shapes)
        assert question.answerable == (question.answer != UNANSWERABLE)
    assert set(topics) == set(SHARES)
    assert min(topics.values()) > 20


def test_what_people_would_not_agree_on_is_not_asked() -> None:
    for question, scene in _asked(Split.TEST, 900, 6):
        if "square" in question.text:
            oblong = [max(s.box[2:]) / min(s.box[2:]) for s in scene.shapes if s.kind == "rectangle"]
            assert all(ratio == 1.0 or ratio >= 1.25 for ratio in oblong)
        if question.topic == "extreme":
            sizes = sorted(map(_size, scene.shapes))
            near, far = sizes[:2] if "smallest" in question.text else sizes[-2:]
            assert far >= 1.5 * near - 1e-9
            assert not scene.overlapping
        if question.topic in ("is_color", "it_is"):
            named = [t for t in _things(question.text) if t.noun != "shape"]
            alone = _Thing(None, named[0].noun).among(scene) if named else scene.shapes
            assert len(alone) == 1 or question.topic == "it_is"
            assert question.topic == "is_color" or len(scene.shapes) == 1
        if question.square:
            assert [s for s in scene.shapes if s.kind == "rectangle" and s.box[2] == s.box[3]]
            assert question.answer == "rectangle"


@pytest.mark.parametrize("split", [Split.TRAIN, Split.CALIBRATION, Split.TEST])
def test_answers_are_balanced_enough_to_need_the_picture(split: Split) -> None:
    answers = defaultdict(list)
    for question, _ in _asked(split, 1200, 6):
        answers[question.topic].append(question.answer)
    for topic, first in [(t, "yes") for t in ("present", "absent", "is_color", "it_is", "is_on_side")] + [
        ("side", "left")
    ]:
        said = np.array(answers[topic]) == first
        assert set(answers[topic]) == ({"yes", "no"} if first == "yes" else {"left", "right"})
        # Four standard errors of a fair coin, and two points for what cannot be asked of every scene.
        assert abs(said.mean() - 0.5) < 4 * 0.5 / len(said) ** 0.5 + 0.02, topic
    assert set(answers["count"]) == {"0", "1", "2", "3", "4", "5"}
    assert max(Counter(answers["count"]).values()) < 0.6 * len(answers["count"])
    assert set(answers["shape"]) == set(KINDS)
    assert max(Counter(answers["shape"]).values()) < 0.45 * len(answers["shape"])
    assert set(answers["color"]) == set(COLORS)


def test_topics_come_in_the_shares_that_are_stated_where_a_scene_carries_them() -> None:
    """What every scene carries comes at least as often as stated; the others share what is left."""
    topics = Counter(question.topic for question, _ in _asked(Split.VAL, 1200, 6))
    for topic in ("present", "absent", "count", "off_topic", "object_present"):
        assert topics[topic] / topics.total() > 0.9 * SHARES[topic] / sum(SHARES.values())


def test_easy_pictures_carry_every_topic_of_one_shape() -> None:
    asker = Asker(Group.TRAIN)
    topics = set()
    for rng in islice(stream(Split.VAL, 9), 200):
        topics |= {q.topic for q in draw_example(rng, asker, 8, CLEAN, easy_scene(rng)).questions}
    assert topics == set(SHARES) - {"extreme", "side", "is_on_side"}


def test_wordings_objects_and_damages_are_disjoint_between_groups() -> None:
    wordings = {g: {t for templates in TEMPLATES[g].values() for t in templates} for g in Group}
    wordings[Group.TRAIN] |= {t for templates in EASY.values() for t in templates}
    for a, b in combinations(Group, 2):
        assert not wordings[a] & wordings[b]
        assert not set(OBJECTS[a]) & set(OBJECTS[b])
        assert not set(DEGRADATIONS[a]) & set(DEGRADATIONS[b])
        assert not {f.__name__ for f in DEGRADATIONS[a].values()} & {f.__name__ for f in DEGRADATIONS[b].values()}


def test_every_kind_is_worded_in_every_group() -> None:
    for group in Group:
        assert set(TEMPLATES[group]) == set(Kind)


def _slots(objects: str) -> dict[str, str]:
    """For each slot an expression of all that it may hold."""
    noun, color = "|".join(("shape", *NAMES)), "|".join(COLORS)
    thing = rf"(?:(?:{color}) )?(?:{noun})"
    return {
        "thing": thing, "things": f"{thing}s", "a": f"an? {thing}", "noun": noun, "name": "|".join(NAMES),
        "color": color, "a_color": f"an? (?:{color})", "size": "biggest|largest|smallest", "one": thing, "other": thing,
        "side": "left|right", "object": objects, "an_object": f"an? (?:{objects})",
    }  # fmt: skip


def _recognised(group: Group) -> re.Pattern[str]:
    """All questions that a group can ask; in training an everyday object may be a made-up word of 3 to 8 letters."""
    templates = [t for found in TEMPLATES[group].values() for t in found]
    objects = "|".join(OBJECTS[group])
    if group is Group.TRAIN:
        templates += [t for found in EASY.values() for t in found]
        objects += "|[a-z]{3,8}"
    slots = _slots(objects)
    patterns = []
    for template in templates:
        parts = re.split(r"\{(\w+)\}", template)
        patterns.append("".join(f"(?:{slots[p]})" if k % 2 else re.escape(p) for k, p in enumerate(parts)))
    return re.compile("|".join(f"(?:{p})" for p in patterns))


def test_no_question_of_one_group_can_be_asked_in_another() -> None:
    """Stronger than comparing templates: two templates could still give the same question."""
    recognised = {group: _recognised(group) for group in Group}
    for split in (Split.TRAIN, Split.CALIBRATION, Split.TEST):
        others = [recognised[group] for group in Group if group is not split.group]
        for question in {q.text for q, _ in _asked(split, 1000, 6)}:
            assert recognised[split.group].fullmatch(question), question  # the expressions do recognise questions
            if split is not Split.TRAIN:
                assert not any(other.fullmatch(question) for other in others), question


def test_no_wording_filled_anyhow_is_a_training_question() -> None:
    """Every template of calibration and test, each slot filled in several ways, also those a scene seldom gives."""
    training = _recognised(Group.TRAIN)
    rng = np.random.default_rng(0)
    for group in (Group.CALIBRATION, Group.TEST):
        for template in {t for found in TEMPLATES[group].values() for t in found}:
            for _ in range(40):
                color, name, other, size, side, thing = (
                    str(rng.choice(options))
                    for options in (tuple(COLORS), (*NAMES, "shape"), NAMES, ("biggest", "smallest"), ("left", "right"),
                                    OBJECTS[group])
                )  # fmt: skip
                words = {"color": color, "name": name, "noun": name, "size": size, "side": side, "object": thing}
                words["an_object"] = f"a {thing}"
                one = name if rng.random() < 0.5 else f"{color} {name}"
                article = "an" if one[0] in "aeiou" else "a"
                words |= {"thing": one, "things": f"{one}s", "a": f"{article} {one}", "one": one, "other": other}
                words["a_color"] = f"{'an' if color[0] in 'aeiou' else 'a'} {color}"
                assert not training.fullmatch(template.format(**words)), template.format(**words)


def test_made_up_words_come_in_the_share_asked_for() -> None:
    asker = Asker(Group.TRAIN, shares={"object_present": 1.0}, invented=0.3)
    questions = [q for rng in islice(stream(Split.TRAIN, 2), 300) for q in asker.ask(easy_scene(rng), rng, 10)]
    known = set(OBJECTS[Group.TRAIN])
    invented = [not known & set(re.findall(r"[a-z]+", q.text)) for q in questions]
    assert np.mean(invented) == pytest.approx(0.3, abs=5 * (0.3 * 0.7 / 3000) ** 0.5)


def test_pictures_without_known_edges_are_not_asked_about_squares() -> None:
    asker = Asker(Group.CALIBRATION, squares=False)
    for rng in islice(stream(Split.CALIBRATION, 2), 300):
        assert not any("square" in q.text for q in draw_example(rng, asker, 6, CLEAN).questions)
    assert any("square" in q.text for e in draw_split(Split.CALIBRATION, 2, 200) for q in e.questions)
