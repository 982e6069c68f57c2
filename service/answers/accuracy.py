"""VQA accuracy of one answer against the annotators' answers.

Each annotator is left out in turn; the answer scores min(1, matches among the others / 3), and the scores are
averaged (Antol et al. 2015, section 4; GT-Vision-Lab/VQA, vqaEval.py). With ten annotators, 1, 2, 3, 4
matches give 0.3, 0.6, 0.9 and 1.0. The codes differ only in what is normalised before texts are compared:

- "2021" (commit a013f00, the official code today): both sides, fully, but only where the annotators' stripped
  answers are not all the same; where they agree, both sides are compared as they stand.
- "2016" (commit 458a8b2): the answer always, fully; the annotators' answers only where they disagree, and of
  those only the punctuation. A "two" or an "a dog" of an annotator can therefore not be matched at all.
- "always": both sides, fully, always. Calibration targets use this one: it asks whether the answer is right,
  not whether a script of 2016 or 2021 says so.

Annotators are told apart by position. The original compares whole records, which is the same wherever records
hold an `answer_id`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from service.answers.normalise import normalise, process_punctuation, strip_answer

ACCURACY_CODES: Final = ("2021", "2016", "always")
_FULL_MARKS: Final = 3  # so many matches among the others make an answer right


def vqa_accuracy(prediction: str, answers: Sequence[str], code: str = "always") -> float:
    """The VQA accuracy of a prediction.

    Args:
        prediction: the answer to score, in any spelling.
        answers: what each annotator said, usually ten texts; at least one.
        code: "always", "2021" or "2016" (see the module).

    Returns:
        A number from 0 to 1, bit for bit what the official code gives for "2021" and "2016".

    Raises:
        ValueError: `code` is not known, or there are no answers.
    """
    if not answers:
        raise ValueError("answers is empty; VQA accuracy needs at least one annotator")
    said, references = _comparable(prediction, answers, code)
    matches = [reference == said for reference in references]
    total = sum(matches)
    score = 0.0
    for match in matches:
        score += min(1.0, (total - match) / _FULL_MARKS)
    return score / len(matches)


def _comparable(prediction: str, answers: Sequence[str], code: str) -> tuple[str, list[str]]:
    """The prediction and the annotators' answers as the code compares them."""
    if code == "always":
        return normalise(prediction), [normalise(answer) for answer in answers]
    if code == "2021":
        stripped = [strip_answer(answer) for answer in answers]
        if len(set(stripped)) > 1:
            return normalise(prediction), [normalise(answer) for answer in stripped]
        return strip_answer(prediction), stripped
    if code == "2016":
        if len(set(answers)) > 1:
            return normalise(prediction, "2016"), [process_punctuation(answer) for answer in answers]
        return normalise(prediction, "2016"), list(answers)
    raise ValueError(f"code is {code!r}; it must be one of {', '.join(ACCURACY_CODES)}")
