"""AdVQA (Sheng et al. 2021): VQA in the official format, chosen by people to fool models.

Beside the accuracy, which is that of VQA v2: how far one gets without looking (the majority baselines), and how well
people agree. As in the paper's table, the majority answer is the most frequent of the training answers, overall and for
each answer type; people are scored by leaving each annotator out and asking the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from service.answers.accuracy import average
from service.scoring.rules import Accuracy, Record, comparison
from service.scoring.scores import Inputs, Scores
from service.scoring.vqa import Loaded, load, per_type, percent, score_loaded, types
from service.scoring.vqa_format import explain, read_annotations


def score(inputs: Inputs) -> Scores:
    """Score a results file, with baselines and human agreement.

    Raises:
        DataError: the files do not fit together, or one is broken.
    """
    loaded = load(inputs)
    scores = score_loaded(loaded, inputs, "advqa")
    rows = loaded.annotations.rows
    kinds, _, _ = types(loaded)
    train = loaded.annotations if inputs.train is None else read_annotations(inputs.train)
    try:
        learnt = Loaded(train, loaded.results, None)
        train_kinds, _, _ = types(learnt)
        said = [majority_answer(row["answers"]) for row in train.rows]
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise explain(train, loaded.results) from error
    overall = _most_frequent(said)
    by_kind = {
        kind: _most_frequent([text for text, its in zip(said, train_kinds, strict=True) if its == kind])
        for kind in sorted(set(train_kinds))
    }
    accuracy = Accuracy(comparison(inputs.code))
    always = [accuracy(overall, row["answers"]) for row in rows]
    typed = [accuracy(by_kind.get(kind, overall), row["answers"]) for kind, row in zip(kinds, rows, strict=True)]
    human = [human_agreement(row["answers"], inputs.code) for row in rows]
    return replace(
        scores,
        metrics={
            **scores.metrics,
            "majority_baselines": {
                "overall": {"answer": overall, "accuracy": percent(always), "per_answer_type": per_type(always, kinds)},
                "per_answer_type": {
                    "answers": by_kind,
                    "accuracy": percent(typed),
                    "per_answer_type": per_type(typed, kinds),
                },
            },
            "human_agreement": {"accuracy": percent(human), "per_answer_type": per_type(human, kinds)},
        },
    )


def human_agreement(records: Sequence[Record], code: str = "2021") -> float:
    """How well each annotator's answer does with the others as annotators, averaged; 0 to 1.

    With one annotator left out there is nobody else to leave out: the score is min(1, matches among the others / 3).
    """
    rule = comparison(code).rule
    texts = [record["answer"] for record in records]
    said, heard = rule.said, rule.heard
    if rule.agreeing is not None and len({rule.agreeing(text) for text in texts}) == 1:
        said, heard = rule.said_agreed, rule.heard_agreed
    forms = [heard(text) for text in texts]
    scores = []
    for index, text in enumerate(texts):
        form = said(text)
        scores.append(min(1.0, sum(other == form for other in forms[:index] + forms[index + 1 :]) / 3))
    return average(scores)


def majority_answer(records: Sequence[Record]) -> str:
    """What most annotators said in normal form; the first of equals."""
    rule = comparison("always").rule
    return _most_frequent([rule.heard(record["answer"]) for record in records])


def _most_frequent(texts: Sequence[str]) -> str:
    return Counter(texts).most_common(1)[0][0]
