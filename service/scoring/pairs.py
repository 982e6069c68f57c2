"""VQA v2's complementary pairs: one question, two similar pictures, two different answers (Goyal et al. 2017).

    pairs   [[question_id, question_id], …]   (v2_mscoco_val2014_complementary_pairs.json)

A model that answers from the question alone gives both pictures the same answer and gets no pair right.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

from service.errors import DataError
from service.files import read_json
from service.scoring.rounding import total
from service.scoring.scores import QuestionId


def score_pairs(path: Path, accuracies: Mapping[QuestionId, float]) -> dict[str, Any]:
    """How often both questions of a pair are right.

    Args:
        path: the pairs.
        accuracies: each question's accuracy, 0 to 1. Pairs of which a question is missing are left out and counted.

    Returns:
        `pairs`: how many; `left_out`; `both_right`: percent of them where both have full marks (accuracy 1);
        `mean_of_lower`: the mean, in percent, of the lower accuracy of the two, which gives part marks their due.

    Raises:
        DataError: the file holds no pairs of ids, or none of them is among the questions.
    """
    rows = read_json(path)
    if not isinstance(rows, list):
        raise DataError(path, "it must be an array of pairs of question ids")
    lower: list[float] = []
    for index, pair in enumerate(rows):
        if not isinstance(pair, list) or len(pair) != 2 or not all(isinstance(key, Hashable) for key in pair):
            raise DataError(path, "must be a pair of question ids", f"[{index}]")
        if pair[0] in accuracies and pair[1] in accuracies:
            lower.append(min(accuracies[pair[0]], accuracies[pair[1]]))
    if not lower:
        raise DataError(path, "none of its pairs is among the questions that were scored")
    return {
        "pairs": len(lower),
        "left_out": len(rows) - len(lower),
        "both_right": round(100 * sum(value >= 1.0 for value in lower) / len(lower), 2),
        "mean_of_lower": round(100 * total(lower) / len(lower), 2),
    }
