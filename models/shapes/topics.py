"""What can be asked of a scene; every answer follows from the scene's facts alone.

A topic that a scene cannot carry (the colour of "the shape" among three) gives None and the others take its share. So
does one of which people would not agree: a nearly square rectangle as a square, a side where two are nearly level.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from models.shapes.about import About, color_slots, object_slots, thing_slots, yes_no
from models.shapes.phrasing import Group, Kind
from models.shapes.questions import EASY_SHARE, SIDES, UNANSWERABLE, Phraser, Question, pick
from models.shapes.scene import COLORS, SHAPES, SQUARE, Scene, Shape

# Shares by topic. Shape and yes/no questions are the slow ones to learn, and so is counting.
SHARES: dict[str, float] = {
    "color": 0.09,
    "shape": 0.12,
    "shape_of_color": 0.06,
    "extreme": 0.12,
    "present": 0.18,
    "absent": 0.18,
    "is_color": 0.05,
    "it_is": 0.03,
    "count": 0.18,
    "side": 0.16,
    "is_on_side": 0.1,
    "object_present": 0.02,
    "false_premise": 0.04,
    "off_topic": 0.03,
}
LARGEST = ("biggest", "largest")
SMALLEST = ("smallest",)
# The biggest shape covers so many times what the next one does.
CLEARLY_LARGER = 1.5
# Shapes are so far from level, as a share of the picture's width, where sides are asked.
CLEARLY_BESIDE = 0.15


@dataclass(frozen=True)
class Asker:
    """Asks about scenes.

    Attributes:
        group: whose wordings.
        shares: of the topics.
        easy_share, invented, rough: as `Phraser`'s.
        two_words: share of "is there" questions about a colour and a shape at once ("a red circle").
        squares: whether squares are asked about by that name; not of easy-VQA's pictures, whose edges are not known.
    """

    group: Group
    shares: Mapping[str, float] = field(default_factory=lambda: SHARES)
    easy_share: float = EASY_SHARE
    invented: float = 0.0
    rough: float = 0.0
    two_words: float = 0.25
    squares: bool = True

    def ask(self, scene: Scene, rng: np.random.Generator, count: int) -> list[Question]:
        """`count` questions about a scene, drawn by topic; the same one may come twice."""
        topics = list(self.shares)
        weights = np.array([self.shares[t] for t in topics])
        phraser = Phraser(self.group, self.easy_share, self.invented, self.rough)
        about = About(scene, rng, phraser, self.squares, self.two_words)
        questions: list[Question] = []
        while len(questions) < count:
            drawn = rng.choice(len(topics), size=count - len(questions), p=weights / weights.sum())
            asked = (_TOPICS[topics[int(k)]](about) for k in drawn)
            questions.extend(q for q in asked if q is not None)
        return questions


def _kind_of(shape: Shape, text: str, topic: str) -> Question:
    return Question(text, shape.kind, topic, square=shape.called(SQUARE) is True)


def _color(about: About) -> Question | None:
    if len(about.scene.shapes) == 1 and about.chance(0.15):
        return Question(about.phrase(Kind.ITS_COLOR), about.scene.shapes[0].color, "color")
    found = about.lone_noun()
    return found and Question(about.phrase(Kind.COLOR, noun=found[0]), found[1].color, "color")


def _shape(about: About) -> Question | None:
    if len(about.scene.shapes) != 1:
        return None
    return _kind_of(about.scene.shapes[0], about.phrase(Kind.SHAPE), "shape")


def _shape_of_color(about: About) -> Question | None:
    singles = [s for s in about.scene.shapes if about.scene.count(color=s.color) == 1]
    if not singles:
        return None
    shape = singles[int(about.rng.integers(len(singles)))]
    return _kind_of(shape, about.phrase(Kind.SHAPE_OF_COLOR, color=shape.color), "shape_of_color")


def _extreme(about: About) -> Question | None:
    """The colour or the name of the biggest or smallest shape."""
    if len(about.scene.shapes) < 2 or about.scene.overlapping:
        return None
    ordered = sorted(about.scene.shapes, key=lambda s: s.area)
    largest = about.chance(0.6)
    if largest:
        shape, rival, words = ordered[-1], ordered[-2].area * CLEARLY_LARGER, LARGEST
        clear = shape.area >= rival
    else:
        shape, words = ordered[0], SMALLEST
        clear = shape.area * CLEARLY_LARGER <= ordered[1].area
    if not clear:
        return None
    size = pick(about.rng, words)
    if about.chance(0.5):
        return Question(about.phrase(Kind.COLOR_OF_EXTREME, size=size), shape.color, "extreme")
    return _kind_of(shape, about.phrase(Kind.SHAPE_OF_EXTREME, size=size), "extreme")


def _absent_thing(about: About, color: str | None, name: str | None) -> tuple[str | None, str | None] | None:
    """The thing changed until the scene has none of it; two-word things keep one of their words if they can."""
    for _ in range(40):
        if color and (not name or about.chance(0.5)):
            color = pick(about.rng, tuple(COLORS))
        else:
            name = about.name()
        if about.scene.count(color, name) == 0:
            return color, name
    return None


def _existence(about: About, negated: bool) -> Question | None:
    shape = about.any_shape()
    name = about.name() if about.chance(0.3) else shape.kind
    if not shape.called(name):
        name = shape.kind
    color, kind = (shape.color, None) if about.chance(0.55) else (None, name)
    if about.chance(about.two_words):
        color, kind = shape.color, name
    there = about.chance(0.5)
    if not there:
        absent = _absent_thing(about, color, kind)
        if absent is None:
            return None
        color, kind = absent
    text = about.phrase(Kind.ABSENT if negated else Kind.PRESENT, **thing_slots(color, kind))
    return Question(text, yes_no(there != negated), "absent" if negated else "present")


def _present(about: About) -> Question | None:
    return _existence(about, negated=False)


def _absent(about: About) -> Question | None:
    return _existence(about, negated=True)


def _is_color(about: About) -> Question | None:
    found = about.lone_noun()
    if found is None:
        return None
    noun, shape = found
    right, negated = about.chance(0.5), about.chance(0.4)
    asked = shape.color if right else pick(about.rng, [c for c in COLORS if c != shape.color])
    text = about.phrase(Kind.IS_NOT_COLOR if negated else Kind.IS_COLOR, noun=noun, **color_slots(asked))
    return Question(text, yes_no(right != negated), "is_color")


def _it_is(about: About) -> Question | None:
    """Yes/no about "it", where there is one shape alone."""
    if len(about.scene.shapes) != 1:
        return None
    shape, right = about.scene.shapes[0], about.chance(0.5)
    if about.chance(0.5):
        color = shape.color if right else pick(about.rng, [c for c in COLORS if c != shape.color])
        return Question(about.phrase(Kind.IT_IS_COLOR, **color_slots(color)), yes_no(right), "it_is")
    kind = shape.kind if right else pick(about.rng, [k for k in SHAPES if k != shape.kind])
    return Question(about.phrase(Kind.IT_IS_SHAPE, name=kind), yes_no(right), "it_is")


def _count(about: About) -> Question | None:
    rng = about.rng
    what = int(rng.choice(3, p=(0.45, 0.3, 0.25)))
    color, name = ((None, None), (None, about.name()), (pick(rng, tuple(COLORS)), None))[what]
    if color and about.chance(0.75):  # mostly a colour that is there: eleven would make nearly all counts 0
        color = about.any_shape().color
    if name and about.chance(0.5):
        name = about.any_shape().kind
    text = about.phrase(Kind.COUNT, **thing_slots(color, name))
    return Question(text, str(about.scene.count(color, name)), "count")


def _two_beside(about: About) -> tuple[str, str, str] | None:
    """The names of two shapes that lie clearly beside each other, and the side on which the first one is."""
    shapes = about.scene.shapes
    if len(shapes) < 2:
        return None
    first, second = (shapes[int(k)] for k in about.rng.choice(len(shapes), 2, replace=False))
    offset = first.middle[0] - second.middle[0]
    one, other = about.noun_of(first), about.noun_of(second)
    if one is None or other is None or abs(offset) < CLEARLY_BESIDE * about.scene.width:
        return None
    return one, other, SIDES[offset > 0]


def _side(about: About) -> Question | None:
    found = _two_beside(about)
    return found and Question(about.phrase(Kind.SIDE, one=found[0], other=found[1]), found[2], "side")


def _is_on_side(about: About) -> Question | None:
    found = _two_beside(about)
    if found is None:
        return None
    one, other, side = found
    asked = pick(about.rng, SIDES)
    return Question(
        about.phrase(Kind.IS_ON_SIDE, one=one, other=other, side=asked), yes_no(asked == side), "is_on_side"
    )


def _object_present(about: About) -> Question | None:
    text = about.phrase(Kind.OBJECT_PRESENT, **object_slots(about.words.everyday_object(about.rng)))
    return Question(text, "no", "object_present")


def _off_topic(about: About) -> Question | None:
    kind = Kind.OFF_TOPIC if about.chance(0.4) else Kind.OBJECT_ATTRIBUTE
    text = about.phrase(kind, **object_slots(about.words.everyday_object(about.rng)))
    return Question(text, UNANSWERABLE, "off_topic")


def _false_premise(about: About) -> Question | None:
    """Something about a shape, or about a colour, that the scene does not have."""
    scene, rng = about.scene, about.rng
    kinds = [k for k in SHAPES if not scene.count(name=k)]
    colors = [c for c in COLORS if not scene.count(color=c)]
    what = int(rng.integers(3))
    if what == 0:
        text = kinds and about.phrase(Kind.COLOR, noun=pick(rng, kinds))
    elif what == 1:
        text = about.phrase(Kind.SHAPE_OF_COLOR, color=pick(rng, colors))
    else:
        there = about.noun_of(about.any_shape())
        missing = f"{pick(rng, colors)} {pick(rng, ('shape', *SHAPES))}"
        one, other = (there, missing) if about.chance(0.5) else (missing, there)
        text = there and about.phrase(Kind.SIDE, one=str(one), other=str(other))
    return Question(text, UNANSWERABLE, "false_premise") if text else None


_TOPICS: dict[str, Callable[[About], Question | None]] = {
    "color": _color,
    "shape": _shape,
    "shape_of_color": _shape_of_color,
    "extreme": _extreme,
    "present": _present,
    "absent": _absent,
    "is_color": _is_color,
    "it_is": _it_is,
    "count": _count,
    "side": _side,
    "is_on_side": _is_on_side,
    "object_present": _object_present,
    "false_premise": _false_premise,
    "off_topic": _off_topic,
}
