"""Which of the frequent answers are taken for which."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from service.answers import normalise

FREQUENT: Final = 12
OTHER: Final = "other answers"
NONE: Final = "no answer"


@dataclass(frozen=True)
class Confusion:
    """Counts of questions by what people said most and what the model said.

    Attributes:
        answers: the most frequent right answers, in normal form, most frequent first.
        counts: (len(answers) + 1) rows by (len(answers) + 2) columns: the row of the right answer, the last one for
            all other answers; the column of the prediction, then other answers, then none (abstained or failed).
    """

    answers: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]

    @property
    def rows(self) -> tuple[str, ...]:
        """The names of the rows."""
        return (*self.answers, OTHER)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return (*self.answers, OTHER, NONE)


def best_answers(questions: Iterable[Sequence[str]]) -> list[str | None]:
    """What most people said to each question; of equally many the first one said. None where nobody said anything.

    Unlike `service.scoring.vqa.majority`, which answers for one annotation of the official format, this leaves out
    answers of which nothing is left in normal form, and normalises each of millions of answers only once.
    """
    normal = cache(normalise)  # few of the answers to many questions are distinct
    best = []
    for answers in questions:
        said = Counter(form for answer in answers if (form := normal(answer)))
        best.append(max(said, key=said.__getitem__) if said else None)
    return best


def confusion(right: Sequence[str | None], predictions: Sequence[str | None], frequent: int = FREQUENT) -> Confusion:
    """Count single best human answer against prediction, both in normal form.

    A prediction off the diagonal need not score 0: others than the most frequent answer of people count in part.

    Args:
        right: (n,), the `best_answers`; a question without one is left out.
        predictions: (n,), what the model said; None where it said nothing.
        frequent: how many answers have a row of their own.
    """
    normal = cache(normalise)
    pairs = [
        (best, None if said is None else normal(said))
        for best, said in zip(right, predictions, strict=True)
        if best is not None
    ]
    answers = tuple(answer for answer, _ in Counter(best for best, _ in pairs).most_common(frequent))
    place = {answer: index for index, answer in enumerate(answers)}
    other, none = len(answers), len(answers) + 1
    counts = [[0] * (len(answers) + 2) for _ in range(len(answers) + 1)]
    for best, said in pairs:
        counts[place.get(best, other)][none if said is None else place.get(said, other)] += 1
    return Confusion(answers, tuple(map(tuple, counts)))
