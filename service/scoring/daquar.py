"""DAQUAR: accuracy over sets of words, and WUPS at 0.9 and 0.0 (Malinowski and Fritz 2014).

Source: M. Malinowski's calculate_wups.py. Its accuracy is WUPS with equal words alike and all others not. The program
drops empty lines, after which answers and questions no longer stand side by side; here an empty line is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from service.errors import DataError, MissingExtraError
from service.files import read_rows, read_text
from service.scoring.answered import answers_by_id
from service.scoring.rounding import mean
from service.scoring.scores import Inputs, Scores
from service.scoring.wups import Measure, Wups, dirac, items, set_score

THRESHOLDS: Final = (0.9, 0.0)

_QUESTION: Final = re.compile(r"\?\s*$|\bimage\s*\d+\b")


def score(inputs: Inputs) -> Scores:
    """Score answers.

    Args:
        inputs: `annotations` is DAQUAR's own text, in which a line with a question and a line with its answer take
            turns (`qa.37.raw.test.txt`), or a text with one answer a line; several words of an answer are parted by
            commas. `results` is a text with one answer a line, in the same order, or a JSON array of
            `{"question_id", "answer"}`, where `question_id` is the index of the question, from 0.

    Returns:
        The accuracy, and under `wups` WUPS at both thresholds in percent; null, with a note, where WordNet or nltk is
        not installed.

    Raises:
        DataError: a file cannot be used, or the results are not those of these questions.
    """
    truth = read_answers(inputs.annotations)
    answers = _read_results(inputs.results, truth, inputs.annotations)
    pairs = [(items(true), items(answer)) for true, answer in zip(truth, answers, strict=True)]
    marks = _marks(pairs, dirac)
    raw: dict[str, float | None] = {"accuracy": mean(marks)}
    lines = _official("standard Accuracy is used", mean(marks))
    wups, notes = _wups()
    for threshold in THRESHOLDS:
        value = None if wups is None else mean(_marks(pairs, wups.measure(threshold)))
        raw[f"wups@{threshold}"] = value
        if value is not None:
            lines += _official(f"soft WUPS at {threshold:.2f} is used", value)
    percent = {
        str(threshold): round(100 * value, 2)
        for threshold in THRESHOLDS
        if (value := raw[f"wups@{threshold}"]) is not None
    }
    return Scores(
        dataset="daquar",
        accuracy=round(100 * mean(marks), 2),
        questions=len(marks),
        metrics={"wups": percent or None, "scores": raw},
        per_question=dict(enumerate(marks)),
        official=tuple(lines),
        notes=tuple(notes),
    )


def read_answers(path: Path) -> list[str]:
    """The right answers, in the order of the questions.

    Raises:
        DataError: the text is neither questions and answers in turn nor answers alone.
    """
    lines = _lines(path)
    are_questions = [_QUESTION.search(line) is not None for line in lines]
    if not any(are_questions):
        return lines
    for number, is_question in enumerate(are_questions, 1):
        if is_question != (number % 2 == 1):
            what = "a question" if number % 2 else "an answer"
            raise DataError(path, f"expected {what}; questions and answers take turns", f"line {number}")
    if len(lines) % 2:
        raise DataError(path, "the last question has no answer", f"line {len(lines)}")
    return lines[1::2]


def _lines(path: Path) -> list[str]:
    """The lines, stripped; there may be empty ones at the end only."""
    lines = [line.strip() for line in read_text(path).rstrip().split("\n")]
    for number, line in enumerate(lines, 1):
        if not line:
            what = "the file is empty" if len(lines) == 1 else "the line is empty; each line is one answer"
            raise DataError(path, what, None if len(lines) == 1 else f"line {number}")
    return lines


def _read_results(path: Path, truth: Sequence[str], annotations: Path) -> list[str]:
    if read_text(path).lstrip().startswith(("[", "{")):
        wanted = dict(enumerate(truth))
        answers: Mapping[Any, str] = answers_by_id(path, read_rows(path), wanted, annotations)
        return [answers[index] for index in wanted]
    lines = _lines(path)
    if len(lines) != len(truth):
        what = f"{len(lines)} answers to the {len(truth)} questions of {annotations}; each line is one answer"
        raise DataError(path, what)
    return lines


def _marks(pairs: Sequence[tuple[Sequence[str], Sequence[str]]], measure: Measure) -> list[float]:
    return [set_score(true, answer, measure) for true, answer in pairs]


def _wups() -> tuple[Wups | None, list[str]]:
    """The measure, or None and what to install."""
    try:
        return Wups(), []
    except (MissingExtraError, LookupError) as error:
        return None, [f"WUPS is left out: {error}"]


def _official(title: str, value: float) -> list[str]:
    """What the program prints; it runs under Python 2.7, which shows twelve digits of a number."""
    shown = f"{value:.12g}"
    exact = shown if "." in shown or "e" in shown else f"{shown}.0"
    return [title, f"exact final score: {exact}", f"final score is {value * 100.0:2.2f}%"]
