"""What the embedded model is trained on, step by step: lessons, then the mixture, with rough wordings at the end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from models.shapes.examples import Mixture
from models.shapes.topics import SHARES


@dataclass(frozen=True)
class Lesson:
    """An early part of training: one shape a picture, easy-VQA's own wordings, questions in the given shares."""

    until: int  # step
    shares: dict[str, float]


# Yes/no questions are a puzzle of three parts: the form, whether the word matches it, and a negation that turns the
# answer round. All at once, and in thirty wordings, none gives a gradient: accuracy stayed at chance for 160,000
# questions. One after the other, each is learned within some 20,000.
LESSONS = (
    Lesson(800, {"shape": 0.5, "shape_of_color": 0.1, "color": 0.2, "present": 0.2}),
    Lesson(1300, {"shape": 0.15, "shape_of_color": 0.1, "color": 0.15, "present": 0.6}),
    Lesson(2200, {"shape": 0.1, "shape_of_color": 0.05, "color": 0.1, "present": 0.3, "absent": 0.45}),
)


@dataclass(frozen=True)
class SideLesson:
    """A part of training about which of two shapes is left or right, in one wording, or in all where it is None."""

    since: int  # step
    until: int  # step
    wording: str | None


# "Left or right of" is such a puzzle, too: to find either shape, to compare, to tell who is asked about. In the
# mixture it stayed at chance for a million questions. It is learned in one wording, with two shapes in the picture; two
# thousand steps of the mixture lose it again, a hundred bring it back, and then it is carried into all wordings and
# fuller pictures. From step 2,200 on, before yes and no were safe, the same lessons spoilt those and taught nothing.
_OF = "is the {one} left or right of the {other}?"
SIDE_LESSONS = (
    SideLesson(9000, 10500, "is the {one} left or right?"),
    SideLesson(10500, 11000, _OF),
    SideLesson(13000, 13300, _OF),
    SideLesson(13300, 15500, None),
)
# There are scenes without two shapes of which sides can be asked; in any, shapes can be counted.
SIDE_SHARES = {"side": 0.58, "is_on_side": 0.38, "count": 0.04}
# Of a thing that it has no word for a model is to tell "is there a …?" ("no") from "what color is the …?".
LATE_SHARES = SHARES | {"object_present": 0.08}
WHOLE = Mixture(degraded=0.0, disturbed=0.0)


@dataclass(frozen=True)
class ShapesRecipe:
    """What a batch of shapes is made of. All shares are of pictures."""

    square: float = 0.76  # batches of square pictures; the others are all wide or all tall
    real: float = 0.35  # of square pictures: easy-VQA's own, with the shape moved
    easy: float = 0.2  # of square pictures: drawn in easy-VQA's style; the rest are varied scenes
    lessons: tuple[Lesson, ...] = LESSONS
    side_lessons: tuple[SideLesson, ...] = SIDE_LESSONS
    side_lesson: float = 0.6  # during one; the other pictures are as ever, so that nothing is forgotten
    side_offset: float = 0.2  # of the picture's width: how far apart the two of a side lesson are, at least
    side_shares: Mapping[str, float] = field(default_factory=lambda: SIDE_SHARES)  # of questions
    invented: float = 0.3  # of everyday objects in questions: made-up words
    late_from: int = 20000  # step: from here on wordings are rough, and questions drawn by the late shares
    late_shares: Mapping[str, float] = field(default_factory=lambda: LATE_SHARES)  # of questions
    rough: float = 0.4  # of wordings
    mixture: Mixture = field(default_factory=Mixture)
