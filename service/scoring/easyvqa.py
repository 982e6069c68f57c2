"""easy-VQA: exact matches, over all questions and by their kind.

The data set (github.com/vzhou842/easy-VQA) names no metric and no results format. Its answers are one of 13 words, so
an answer is right where it is that word. A results file is like that of VQA v2, `[{"question_id", "answer"}]`, where
`question_id` is the index of the question in the questions file, from 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from service.errors import DataError
from service.files import read_rows
from service.scoring.answered import answers_by_id
from service.scoring.rounding import mean, per_type, percent_rounded
from service.scoring.rows import kind_of, read_array
from service.scoring.scores import Inputs, Scores

_WHAT: Final = "[question, answer, image_id]"


@dataclass(frozen=True, slots=True)
class Question:
    """A question, its answer, and the number of its picture."""

    question: str
    answer: str
    image_id: int

    @property
    def question_type(self) -> str:
        """The question's kind: colour, shape, or yes/no, plain or negated."""
        return question_type(self.question)

    @property
    def answer_type(self) -> str:
        """The answer's type, in the words of VQA: yes/no or other."""
        return "yes/no" if self.question_type.startswith("yes/no") else "other"


def question_type(question: str) -> str:
    """The kind of an easy-VQA question: "colour", "shape", "yes/no" or "yes/no negated"."""
    words = question.replace("?", "").split()
    if words[:1] == ["what"]:
        return "colour" if "color" in words else "shape"
    return "yes/no negated" if {"no", "not"} & set(words) else "yes/no"


def read_questions(path: Path) -> list[Question]:
    """The questions of a `questions.json`, in its order, which is the order of their ids.

    Raises:
        DataError: the file is none.
    """
    questions = []
    for place, row in read_array(path, _WHAT):
        if not isinstance(row, list) or len(row) != 3:
            raise DataError(path, f"expected {_WHAT}, and this is {kind_of(row)}", place)
        question, answer, image_id = row
        if not isinstance(question, str) or not isinstance(answer, str) or not isinstance(image_id, int):
            raise DataError(path, f"expected {_WHAT}: two texts and a whole number", place)
        questions.append(Question(question, answer, image_id))
    if not questions:
        raise DataError(path, "the file holds no questions")
    return questions


def score(inputs: Inputs) -> Scores:
    """Score a results file.

    Args:
        inputs: `annotations` is the split's `questions.json`; `results` a JSON array or JSON Lines of
            `{"question_id", "answer"}`, one for each question.

    Raises:
        DataError: a file cannot be used, or the results are not those of these questions.
    """
    questions = read_questions(inputs.annotations)
    wanted = dict(enumerate(questions))
    answers = answers_by_id(inputs.results, read_rows(inputs.results), wanted, inputs.annotations)
    right = [float(answers[index] == question.answer) for index, question in wanted.items()]
    return Scores(
        dataset="easyvqa",
        accuracy=percent_rounded(right),
        questions=len(questions),
        per_answer_type=per_type(right, [question.answer_type for question in questions], percent_rounded),
        per_question_type=per_type(right, [question.question_type for question in questions], percent_rounded),
        metrics={"scores": {"accuracy": mean(right)}},
        per_question=dict(enumerate(right)),
    )
