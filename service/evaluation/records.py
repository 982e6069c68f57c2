"""One question of a data set, and what a model said to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from service.scoring.scores import QuestionId


@dataclass(frozen=True, slots=True)
class Example:
    """A question about a picture with the answers of people.

    Attributes:
        image: the picture's file.
        answers: what each annotator said; one where the data set has one right answer.
        answer_type, question_type: the data set's own types; None where it has none.
        extra: what else the data set says of the question, as texts, to select by.
    """

    question_id: QuestionId
    image: Path
    question: str
    answers: tuple[str, ...]
    answer_type: str | None = None
    question_type: str | None = None
    extra: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Prediction:
    """What came back for one question.

    Attributes:
        answer: None where the service abstained or failed.
        confidence: the calibrated probability that `answer` is right; None if not calibrated.
        candidates: the most probable answers with the model's own probabilities, most probable first.
        off_set: the model's probability of answers outside the set; None where its scores have none.
        decode_ms, queue_ms, inference_ms, total_ms: as the reply says; `total_ms` None for a failure.
        error: the code of what went wrong; None for an answer. All else but `question_id` is empty then.
    """

    question_id: QuestionId
    answer: str | None = None
    confidence: float | None = None
    calibrated: bool = False
    answerable: bool | None = None
    answerability: float | None = None
    abstained: bool = False
    candidates: tuple[tuple[str, float], ...] = ()
    off_set: float | None = None
    raw_answer: str | None = None
    answer_type: str | None = None
    backend: str | None = None
    model: str | None = None
    revision: str | None = None
    calibration: str | None = None
    cached: bool = False
    warnings: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    image_sha256: str | None = None
    width: int | None = None
    height: int | None = None
    decode_ms: float | None = None
    queue_ms: float | None = None
    inference_ms: float | None = None
    total_ms: float | None = None
    error: str | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class Scored:
    """An example, its prediction, and the prediction's accuracy in the data set's own metric, 0 to 1."""

    example: Example
    prediction: Prediction
    accuracy: float
