"""Ten people answer each question, and the official VQA accuracy scores an answer against them."""

from __future__ import annotations

from collections.abc import Sequence

from models.shapes.questions import Question

ANNOTATORS = 10


def annotate(question: Question) -> list[str]:
    """The ten answers of VQA v2. These annotators never err, so they are unanimous."""
    return [question.answer] * ANNOTATORS


def vqa_accuracy(answer: str, annotated: Sequence[str]) -> float:
    """The official metric of Antol et al. 2015, in [0, 1], for answers that are already normalised.

    The mean over all ways to leave one annotator out of min(1, annotators that agree / 3).
    """
    agree = sum(a == answer for a in annotated)
    left_out_agrees = min(1.0, (agree - 1) / 3) if agree else 0.0
    left_out_differs = min(1.0, agree / 3)
    return (agree * left_out_agrees + (len(annotated) - agree) * left_out_differs) / len(annotated)
