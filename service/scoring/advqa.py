"""AdVQA (Sheng et al. 2021): VQA in the official format, chosen by people to fool models.

Beside the accuracy, which is that of VQA v2: how far one gets without looking (the paper's two majority baselines, the
most frequent answer overall and that of each answer type), and how well people agree. The authors published no code for
these; the definitions are ours and stand below.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from service.answers.accuracy import FULL_MARKS, RULES
from service.scoring.rounding import mean, per_type
from service.scoring.rules import Accuracy, Record, comparison
from service.scoring.scores import Inputs, Scores
from service.scoring.vqa import Loaded, load, majority, score_loaded, types
from service.scoring.vqa_format import explain, read_annotations


def score(inputs: Inputs) -> Scores:
    """Score a results file, with baselines and human agreement.

    Raises:
        DataError: the files do not fit together, or one is broken.
    """
    loaded = load(inputs)
    scores = score_loaded(loaded, inputs, "advqa")
    annotations, (kinds, _, _) = loaded.annotations, types(loaded)
    rows = [annotations.by_id[row["question_id"]] for row in annotations.rows]
    overall, by_kind = _most_frequent(loaded, inputs)
    compared = comparison(inputs.code)
    accuracy = Accuracy(compared)

    def figures(values: Sequence[float]) -> dict[str, Any]:
        return {"accuracy": compared.percent(values), "per_answer_type": per_type(values, kinds, compared.percent)}

    always = [accuracy(overall, row["answers"]) for row in rows]
    typed = [accuracy(by_kind.get(kind, overall), row["answers"]) for kind, row in zip(kinds, rows, strict=True)]
    human = [human_agreement(row["answers"], inputs.code) for row in rows]
    baselines = {
        "overall": {"answer": overall, **figures(always)},
        "per_answer_type": {"answers": by_kind, **figures(typed)},
    }
    metrics = {**scores.metrics, "majority_baselines": baselines, "human_agreement": figures(human)}
    return replace(scores, metrics=metrics)


def human_agreement(records: Sequence[Record], code: str = "2021") -> float:
    """How well each annotator's answer does with the others as its annotators, averaged; 0 to 1.

    With one annotator left out already there is nobody further to leave out: the score is min(1, matches / 3).
    """
    texts = [record["answer"] for record in records]
    rule = RULES[code]
    matches = [sum(rule.matches(text, texts[:i] + texts[i + 1 :])) for i, text in enumerate(texts)]
    return mean([min(1.0, count / FULL_MARKS) for count in matches])


def _most_frequent(loaded: Loaded, inputs: Inputs) -> tuple[str, dict[str, str]]:
    """The most frequent majority answer, overall and by answer type: of the training answers, or of these."""
    train = loaded.annotations if inputs.train is None else read_annotations(inputs.train)
    try:
        kinds, _, _ = types(Loaded(train, loaded.results, None))
        said = [majority(row["answers"]) for row in train.rows]
    except (KeyError, IndexError, ValueError, TypeError, AttributeError) as error:
        raise explain(train, loaded.results) from error
    of_kind: dict[str, Counter[str]] = {kind: Counter() for kind in sorted(set(kinds))}
    for kind, text in zip(kinds, said, strict=True):
        of_kind[kind][text] += 1
    return Counter(said).most_common(1)[0][0], {kind: texts.most_common(1)[0][0] for kind, texts in of_kind.items()}
