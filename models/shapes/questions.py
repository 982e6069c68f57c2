"""Scene to questions with their right answers; every answer follows from the scene's facts alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from models.shapes.phrasing import EASY, OBJECTS, TEMPLATES, Group, Kind
from models.shapes.scene import COLORS, SHAPES, Scene

UNANSWERABLE = "unanswerable"
COUNTS: tuple[str, ...] = tuple(str(n) for n in range(6))
# All answers that the generator knows, in label order.
ANSWERS: tuple[str, ...] = (*SHAPES, *COLORS, "yes", "no", *COUNTS, UNANSWERABLE)

# Shares by topic. Shape and yes/no questions are the slow ones to learn; a topic that a scene cannot carry (the
# colour of "the shape" among three) falls away and the others take its share.
TOPIC_SHARES: dict[str, float] = {
    "color": 0.1,
    "shape": 0.16,
    "shape_of_color": 0.08,
    "present": 0.2,
    "absent": 0.22,
    "is_color": 0.06,
    "count": 0.1,
    "object_present": 0.02,
    "false_premise": 0.03,
    "off_topic": 0.03,
}
# Share of questions in easy-VQA's own wording, where the kind has one.
EASY_SHARE = 0.5
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class Question:
    """`topic` names what the question is about: a key of `TOPIC_SHARES`, or "degraded" on a ruined picture."""

    text: str
    answer: str
    topic: str

    @property
    def answerable(self) -> bool:
        return self.answer != UNANSWERABLE


class Asker:
    """Asks about scenes in the wordings of one group."""

    def __init__(
        self,
        group: Group,
        easy_share: float = EASY_SHARE,
        shares: dict[str, float] | None = None,
        invented: float = 0.0,
        two_words: float = 0.2,
    ) -> None:
        """`easy_share` only counts in training: easy-VQA's own wordings are training wordings.

        `invented` is the share of everyday objects replaced by made-up words: a model that meets them in training
        learns that a noun it cannot place is no shape. `two_words` is the share of "is there" questions about a colour
        and a shape at once ("a red circle").
        """
        self.group = group
        self.invented = invented
        self.two_words = two_words
        self.easy_share = easy_share if group is Group.TRAIN else 0.0
        self.shares = shares or TOPIC_SHARES

    def ask(self, scene: Scene, rng: np.random.Generator, count: int) -> list[Question]:
        """`count` questions about a scene, drawn by topic; the same one may come twice."""
        topics = list(self.shares)
        weights = np.array([self.shares[t] for t in topics])
        questions: list[Question] = []
        while len(questions) < count:
            drawn = rng.choice(len(topics), size=count - len(questions), p=weights / weights.sum())
            asked = (_TOPICS[topics[int(k)]](self, scene, rng) for k in drawn)
            questions.extend(q for q in asked if q is not None)
        return questions

    def ask_degraded(self, scene: Scene, rng: np.random.Generator, count: int) -> list[Question]:
        """Questions that the scene could answer, asked about a picture of it that no longer can."""
        return [Question(q.text, UNANSWERABLE, "degraded") for q in self.ask(scene, rng, count)]

    def everyday_object(self, rng: np.random.Generator) -> str:
        """An everyday object that no drawing here shows, or a made-up word."""
        if rng.random() < self.invented:
            return "".join(_LETTERS[k] for k in rng.integers(0, 26, int(rng.integers(3, 9))))
        return _pick(rng, OBJECTS[self.group])

    def phrase(self, kind: Kind, rng: np.random.Generator, **slots: str) -> str:
        """A wording of the kind with its slots filled."""
        easy = kind in EASY and rng.random() < self.easy_share
        template = _pick(rng, EASY[kind] if easy else TEMPLATES[self.group][kind])
        return template.format(**slots)


def _pick(rng: np.random.Generator, options: tuple[str, ...] | list[str]) -> str:
    return options[int(rng.integers(len(options)))]


def _yes_no(value: bool) -> str:
    return "yes" if value else "no"


def _thing(color: str | None, kind: str | None) -> dict[str, str]:
    thing = f"{color} {kind or 'shape'}" if color else (kind or "shape")
    return {"thing": thing, "things": thing + "s", "a": f"a {thing}"}


def _noun(scene: Scene, rng: np.random.Generator) -> tuple[str, str] | None:
    """A noun that names exactly one shape of the scene, and that shape's colour."""
    singles = [(s.kind, s.color) for s in scene.shapes if scene.count(kind=s.kind) == 1]
    if len(scene.shapes) == 1 and rng.random() < 0.5:
        return "shape", scene.shapes[0].color
    return singles[int(rng.integers(len(singles)))] if singles else None


def _color(asker: Asker, scene: Scene, rng: np.random.Generator) -> Question | None:
    found = _noun(scene, rng)
    return found and Question(asker.phrase(Kind.COLOR, rng, noun=found[0]), found[1], "color")


