"""VQA accuracy over a set in the official format: GT-Vision-Lab/VQA, vqaEval.py, bit for bit, and its look-alikes.

VQA v1 (open-ended and multiple choice), VQA v2, OK-VQA, TextVQA, VQA-CP and AdVQA are all scored here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from service.answers import normalise
from service.scoring.pairs import score_pairs
from service.scoring.question_types import ABSTRACT, MSCOCO, answer_type, question_type
from service.scoring.rounding import mean, per_type
from service.scoring.rules import OFFICIAL, Accuracy, Comparison, Record, comparison
from service.scoring.scores import Inputs, QuestionId, Scores
from service.scoring.vqa_format import (
    Annotations,
    Questions,
    Results,
    check_choices,
    check_same_questions,
    column,
    explain,
    only_these,
    read_annotations,
    read_questions,
    read_results,
    some,
)


@dataclass(frozen=True)
class Loaded:
    """The files of one scoring, read and checked against each other."""

    annotations: Annotations
    results: Results
    questions: Questions | None


def load(inputs: Inputs) -> Loaded:
    """Read and check as the official loader does.

    Raises:
        DataError: what the official loader refuses, and where.
    """
    annotations, results = read_annotations(inputs.annotations), read_results(inputs.results)
    questions = None if inputs.questions is None else read_questions(inputs.questions)
    check_same_questions(annotations, results)
    if questions is not None and questions.multiple_choice:
        check_choices(questions, results)
    elif questions is not None and (missing := [key for key in annotations.by_id if key not in questions.rows]):
        note = f"{len(missing)} annotated questions are not in {questions.path} ({some(missing)})"
        annotations = replace(annotations, notes=(*annotations.notes, note))
    if inputs.question_ids is not None:
        annotations = only_these(annotations, inputs.question_ids)
    return Loaded(annotations, results, questions)


def score(inputs: Inputs, dataset: str = "vqav2") -> Scores:
    """Score a results file.

    Raises:
        DataError: the files do not fit together, or one is broken.
    """
    scores = score_loaded(load(inputs), inputs, dataset)
    if inputs.pairs is None:
        return scores
    return replace(scores, metrics={**scores.metrics, "pairs": score_pairs(inputs.pairs, scores.per_question)})


def score_loaded(loaded: Loaded, inputs: Inputs, dataset: str) -> Scores:
    """Score files that are read already.

    Raises:
        DataError: an answer is no text.
    """
    compared = comparison(inputs.code, inputs.like, dataset)
    return summary(loaded, question_accuracies(loaded, compared), compared, inputs, dataset)


def summary(loaded: Loaded, accuracies: Sequence[float], compared: Comparison, inputs: Inputs, dataset: str) -> Scores:
    """The scores of a set from each annotation row's accuracy."""
    by_answer_type, by_question_type, notes = types(loaded)
    official = inputs.like == OFFICIAL
    scores = Scores(
        dataset=dataset,
        accuracy=compared.percent(accuracies),
        questions=len(accuracies),
        per_answer_type=per_type(accuracies, by_answer_type, compared.percent),
        per_question_type=per_type(accuracies, by_question_type, compared.percent),
        metrics={"code": inputs.code} if official else {"like": inputs.like, "scores": {"accuracy": mean(accuracies)}},
        per_question={r["question_id"]: a for r, a in zip(loaded.annotations.rows, accuracies, strict=True)},
        percent=compared.percent,
        notes=loaded.annotations.notes + loaded.results.notes + notes,
    )
    names = loaded.annotations.head.get("question_types")
    return replace(scores, metrics={**scores.metrics, "question_types": names}) if isinstance(names, dict) else scores


def question_accuracies(loaded: Loaded, compared: Comparison) -> list[float]:
    """Each annotation row's accuracy, 0 to 1, in the file's order.

    Raises:
        DataError: an answer is no text.
    """
    accuracy = Accuracy(compared)
    said = loaded.results.rows
    by_id = loaded.annotations.by_id
    rows = loaded.annotations.rows
    try:
        if len({row["question_id"] for row in rows}) == len(rows):
            return [accuracy(said[row["question_id"]]["answer"], row["answers"]) for row in rows]
        # The official code meets a question that is annotated twice twice, with the last annotation, whose answers it
        # has normalised in place by the second time.
        answers = {key: row["answers"] for key, row in by_id.items()}
        accuracies = []
        for row in rows:
            key = row["question_id"]
            accuracies.append(accuracy(said[key]["answer"], answers[key]))
            answers[key] = accuracy.left_behind(answers[key])
        return accuracies
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise explain(loaded.annotations, loaded.results) from error


def types(loaded: Loaded) -> tuple[list[str], list[str], tuple[str, ...]]:
    """The answer type and the question type of each row; what a file leaves out is worked out by the official rules.

    Of a question that is annotated twice, the last annotation gives the types at each visit, as in the official code.
    """
    rows = [loaded.annotations.by_id[row["question_id"]] for row in loaded.annotations.rows]
    notes: tuple[str, ...] = ()
    by_answer = column(rows, "answer_type")
    if "" in by_answer:
        by_answer = [kind or answer_type(majority(row["answers"])) for kind, row in zip(by_answer, rows, strict=True)]
        notes += ("answer types are not in the annotations; they are read off the majority answers",)
    by_question = column(rows, "question_type")
    if "" in by_question:
        texts, data_type = _texts(loaded)
        if texts is None:
            return by_answer, [], (*notes, "no question types: they are in neither file; give the questions")
        by_question = [kind or question_type(text, data_type) for kind, text in zip(by_question, texts, strict=True)]
        notes += ("question types are not in the annotations; they are the official prefixes",)
    return by_answer, by_question, notes


def _texts(loaded: Loaded) -> tuple[list[str] | None, str]:
    """The questions' texts, from either file (None where one is missing), and whose prefix list is theirs."""
    questions = loaded.questions
    known: Mapping[QuestionId, Mapping[str, Any]] = questions.rows if questions else {}
    texts = [(known.get(row["question_id"]) or row).get("question") for row in loaded.annotations.rows]
    drawn = questions is not None and questions.head.get("data_type") == ABSTRACT
    return [str(text) for text in texts] if None not in texts else None, ABSTRACT if drawn else MSCOCO


def majority(records: Sequence[Record]) -> str:
    """What most annotators said, in normal form; the first of equals."""
    texts = [normalise(record["answer"]) for record in records]
    return max(texts, key=texts.count)
