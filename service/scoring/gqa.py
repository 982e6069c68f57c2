"""GQA: accuracy, validity, plausibility, consistency, grounding and distribution, as the official `eval.py` gives them.

Source: gqadataset.org, eval.py (Hudson and Manning 2019, section 4.4). All scores are over the balanced questions;
consistency also needs predictions for those questions of the full set that a balanced one entails.

The official program counts validity and plausibility as 0 where it is not given the choices. Here they are null then,
and the notes say so; the lines under `official` are the program's own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Final

from service.errors import DataError
from service.scoring.gqa_files import Question, is_balanced, parse_question, read_objects, read_predictions
from service.scoring.gqa_grounding import Grounding
from service.scoring.rounding import mean
from service.scoring.scores import Inputs, QuestionId, Scores

_METRICS: Final = (
    "binary",
    "open",
    "accuracy",
    "consistency",
    "validity",
    "plausibility",
    "grounding",
    "distribution",
)
_TABLES: Final = {
    "accuracyPerStructuralType": "Accuracy / structural type",
    "accuracyPerSemanticType": "Accuracy / semantic type",
    "accuracyPerSteps": "Accuracy / steps number",
    "accuracyPerLength": "Accuracy / words number",
}
# What "common" questions ask for, instead of the answers that the choices name.
_COMMON: Final = ("color", "material", "shape")

Table = dict[str | int, tuple[float, int]]


def score(inputs: Inputs) -> Scores:
    """Score predictions for GQA.

    Args:
        inputs: `annotations` is the questions file (`val_all_questions.json`, `testdev_balanced_questions.json`), which
            holds the answers, or a folder of its chunks; `results` a JSON array of `{"questionId", "prediction"}`;
            `choices` gives validity and plausibility; `scenes` and `attentions` together give grounding.

    Raises:
        DataError: a file cannot be used, a balanced question has no prediction, or a question is not in one of the
            further files.
    """
    if (inputs.scenes is None) != (inputs.attentions is None):
        given, missing = ("scenes", "attentions") if inputs.scenes else ("attentions", "scenes")
        path = inputs.scenes or inputs.attentions or inputs.annotations
        raise DataError(path, f"grounding needs scene graphs and attentions; {given} is given and {missing} is not")
    predictions, notes = read_predictions(inputs.results)
    records = read_objects(inputs.annotations, "questions")
    if inputs.questions is not None and inputs.questions.resolve() != inputs.annotations.resolve():
        notes.append(f"{inputs.questions} is not read; GQA's questions and answers are one file, the annotations")
    tally = _Tally(inputs, records, predictions)
    _check_all_predicted(inputs, tally.balanced, predictions)
    for qid in tally.balanced:
        tally.add(qid)
    return tally.scores(notes)


def _check_all_predicted(inputs: Inputs, balanced: list[str], predictions: Mapping[str, Any]) -> None:
    if not balanced:
        raise DataError(inputs.annotations, "no question is balanced; there is nothing to score")
    missing = [qid for qid in balanced if qid not in predictions]
    if missing:
        what = (
            f"no prediction for question {missing[0]}; {len(missing)} of {len(balanced)} balanced questions have none. "
            "Every balanced question needs one"
        )
        raise DataError(inputs.results, what)


class _Tally:
    """Question by question, what the scores are the means of."""

    def __init__(self, inputs: Inputs, records: Mapping[str, Any], predictions: Mapping[str, Any]) -> None:
        self._path = inputs.annotations
        self._records, self._predictions = records, predictions
        self.balanced = [qid for qid, record in records.items() if is_balanced(self._path, qid, record)]
        self._choices_path = inputs.choices
        self._choices = read_objects(inputs.choices, "choices") if inputs.choices else {}
        self._grounding = Grounding(inputs.scenes, inputs.attentions) if inputs.scenes and inputs.attentions else None
        unanswered = sum(qid not in predictions for qid in records)
        self._no_consistency = f"{unanswered} questions have no prediction" if unanswered else ""
        self._lists: dict[str, list[float]] = {name: [] for name in _METRICS}
        self._tables: dict[str, dict[str | int, list[float]]] = {name: defaultdict(list) for name in _TABLES}
        self._gold: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self._predicted: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        self._per_question: dict[QuestionId, float] = {}

    def add(self, qid: str) -> None:
        """Count one balanced question."""
        question = parse_question(self._path, qid, self._records[qid])
        predicted = self._predictions[qid]
        right = float(predicted == question.answer)
        self._per_question[qid] = right
        self._lists["accuracy"].append(right)
        self._lists["open" if question.structural == "query" else "binary"].append(right)
        keys: tuple[str | int, ...] = (question.structural, question.semantic, question.steps, question.words)
        for name, key in zip(_TABLES, keys, strict=True):
            self._tables[name][key].append(right)
        if self._choices:
            self._add_choices(qid, question, predicted)
        if self._grounding is not None:
            self._lists["grounding"].append(self._grounding.score(qid, question))
        if question.group is not None:
            self._gold[question.group][question.answer] += 1
            self._predicted[question.group][predicted] += 1
        if right and not self._no_consistency:
            self._add_consistency(qid)

    def _add_choices(self, qid: str, question: Question, predicted: Any) -> None:
        for metric, name in (("validity", "valid"), ("plausibility", "plausible")):
            try:
                group = self._choices[qid][name]
                self._lists[metric].append(float(predicted in (_COMMON if question.common else group)))
            except (KeyError, TypeError) as error:
                path = self._choices_path or self._path
                raise DataError(path, f"no {name} answers for this question", f"question {qid}") from error

    def _add_consistency(self, qid: str) -> None:
        """For a question answered right, the share of right answers among those that it entails."""
        try:
            entailed = [other for other in self._records[qid]["entailed"] if other != qid]
            if entailed:
                right = [float(self._predictions[other] == self._records[other]["answer"]) for other in entailed]
                self._lists["consistency"].append(mean(right))
        except TypeError as error:
            raise DataError(self._path, "'entailed' must be an array of question ids", f"question {qid}") from error
        except KeyError as error:
            missing = "says nothing of what it entails" if error.args == ("entailed",) else f"entails {error}"
            self._no_consistency = f"question {qid} {missing}, which the questions file does not hold"

    def scores(self, notes: list[str]) -> Scores:
        """All scores, once every question is counted."""
        raw: dict[str, float | None] = {name: mean(self._lists[name]) * 100 for name in _METRICS}
        raw["distribution"] = self._distribution()
        if self._no_consistency:
            raw["consistency"] = None
            notes.append(f"consistency is left out: {self._no_consistency}; it needs the full questions file, answered")
        if not self._choices:
            raw["validity"] = raw["plausibility"] = None
            notes.append("validity and plausibility are left out: they need the choices file")
        if self._grounding is None:
            raw["grounding"] = None
            notes.append("grounding is left out: it needs scene graphs and attention maps")
        if raw["distribution"] is None:
            notes.append("distribution is left out: no balanced question belongs to a global group")
        tables = {
            name: {key: (mean(table[key]) * 100, len(table[key])) for key in sorted(table)}
            for name, table in self._tables.items()
        }
        rounded = {name: None if value is None else round(value, 2) for name, value in raw.items()}
        return Scores(
            dataset="gqa",
            accuracy=rounded.pop("accuracy") or 0.0,
            questions=len(self._per_question),
            per_answer_type={name: rounded[name] or 0.0 for name in ("binary", "open") if self._lists[name]},
            per_question_type={
                str(key): round(value, 2) for key, (value, _) in tables["accuracyPerStructuralType"].items()
            },
            metrics={**rounded, **_json(tables, digits=2), "scores": {**raw, **_json(tables)}},
            per_question=self._per_question,
            official=_official(raw, tables),
            notes=tuple(notes),
        )

    def _distribution(self) -> float | None:
        """The chi-square statistic of predicted against true answers by group, weighted by the groups' sizes, / 100."""
        total, overall = 0.0, 0
        for group, answers in self._gold.items():
            statistic = 0.0
            for answer, expected in answers.items():
                observed = self._predicted[group].get(answer, 0)
                statistic += float(observed - expected) ** 2 / expected
            size = sum(answers.values())
            total += statistic * size
            overall += size
        return total / overall / 100 if overall else None


def _json(tables: Mapping[str, Table], digits: int | None = None) -> dict[str, dict[str, list[float]]]:
    """The tables with texts as keys and [percent, count] as values."""
    return {
        name: {
            str(key): [value if digits is None else round(value, digits), count]
            for key, (value, count) in table.items()
        }
        for name, table in tables.items()
    }


def _official(raw: Mapping[str, float | None], tables: Mapping[str, Table]) -> tuple[str, ...]:
    """The lines that the official program prints from "Binary:" on; none where it ends in an error instead."""
    if raw["distribution"] is None:
        return ()
    lines = []
    for name in _METRICS:
        value = raw[name]
        if value is None and name in ("consistency", "grounding"):
            continue
        suffix = " (lower is better)" if name == "distribution" else "%"
        lines.append(f"{name.capitalize()}: {value or 0.0:.2f}{suffix}")
    for name, title in _TABLES.items():
        lines += ["", f"{title}:"]
        lines += [f"  {key}: {value:.2f}% ({count} questions)" for key, (value, count) in tables[name].items()]
    return tuple(lines)
