"""Wordings made rough: little words that carry nothing are left out or replaced, and strange ones come in between.

A model that only ever reads whole templates takes each word that is new to it for an everyday object, and says that the
question cannot be answered. Here words that are new to it stand where no object can.
"""

from __future__ import annotations

import numpy as np

LITTLE = frozenset({
    "a", "all", "are", "be", "called", "can", "contain", "could", "do", "does", "drawing", "drawn", "find", "has",
    "have", "here", "image", "in", "is", "me", "notice", "of", "on", "picture", "please", "say", "see", "seen",
    "show", "shown", "some", "tell", "that", "the", "there", "this", "to", "visible", "would", "you",
})  # fmt: skip
"""Words of templates that an answer does not hang on: none negates, counts, compares, or names what is asked for."""

ALTERED_SHARE = 0.25  # of the little words
DROPPED_SHARE = 0.5  # of those altered; the others are replaced
INSERTED_SHARE = 0.5  # of wordings
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def made_up_word(rng: np.random.Generator) -> str:
    """Three to eight letters."""
    return "".join(_LETTERS[k] for k in rng.integers(0, 26, int(rng.integers(3, 9))))


def roughened(template: str, strange: tuple[str, ...], rng: np.random.Generator) -> str:
    """A template whose slots and telling words are as they were, and in their order.

    Args:
        template: with slots such as `{noun}`.
        strange: real words that no template has; as often as one of them a made-up one is taken.
        rng: what is altered.
    """

    def strange_word() -> str:
        return strange[int(rng.integers(len(strange)))] if rng.random() < 0.5 else made_up_word(rng)

    words = []
    for word in template.split():
        if word not in LITTLE or rng.random() >= ALTERED_SHARE:
            words.append(word)
        elif rng.random() >= DROPPED_SHARE:
            words.append(strange_word())
    if rng.random() < INSERTED_SHARE:
        words.insert(int(rng.integers(len(words))), strange_word())
    return " ".join(words)
