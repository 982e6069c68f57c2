"""How answers are compared: the two official codes, `always`, and the programs that `--like` names.

| rule | program | annotators are told apart by |
|---|---|---|
| `2021`, `2016` | GT-Vision-Lab/VQA a013f00, 458a8b2 | their whole records |
| `always` | both sides normalised always | position |
| `lavis` | LAVIS 506965b: the code of 2016 under Python 3 | their whole records |
| `lmms-eval` | lmms-eval 75571cf; vqav2 has a task of its own | position (vqav2: whole records) |
| `vlmevalkit` | VLMEvalKit e8e78f0, `process_line(method='vqa_score')` | position |
| `m4c` | mmf b0ffc7f, `TextVQAAccuracyEvaluator` | position |
| `vizwiz` | the VizWiz API | position |

VLMEvalKit and numpy add up in another order than we do: its means may differ in the last bit.

Whole records: where two annotators' records are equal once their answers are normalised, leaving out the one leaves out
the other too. Only records without `answer_id` can be.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final

from service.answers.accuracy import FULL_MARKS, RULES, Form, Rule, as_it_stands, scores_left_out
from service.scoring import chains
from service.scoring.rounding import Percent, mean, percent_exact, percent_half_away, percent_rounded

Record = Mapping[str, Any]
OFFICIAL: Final = "official"
_ANSWER: Final = itemgetter("answer")
_ANSWER_ID: Final = itemgetter("answer_id")


def _exact_mean(scores: Sequence[float]) -> float:
    return float(statistics.mean(scores))


@dataclass(frozen=True)
class Comparison:
    """How a program compares answers and adds up.

    Attributes:
        by_record: whether annotators are told apart by their whole records, else by position.
        percent: the mean over questions, as the program rounds it.
        mean: the mean over a question's annotators.
    """

    rule: Rule
    by_record: bool
    percent: Percent
    mean: Callable[[Sequence[float]], float] = mean


_EVAL_AI: Final = Rule(chains.eval_ai, chains.eval_ai)
LIKE: Final[Mapping[str, Comparison]] = {
    "lavis": Comparison(
        Rule(chains.port, chains.punctuation3, as_it_stands, chains.port, as_it_stands), True, percent_rounded
    ),
    "lmms-eval": Comparison(_EVAL_AI, False, percent_exact, _exact_mean),
    "vlmevalkit": Comparison(Rule(chains.vlmevalkit, chains.vlmevalkit), False, percent_exact),
    "m4c": Comparison(_EVAL_AI, False, percent_exact),
    "vizwiz": Comparison(Rule(chains.vizwiz, as_it_stands), False, percent_rounded),
}
LMMS_VQAV2: Final = Comparison(Rule(chains.port_commas, chains.port_commas), True, percent_exact, _exact_mean)


def comparison(code: str, like: str = OFFICIAL, dataset: str = "vqav2") -> Comparison:
    """The comparison that a code, or another program on a data set, makes.

    Raises:
        KeyError: there is none of this name.
    """
    if like == OFFICIAL:
        return Comparison(RULES[code], code != "always", percent_half_away)
    if like == "lmms-eval" and dataset == "vqav2":
        return LMMS_VQAV2
    return LIKE[like]


class _Memo(dict[str, str]):
    """A form of texts, each computed once; looking one up is as fast as a dict."""

    def __init__(self, form: Form) -> None:
        super().__init__()
        self._form = form

    def __missing__(self, text: str) -> str:
        if not isinstance(text, str):
            raise TypeError("an answer is no text")
        made = self[text] = self._form(text)
        return made


class Accuracy:
    """The accuracy of many answers under one comparison.

    A text is normalised once however often it occurs, and a question's scores are averaged once for each pattern of
    matches. It is not for texts that are no strings: those raise AttributeError or TypeError.
    """

    def __init__(self, comparison: Comparison) -> None:
        self.comparison = comparison
        self._memos: dict[Form, _Memo] = {}
        self._means: dict[tuple[int, int, tuple[bool, ...]], float] = {}
        rule = comparison.rule
        self._said, self._heard = self._memo(rule.said), self._memo(rule.heard)
        self._agreeing = None if rule.agreeing is None else self._memo(rule.agreeing)
        self._said_agreed, self._heard_agreed = self._memo(rule.said_agreed), self._memo(rule.heard_agreed)

    def _memo(self, form: Form) -> _Memo:
        return self._memos.setdefault(form, _Memo(form))

    def __call__(self, prediction: str, records: Sequence[Record]) -> float:
        """The accuracy of a prediction, 0 to 1.

        Args:
            prediction: in any spelling.
            records: what each annotator said under "answer"; at least one.

        Raises:
            IndexError: there are no annotators.
            KeyError, AttributeError, TypeError: a record has no "answer", or a text is no string.
        """
        texts = list(map(_ANSWER, records))
        form, forms = self._said[prediction], list(map(self._heard.__getitem__, texts))
        # Annotators who agree have one form, too: only then is it worth looking whether they do.
        if forms.count(forms[0]) == len(forms) and self._agree(texts):
            form, forms = self._said_agreed[prediction], list(map(self._heard_agreed.__getitem__, texts))
        count = forms.count(form)
        if count == 0:
            return 0.0
        if count > 1 and self.comparison.by_record and not _distinct(records):
            matches = [text == form for text in forms]
            return self.comparison.mean(_scores_by_record(records, matches))
        # The order of the annotators matters to the last bit of the mean, but for one match and where all score 1.
        order = tuple([text == form for text in forms]) if 1 < count <= FULL_MARKS else ()
        pattern = (len(forms), count, order)
        known = self._means.get(pattern)
        if known is None:
            known = self._means[pattern] = self.comparison.mean(scores_left_out([text == form for text in forms]))
        return known

    def _agree(self, texts: Sequence[str]) -> bool:
        agreeing = self._agreeing
        return agreeing is not None and len({agreeing[text] for text in texts}) == 1

    def left_behind(self, records: Sequence[Record]) -> list[dict[str, Any]]:
        """The records as the official code leaves them: it writes each answer's form over the answer."""
        texts = [record["answer"] for record in records]
        heard = self._heard_agreed if self._agree(texts) else self._heard
        return [{**record, "answer": heard[record["answer"]]} for record in records]


def _distinct(records: Sequence[Record]) -> bool:
    """Whether no two records can be equal, by their ids."""
    try:
        return len(set(map(_ANSWER_ID, records))) == len(records)
    except (KeyError, TypeError):
        return False


def _scores_by_record(records: Sequence[Record], matches: Sequence[bool]) -> list[float]:
    """As `scores_left_out`, but whoever's record equals that of the one left out is left out too."""
    rests = [{key: value for key, value in record.items() if key != "answer"} for record in records]
    agreeing = [rest for rest, match in zip(rests, matches, strict=True) if match]
    count = len(agreeing)
    return [
        min(1.0, (count - (agreeing.count(rest) if match else 0)) / FULL_MARKS)
        for rest, match in zip(rests, matches, strict=True)
    ]
