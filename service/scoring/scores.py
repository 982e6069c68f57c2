"""What every evaluator takes and gives back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from service.scoring.rounding import Percent, percent_rounded

QuestionId = int | str


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """The files and choices of one scoring; which of them a data set needs, its evaluator says.

    Attributes:
        annotations: the right answers, in the data set's own format.
        results: the answers to score, in the data set's results format.
        questions: the questions, where the format keeps them apart.
        code: which version of the VQA code: "2021", "2016" or "always" (`service.answers.accuracy`).
        like: whose evaluator: "official", or another program's name.
    """

    annotations: Path
    results: Path
    questions: Path | None = None
    code: str = "2021"
    like: str = "official"
    question_ids: Path | None = None
    """VQA formats: a JSON array of the only question ids to score, as the official `evaluate(quesIds)` takes them."""
    answerability: Path | None = None
    """VizWiz: results of the answerability task, where they are a file of their own."""
    pairs: Path | None = None
    """VQA v2: the complementary pairs of question ids."""
    train: Path | None = None
    """AdVQA: the annotations whose most frequent answers are the majority baselines; none takes `annotations`."""
    thresholds: Path | None = None
    """Reliable VQA: results on which the thresholds of effective reliability are chosen."""
    scenes: Path | None = None
    """GQA: scene graphs, for grounding."""
    choices: Path | None = None
    """GQA: valid and plausible answers, for validity and plausibility."""
    attentions: Path | None = None
    """GQA: attention maps, for grounding."""


@dataclass(frozen=True, kw_only=True)
class Scores:
    """The outcome of one scoring. Percentages are 0 to 100.

    Attributes:
        accuracy: the data set's main number, in percent, rounded as the official code rounds (POPE's, ANLS and the
            programs of `like` do not); None where the results hold no answers (VizWiz' answerability task).
        questions: how many questions it is over.
        per_answer_type, per_question_type: the same by type, where the data set has types.
        metrics: the data set's own metrics under their official names; JSON values.
        per_question: each question's score, 0 to 1, unrounded, in the order of the annotations.
        percent: how the program rounds percentages.
        official: what the official program prints, line for line, where it prints something worth keeping.
        notes: what a reader must know about the numbers (a metric left out, and why).
    """

    dataset: str
    accuracy: float | None
    questions: int
    per_answer_type: Mapping[str, float] = field(default_factory=dict)
    per_question_type: Mapping[str, float] = field(default_factory=dict)
    metrics: Mapping[str, Any] = field(default_factory=dict)
    per_question: Mapping[QuestionId, float] = field(default_factory=dict)
    percent: Percent = percent_rounded
    official: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """All but the single questions, as one JSON object."""
        return {
            "dataset": self.dataset,
            "questions": self.questions,
            "accuracy": self.accuracy,
            "per_answer_type": dict(self.per_answer_type),
            "per_question_type": dict(self.per_question_type),
            **self.metrics,
            "notes": list(self.notes),
        }


def leaves(metrics: Mapping[str, Any], step: str) -> Iterator[tuple[str, Any]]:
    """Nested metrics as single ones, each under the names that lead to it with `step` between them."""
    for name, value in metrics.items():
        if isinstance(value, Mapping):
            yield from ((f"{name}{step}{below}", leaf) for below, leaf in leaves(value, step))
        else:
            yield name, value
