"""Questions about a scene in the wordings of one group, drawn by topic."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from models.shapes.phrasing import EASY, OBJECTS, STRANGE, TEMPLATES, Group, Kind
from models.shapes.roughen import made_up_word, roughened
from models.shapes.scene import COLORS, NAMES

UNANSWERABLE = "unanswerable"
COUNTS: tuple[str, ...] = tuple(str(n) for n in range(6))
SIDES: tuple[str, ...] = ("left", "right")
# All answers that the generator knows, in label order.
ANSWERS: tuple[str, ...] = (*NAMES, *COLORS, "yes", "no", *COUNTS, *SIDES, UNANSWERABLE)

# Share of questions in easy-VQA's own wording, where the kind has one.
EASY_SHARE = 0.4


@dataclass(frozen=True)
class Question:
    """A question with its right answer and what ten people said.

    Attributes:
        topic: what it is about: a key of `topics.SHARES`, or "degraded" on a ruined picture.
        answers: empty until the annotators have been asked.
        hidden: what would be the right answer if the picture were not ruined.
        square: whether it is about a rectangle with equal edges, which people call this or that.
    """

    text: str
    answer: str
    topic: str
    answers: tuple[str, ...] = ()
    hidden: str | None = None
    square: bool = False

    @property
    def answerable(self) -> bool:
        """Whether the picture answers it."""
        return self.answer != UNANSWERABLE


class Phraser:
    """Finds words, in the wordings of one group.

    Args:
        group: whose wordings.
        easy_share: share of easy-VQA's own wordings, which are training wordings: it counts in training only.
        invented: share of everyday objects replaced by made-up words: a model that meets them in training learns that
            a noun it cannot place is no shape.
        rough: share of wordings that are made rough (`roughen`).
    """

    def __init__(self, group: Group, easy_share: float = EASY_SHARE, invented: float = 0.0, rough: float = 0.0) -> None:
        self.group = group
        self.invented = invented
        self.rough = rough
        self.easy_share = easy_share if group is Group.TRAIN else 0.0

    def everyday_object(self, rng: np.random.Generator) -> str:
        """An everyday object that no drawing here shows, or a made-up word."""
        if rng.random() < self.invented:
            return made_up_word(rng)
        return pick(rng, OBJECTS[self.group])

    def phrase(self, kind: Kind, rng: np.random.Generator, **slots: str) -> str:
        """A wording of the kind with its slots filled."""
        easy = kind in EASY and rng.random() < self.easy_share
        template = pick(rng, EASY[kind] if easy else TEMPLATES[self.group][kind])
        if self.rough and rng.random() < self.rough:
            template = roughened(template, STRANGE, rng)
        return template.format(**slots)


def pick(rng: np.random.Generator, options: tuple[str, ...] | list[str]) -> str:
    """One of the options, all alike."""
    return options[int(rng.integers(len(options)))]


def asked_of_a_ruined_picture(questions: list[Question]) -> list[Question]:
    """Questions that a scene could answer, asked about a picture of it that no longer can."""
    return [replace(q, answer=UNANSWERABLE, topic="degraded", hidden=q.answer, square=False) for q in questions]
