"""ANLS, average normalised Levenshtein similarity, for ST-VQA, DocVQA and their kin (Biten et al. 2019).

The similarity of two texts is 1 - distance / length of the longer one. A question scores the greatest similarity to one
of its answers, and 0 below one half. The paper lets exactly one half score 0; all programs let it score 0.5.

| like | program | texts | length |
|---|---|---|---|
| `official` | the Robust Reading Competition's script | small letters, white space collapsed | as given, in capitals |
| `vlmevalkit` | VLMEvalKit e8e78f0, `anls_compute` | the same | the same |
| `m4c` | mmf, `STVQAANLSEvaluator` | small letters, white space around gone | as compared |

As the first two divide by the length of the texts as they stand, white space around an answer raises its score.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from service.errors import DataError, needs
from service.files import read_json, read_rows
from service.scoring.answered import answers_by_id, id_name
from service.scoring.rounding import mean, per_type, percent_rounded
from service.scoring.rows import id_of, kind_of, records
from service.scoring.scores import Inputs, QuestionId, Scores

THRESHOLD: Final = 0.5


def anls(prediction: str, answers: Sequence[str], like: str = "official") -> float:
    """The ANLS of one prediction.

    Args:
        prediction: the answer to score.
        answers: the right answers; at least one.
        like: "official", "vlmevalkit" or "m4c" (see the module).

    Returns:
        0, or 0.5 to 1.

    Raises:
        ValueError: there are no answers, `like` is not known, or, for "m4c", an answer and the prediction are both
            empty, where that program divides by zero.
        MissingExtraError: rapidfuzz is not installed.
    """
    if like not in _DISTANCES:
        raise ValueError(f"like is {like!r}; it must be one of {', '.join(_DISTANCES)}")
    if not answers:
        raise ValueError("answers is empty; ANLS needs at least one")
    distance = _DISTANCES[like]
    similarity = 1 - min(distance(answer, prediction) for answer in answers)
    return 0.0 if similarity < THRESHOLD else similarity


def _official_distance(answer: str, prediction: str) -> float:
    length = max(len(answer.upper()), len(prediction.upper()))  # capitals: a German sharp s counts as two
    return _edits(_collapsed(answer), _collapsed(prediction)) / length if length else 0.0


def _m4c_distance(answer: str, prediction: str) -> float:
    answer, prediction = answer.lower().strip(), prediction.lower().strip()
    length = max(len(answer), len(prediction))
    if not length:
        raise ValueError("the answer and the prediction are both empty, where m4c divides by zero")
    return _edits(answer, prediction) / length


_DISTANCES: Final[Mapping[str, Callable[[str, str], float]]] = {
    "official": _official_distance,
    "vlmevalkit": _official_distance,
    "m4c": _m4c_distance,
}


def _collapsed(text: str) -> str:
    return " ".join(text.strip().lower().split())


def _edits(one: str, other: str) -> int:
    with needs("rapidfuzz"):
        from rapidfuzz.distance import Levenshtein
    return Levenshtein.distance(one, other)


def score(inputs: Inputs, dataset: str = "docvqa") -> Scores:
    """Score a results file by ANLS.

    Args:
        inputs: `annotations` is `{"data": [{"question_id" or "questionId", "answers": [text, …]}]}` or the plain array;
            `results` a JSON array or JSON Lines of `{"question_id" or "questionId", "answer"}`, one for each question.
        dataset: the name to give the scores.

    Raises:
        DataError: a file cannot be used, or the results are not those of these questions.
        MissingExtraError: rapidfuzz is not installed.
    """
    questions = _read_questions(inputs.annotations)
    answers = answers_by_id(inputs.results, read_rows(inputs.results), questions, inputs.annotations)
    per_question: dict[QuestionId, float] = {}
    for qid, row in questions.items():
        try:
            per_question[qid] = anls(answers[qid], row["answers"], inputs.like)
        except ValueError as error:
            raise DataError(inputs.results, str(error), f"question {qid}") from error
    value = _mean(list(per_question.values()), inputs.like)
    return Scores(
        dataset=dataset,
        accuracy=100 * value,
        questions=len(per_question),
        per_answer_type=_by_type(questions, per_question, "answer_type"),
        per_question_type=_by_type(questions, per_question, "question_types"),
        metrics={"anls": value},
        per_question=per_question,
    )


def _mean(values: Sequence[float], like: str) -> float:
    """The mean as the program adds it up: VLMEvalKit with numpy, in pairs; the others one by one."""
    if like != "vlmevalkit":
        return mean(values)
    import numpy as np

    return float(np.mean(values))


def _read_questions(path: Path) -> dict[QuestionId, dict[str, Any]]:
    content = read_json(path)
    rows = content.get("data") if isinstance(content, dict) else content
    if not isinstance(rows, list) or not rows:
        raise DataError(path, 'expected an array of questions, or an object with such an array under "data"')
    prefix = "data" if isinstance(content, dict) else ""
    questions: dict[QuestionId, dict[str, Any]] = {}
    for place, row in records(path, [(f"{prefix}[{index}]", row) for index, row in enumerate(rows)]):
        qid = id_of(path, place, row, id_name(path, place, row))
        if qid in questions:
            raise DataError(path, f"question {qid!r} is there twice", place)
        if "answers" not in row:
            raise DataError(path, "the key 'answers' is missing; a test set without answers cannot be scored", place)
        answers = row["answers"]
        if not isinstance(answers, list) or not answers or not all(isinstance(answer, str) for answer in answers):
            raise DataError(path, f"expected texts, one at least, and this is {kind_of(answers)}", f"{place}.answers")
        questions[qid] = row
    return questions


def _by_type(
    questions: Mapping[QuestionId, Mapping[str, Any]], scores: Mapping[QuestionId, float], name: str
) -> dict[str, float]:
    """ANLS in percent by the types that the questions name, of which one question may have several."""
    pairs: list[tuple[float, str]] = []
    for qid, row in questions.items():
        kinds = row.get(name)
        kinds = kinds if isinstance(kinds, list) else [kinds]
        pairs += [(scores[qid], kind) for kind in kinds if isinstance(kind, str)]
    return per_type([value for value, _ in pairs], [kind for _, kind in pairs], percent_rounded)
