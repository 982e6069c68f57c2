"""VizWiz: VQA accuracy and answerability, as the VizWiz API computes them.

    annotations   [{"image", "question", "answers": [{"answer", "answer_confidence"}], "answer_type",
                    "answerable": 0 | 1}]
    results       [{"image", "answer"}], for the answerability task [{"image", "answerable": 0..1}]

The API normalises the prediction and leaves the annotators' answers as they are; its contractions are those of the VQA
code of 2015. Answerability is scored as the detection of questions that cannot be answered: average precision over
1 - answerable, and F1 at 1 - answerable above 0.5. Where results say nothing of it, the API's users take it from the
answer: answerable is whatever is not "unanswerable".
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from service.errors import DataError, needs
from service.scoring import chains
from service.scoring.rounding import mean, per_type
from service.scoring.rows import kind_of
from service.scoring.rules import LIKE, OFFICIAL, Accuracy, comparison
from service.scoring.scores import Inputs, Scores
from service.scoring.vqa_format import (
    Annotations,
    Results,
    check_covered,
    column,
    explain,
    read_image_rows,
    read_results,
)

UNANSWERABLE: Final = "unanswerable"
_IMAGE: Final = "image"


def score(inputs: Inputs) -> Scores:
    """Score a results file of either task, or one of each.

    Raises:
        DataError: the files do not fit together, or one is broken.
    """
    annotations = read_image_rows(inputs.annotations)
    results = read_results(inputs.results, _IMAGE)
    files = [results]
    if inputs.answerability is not None:
        files.append(read_results(inputs.answerability, _IMAGE))
    for file in files:
        check_covered(annotations.by_id, file.rows, file.path, annotations.path)
    notes = annotations.notes + tuple(note for file in files for note in file.notes)
    rated = next((file for file in reversed(files) if _has(file, "answerable")), None)
    if _has(results, "answer"):
        scores = _accuracy(annotations, results, inputs)
    elif rated is not None:
        scores = Scores(dataset="vizwiz", accuracy=None, questions=len(annotations.rows))
    else:
        raise DataError(results.path, 'its rows have neither "answer" nor "answerable"')
    metrics = dict(scores.metrics)
    if "answerable" not in annotations.rows[0]:
        notes += ("no answerability: the annotations do not say what can be answered",)
        return replace(scores, metrics=metrics, notes=scores.notes + notes)
    labels = [_label(annotations.path, row) for row in annotations.rows]
    if rated is not None:
        metrics["unanswerability"] = _rated(annotations, rated, labels)
    if _has(results, "answer"):
        said = [chains.vizwiz(results.rows[row[_IMAGE]]["answer"]) for row in annotations.rows]
        metrics["unanswerability_from_answer_text"] = unanswerability(labels, [float(s != UNANSWERABLE) for s in said])
    return replace(scores, metrics=metrics, notes=scores.notes + notes)


def unanswerability(answerable: Sequence[float], predicted: Sequence[float]) -> dict[str, float]:
    """Average precision and F1 of detecting what cannot be answered, in percent, two places.

    Args:
        answerable: (n,) labels, 1 where the question can be answered, else 0.
        predicted: (n,) the model's probability that it can.
    """
    precision, f1 = unanswerability_raw(answerable, predicted)
    return {"average_precision": round(100 * precision, 2), "f1_score": round(100 * f1, 2)}


def unanswerability_raw(answerable: Sequence[float], predicted: Sequence[float]) -> tuple[float, float]:
    """The same as fractions, unrounded."""
    import numpy as np

    with needs("scikit-learn"):
        from sklearn.metrics import average_precision_score, f1_score
    labels, rated = 1 - np.asarray(answerable), 1.0 - np.asarray(predicted)
    with warnings.catch_warnings():
        # Where every question can be answered both are 0, as the API has it, with warnings that help nobody.
        warnings.simplefilter("ignore")
        return float(average_precision_score(labels, rated)), float(f1_score(labels, rated > 0.5))


def _accuracy(annotations: Annotations, results: Results, inputs: Inputs) -> Scores:
    official = inputs.like == OFFICIAL
    compared = LIKE["vizwiz"] if official else comparison(inputs.code, inputs.like, "vizwiz")
    accuracy = Accuracy(compared)
    try:
        each = [accuracy(results.rows[row[_IMAGE]]["answer"], row["answers"]) for row in annotations.rows]
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise explain(annotations, results) from error
    return Scores(
        dataset="vizwiz",
        accuracy=compared.percent(each),
        questions=len(each),
        per_answer_type=per_type(each, column(annotations.rows, "answer_type"), compared.percent),
        metrics={} if official else {"like": inputs.like, "scores": {"accuracy": mean(each)}},
        per_question={row[_IMAGE]: value for row, value in zip(annotations.rows, each, strict=True)},
        percent=compared.percent,
    )


def _has(file: Results, key: str) -> bool:
    """Whether the file is one of this task, by its first row."""
    return key in next(iter(file.rows.values()), {})


def _label(path: Path, row: Mapping[str, Any]) -> float:
    label = row.get("answerable")
    if isinstance(label, int | float) and label in (0, 1):
        return float(label)
    raise DataError(path, f'"answerable" must be 0 or 1, and is {_shown(label)}', f"image {row[_IMAGE]!r}")


def _rated(annotations: Annotations, results: Results, labels: Sequence[float]) -> dict[str, float]:
    rated = [_probability(results.path, row[_IMAGE], results.rows[row[_IMAGE]]) for row in annotations.rows]
    return unanswerability(labels, rated)


def _probability(path: Path, image: str, row: Mapping[str, Any]) -> float:
    value = row.get("answerable")
    if isinstance(value, int | float) and -1e300 < value < 1e300:
        return float(value)
    raise DataError(path, f'"answerable" of {image!r} must be a number, and is {_shown(value)}')


def _shown(value: object) -> str:
    return str(value) if isinstance(value, int | float) else kind_of(value)
