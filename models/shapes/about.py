"""A scene under question: what its shapes can be called, so that one alone is meant, and words for it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.shapes.phrasing import Kind
from models.shapes.questions import Phraser, pick
from models.shapes.scene import NAMES, SHAPES, SQUARE, Scene, Shape


@dataclass(frozen=True)
class About:
    """A scene under question.

    Attributes:
        squares, two_words: as `topics.Asker`'s.
    """

    scene: Scene
    rng: np.random.Generator
    words: Phraser
    squares: bool = True
    two_words: float = 0.25

    def phrase(self, kind: Kind, **slots: str) -> str:
        """A wording of the kind."""
        return self.words.phrase(kind, self.rng, **slots)

    def chance(self, share: float) -> bool:
        """Whether it happens, with this probability."""
        return bool(self.rng.random() < share)

    def any_shape(self) -> Shape:
        """One of the shapes."""
        return self.scene.shapes[int(self.rng.integers(len(self.scene.shapes)))]

    def name(self) -> str:
        """A name of shapes that people agree on in this scene."""
        square = self.squares and self.scene.agreed(SQUARE) and self.chance(0.2)
        return SQUARE if square else pick(self.rng, SHAPES)

    def noun_of(self, shape: Shape) -> str | None:
        """What this shape alone is called, with its colour where it must be; None where nothing tells it apart."""
        names = ["shape", shape.kind]
        if self.squares and shape.called(SQUARE) and self.scene.agreed(SQUARE):
            names.append(SQUARE)
        plain = [n for n in names if self.scene.count(name=n) == 1]
        colored = [f"{shape.color} {n}" for n in names if self.scene.count(shape.color, n) == 1]
        options = [*plain, *colored]
        return pick(self.rng, options) if options else None

    def lone_noun(self) -> tuple[str, Shape] | None:
        """A name without a colour that one shape alone has, and that shape."""
        if len(self.scene.shapes) == 1 and self.chance(0.5):
            return "shape", self.scene.shapes[0]
        names = NAMES if self.squares and self.scene.agreed(SQUARE) else SHAPES
        lone = [(n, self.scene.matching(name=n)) for n in names]
        options = [(n, found[0]) for n, found in lone if len(found) == 1]
        return options[int(self.rng.integers(len(options)))] if options else None


def yes_no(value: bool) -> str:
    """A truth as an answer."""
    return "yes" if value else "no"


def thing_slots(color: str | None, name: str | None) -> dict[str, str]:
    """The slots of a thing: alone, several, with its article."""
    thing = f"{color} {name or 'shape'}" if color else (name or "shape")
    return {"thing": thing, "things": thing + "s", "a": _with_article(thing)}


def _with_article(words: str) -> str:
    return f"{'an' if words[0] in 'aeiou' else 'a'} {words}"


def object_slots(name: str) -> dict[str, str]:
    """The slots of an everyday object: alone, with its article."""
    return {"object": name, "an_object": _with_article(name)}


def color_slots(color: str) -> dict[str, str]:
    """The slots of a colour: alone, with its article."""
    return {"color": color, "a_color": _with_article(color)}