def _shape(asker: Asker, scene: Scene, rng: np.random.Generator) -> Question | None:
    if len(scene.shapes) != 1:
        return None
    return Question(asker.phrase(Kind.SHAPE, rng), scene.shapes[0].kind, "shape")


def _shape_of_color(asker: Asker, scene: Scene, rng: np.random.Generator) -> Question | None:
    singles = [s for s in scene.shapes if scene.count(color=s.color) == 1]
    if not singles:
        return None
    shape = singles[int(rng.integers(len(singles)))]
    return Question(asker.phrase(Kind.SHAPE_OF_COLOR, rng, color=shape.color), shape.kind, "shape_of_color")


def _absent_thing(scene: Scene, color: str | None, kind: str | None, rng: np.random.Generator):
    """The thing changed until the scene has none of it; two-word things keep one of their words if they can."""
    for _ in range(40):
        if color and (not kind or rng.random() < 0.5):
            color = _pick(rng, tuple(COLORS))
        else:
            kind = _pick(rng, SHAPES)
        if scene.count(color, kind) == 0:
            return color, kind
    return None


def _existence(asker: Asker, scene: Scene, rng: np.random.Generator, negated: bool) -> Question | None:
    shape = scene.shapes[int(rng.integers(len(scene.shapes)))]
    color, kind = (shape.color, None) if rng.random() < 0.55 else (None, shape.kind)
    if rng.random() < asker.two_words:
        color, kind = shape.color, shape.kind
    there = bool(rng.random() < 0.5)
    if not there:
        absent = _absent_thing(scene, color, kind, rng)
        if absent is None:
            return None
        color, kind = absent
    text = asker.phrase(Kind.ABSENT if negated else Kind.PRESENT, rng, **_thing(color, kind))
    return Question(text, _yes_no(there != negated), "absent" if negated else "present")


def _present(asker: Asker, scene: Scene, rng: np.random.Generator) -> Question | None:
    return _existence(asker, scene, rng, negated=False)


def _absent(asker: Asker, scene: Scene, rng: np.random.Generator) -> Question | None:
    return _existence(asker, scene, rng, negated=True)


def _is_color(asker: Asker, scene: Scene, rng: np.random.Generator) -> Question | None:
    found = _noun(scene, rng)
    if found is None:
        return None
    noun, color = found
    right, negated = bool(rng.random() < 0.5), bool(rng.random() < 0.4)
    asked = color if right else _pick(rng, [c for c in COLORS if c != color])
    text = asker.phrase(Kind.IS_NOT_COLOR if negated else Kind.IS_COLOR, rng, noun=noun, color=asked)
    return Question(text, _yes_no(right != negated), "is_color")


def _count(asker: Asker, scene: Scene, rng: np.random.Generator) -> Question | None:
    color, kind = ((None, None), (None, _pick(rng, SHAPES)), (_pick(rng, tuple(COLORS)), None))[
        int(rng.choice(3, p=(0.4, 0.35, 0.25)))
    ]
    if color and rng.random() < 0.75:  # mostly a colour that is there: eight colours would make nearly all counts 0
        color = scene.shapes[int(rng.integers(len(scene.shapes)))].color
    text = asker.phrase(Kind.COUNT, rng, **_thing(color, kind))
    return Question(text, str(scene.count(color, kind)), "count")


def _object_present(asker: Asker, _scene: Scene, rng: np.random.Generator) -> Question | None:
    text = asker.phrase(Kind.OBJECT_PRESENT, rng, object=asker.everyday_object(rng))
    return Question(text, "no", "object_present")


def _off_topic(asker: Asker, _scene: Scene, rng: np.random.Generator) -> Question | None:
    kind = Kind.OFF_TOPIC if rng.random() < 0.4 else Kind.OBJECT_ATTRIBUTE
    text = asker.phrase(kind, rng, object=asker.everyday_object(rng))
    return Question(text, UNANSWERABLE, "off_topic")


def _false_premise(asker: Asker, scene: Scene, rng: np.random.Generator) -> Question | None:
    """The colour of a shape, or the shape of a colour, that the scene does not have."""
    if rng.random() < 0.5:
        kinds = [k for k in SHAPES if not scene.count(kind=k)]
        if not kinds:
            return None
        text = asker.phrase(Kind.COLOR, rng, noun=_pick(rng, kinds))
    else:
        colors = [c for c in COLORS if not scene.count(color=c)]
        text = asker.phrase(Kind.SHAPE_OF_COLOR, rng, color=_pick(rng, colors))
    return Question(text, UNANSWERABLE, "false_premise")


_TOPICS: dict[str, Callable[[Asker, Scene, np.random.Generator], Question | None]] = {
    "color": _color,
    "shape": _shape,
    "shape_of_color": _shape_of_color,
    "present": _present,
    "absent": _absent,
    "is_color": _is_color,
    "count": _count,
    "object_present": _object_present,
    "false_premise": _false_premise,
    "off_topic": _off_topic,
}
