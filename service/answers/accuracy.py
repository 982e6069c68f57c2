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

Annotators are told apart by position here. The originals compare whole records, which is the same wherever
records hold an `answer_id`; `service.scoring` follows them also where they do not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from service.answers.normalise import normalise, process_punctuation, strip_answer

Form = Callable[[str], str]


def as_it_stands(text: str) -> str:
    """The text itself."""
    return text


@dataclass(frozen=True)
class Rule:
    """What a code compares: a form of the prediction with a form of each annotator's answer.

    Attributes:
        said, heard: the forms of the prediction and of an annotator's answer.
        agreeing: the form by which annotators count as agreeing with one another, on which `heard` depends alone; None
            if agreement changes nothing.
        said_agreed, heard_agreed: the forms where they all agree.
    """

    said: Form
    heard: Form
    agreeing: Form | None = None
    said_agreed: Form = as_it_stands
    heard_agreed: Form = as_it_stands

    def matches(self, prediction: str, answers: Sequence[str]) -> list[bool]:
        """Which of the annotators said what was predicted."""
        said, heard = self.said, self.heard
        if self.agreeing is not None and len(set(map(self.agreeing, answers))) == 1:
            said, heard = self.said_agreed, self.heard_agreed
        form = said(prediction)
        return [heard(answer) == form for answer in answers]


RULES: Final = {
    "2021": Rule(normalise, normalise, strip_answer, strip_answer, strip_answer),
    "2016": Rule(normalise, process_punctuation, as_it_stands, normalise, as_it_stands),
    "always": Rule(normalise, normalise),
}
ACCURACY_CODES: Final = tuple(RULES)
FULL_MARKS: Final = 3  # so many matches among the others make an answer right


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
    if code not in RULES:
        raise ValueError(f"code is {code!r}; it must be one of {', '.join(ACCURACY_CODES)}")
    total = 0.0
    for score in scores_left_out(RULES[code].matches(prediction, answers)):
        total += score
    return total / len(answers)


def agreement(prediction: str, answers: Sequence[str]) -> float:
    """How right a prediction is, in [0, 1]: what a confidence is fitted to, however many people were asked.

    VQA accuracy with all texts normalised; of fewer than four answers, which can give no full marks even where all
    agree, the share of the people who said the same.

    Raises:
        ValueError: there are no answers.
    """
    if not answers:
        raise ValueError("answers is empty; agreement needs at least one annotator")
    matches = RULES["always"].matches(prediction, answers)
    if len(answers) <= FULL_MARKS:
        return sum(matches) / len(answers)
    return sum(scores_left_out(matches)) / len(answers)


def scores_left_out(matches: Sequence[bool]) -> list[float]:
    """The score against the others as each annotator in turn is left out; `matches` says who said the same."""
    count = sum(matches)
    return [min(1.0, (count - match) / FULL_MARKS) for match in matches]
