"""All figures of a run as one JSON document; the page shows these and computes none.

Shares and accuracies are 0 to 1, times are milliseconds; what does not exist is None or NaN, both null in JSON.
Only `scores` is as the data set's own evaluator gives it, in percent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from service.answers import is_unanswerable
from service.errors import needs
from service.evaluation.reporting.bootstrap import LEVEL, Bootstrap, Interval
from service.evaluation.reporting.calibration_figures import (
    ReliabilityBins,
    brier_score,
    equal_mass_bins,
    equal_width_bins,
)
from service.evaluation.reporting.confusion import best_answers, confusion
from service.evaluation.reporting.predictions import Run, View
from service.evaluation.reporting.risk_coverage import risk_coverage_figures

Floats = NDArray[np.float64]
Document = dict[str, Any]

STAGES: Final = ("decode", "queue", "inference", "total")
NO_TYPE: Final = "(none)"


def run_figures(run: Run, bootstrap: Bootstrap) -> Document:
    """The figures of a run."""
    view = run.main
    right = best_answers(view.answers)
    return {
        "label": run.label,
        "dataset": run.dataset,
        "run": dict(run.about),
        "models": _models(view),
        "main_view": run.main_name,
        "views": [view_figures(run, name, bootstrap) for name in run.views],
        "bootstrap": {"level": LEVEL, "resamples": bootstrap.draws(_pictures(view)).resamples},
        "by_answer_type": _by_type(run, "answer_type", bootstrap),
        "by_question_type": _by_type(run, "question_type", bootstrap),
        "scores": {name: dict(run.documents[name]["scores"]) for name in run.views},
        "calibration": [entry for name in ("confidence", "top_probability") if (entry := _calibration(view, name))],
        "risk_coverage": _risk_coverage(view),
        "answerability": _answerability(view, right),
        "confusion": _confusion(view, right),
        "timings": _timings(view) | {"speed": run.documents[run.main_name].get("speed")},
    }


def view_figures(run: Run, name: str, bootstrap: Bootstrap) -> Document:
    """One line about a view, with its intervals and what sets it apart from the main view."""
    view = run.views[name]
    return {
        "view": name,
        **view_summary(view),
        "pictures": _pictures(view),
        "accuracy": asdict(bootstrap.mean(view.accuracy, view.pictures)),
        "official_accuracy": run.documents[name]["scores"].get("accuracy"),
        "difference": None if name == run.main_name else paired_figures(run.main, view, bootstrap),
        "failed_by_code": dict(Counter(code for code in view.texts("error") if code is not None).most_common()),
    }


def view_summary(view: View) -> Document:
    """What can be said of a view at once: how much, how right, how sure."""
    confidence = view.numbers("confidence")
    sure = view.answered & np.isfinite(confidence)
    bins = equal_width_bins(confidence[sure], view.accuracy[sure])
    return {
        "questions": len(view),
        "mean_accuracy": float(view.accuracy.mean()),
        "mean_confidence": float(confidence[sure].mean()) if sure.any() else None,
        "expected_calibration_error": bins.expected_calibration_error if sure.any() else None,
        "brier_score": brier_score(confidence[sure], view.accuracy[sure]) if sure.any() else None,
        "answered": int(view.answered.sum()),
        "unanswerable": int(view.unanswerable.sum()),
        "abstained": int(view.abstained.sum()),
        "failed": int(view.failed.sum()),
    }


def paired_figures(first: View, second: View, bootstrap: Bootstrap) -> Document | None:
    """The paired bootstrap over the questions that both have; None where they share none.

    Id and text must be the same: other data sets count from 1 as well.
    """
    places = {question: index for index, question in enumerate(_questions(first))}
    common = [(places[question], index) for index, question in enumerate(_questions(second)) if question in places]
    if not common:
        return None
    left, right = np.array(common).T
    return asdict(bootstrap.difference(first.accuracy[left], second.accuracy[right], first.pictures[left]))


def _pictures(view: View) -> int:
    return int(np.unique(view.pictures).size)


def _questions(view: View) -> list[tuple[str | None, str | None]]:
    return list(zip(view.texts("question_id"), view.texts("question"), strict=True))


def _models(view: View) -> list[Document]:
    """Every model that answered, with how many questions it answered."""
    names = ("backend", "model", "revision", "calibration")
    rows = zip(*(view.texts(name) for name in names), strict=True)
    counted = Counter(row for row in rows if any(row)).most_common()
    return [dict(zip(names, row, strict=True)) | {"questions": count} for row, count in counted]


def _by_type(run: Run, column: str, bootstrap: Bootstrap) -> list[Document]:
    """Accuracy by type in each view, the most frequent type first; empty where the data set has no types."""
    intervals: dict[str, dict[str, Interval]] = {}
    for name, view in run.views.items():
        numbers, types = view.numbered(column)
        if not types:
            continue
        numbers = np.where(numbers < 0, len(types), numbers)
        for kind, interval in zip(
            [*types, NO_TYPE], bootstrap.means(view.accuracy, view.pictures, numbers, len(types) + 1), strict=True
        ):
            if interval.questions:
                intervals.setdefault(kind, {})[name] = interval
    rows = [
        {"type": kind, "views": {name: asdict(interval) for name, interval in of_views.items()}}
        for kind, of_views in intervals.items()
    ]
    return sorted(rows, key=lambda row: -max(view["questions"] for view in row["views"].values()))


def _calibration(view: View, column: str) -> Document | None:
    score = view.numbers(column)
    kept = view.answered & np.isfinite(score)
    if not kept.any():
        return None
    width, mass = equal_width_bins(score[kept], view.accuracy[kept]), equal_mass_bins(score[kept], view.accuracy[kept])
    return {
        "score": column,
        "questions": int(kept.sum()),
        "mean_score": float(score[kept].mean()),
        "accuracy": float(view.accuracy[kept].mean()),
        "ece_equal_width": width.expected_calibration_error,
        "ece_equal_mass": mass.expected_calibration_error,
        "maximum_calibration_error": width.maximum_calibration_error,
        "brier_score": brier_score(score[kept], view.accuracy[kept]),
        "bins": _bins(width),
        "equal_mass_bins": _bins(mass),
    }


def _bins(bins: ReliabilityBins) -> list[Document]:
    names = ("lower", "upper", "count", "confidence", "accuracy")
    columns = (getattr(bins, name).tolist() for name in names)
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def sureness(view: View) -> tuple[str, Floats] | None:
    """What tells how sure the model was: the confidence where there is one, else its own top probability."""
    for column in ("confidence", "top_probability"):
        score = view.numbers(column)
        if (view.answered & np.isfinite(score)).any():
            return column, score
    return None


def _risk_coverage(view: View) -> Document | None:
    found = sureness(view)
    if found is None:
        return None
    column, score = found
    kept = view.answered & np.isfinite(score)
    if kept.sum() < 2:
        return None
    return {"score": column} | risk_coverage_figures(score[kept], view.accuracy[kept])


def _answerability(view: View, right: Sequence[str | None]) -> Document | None:
    """How well unanswerable questions are found; None where people called no question unanswerable, or the model none.

    A question counts as unanswerable if that is what most people said. "Unanswerable" is the positive class.
    """
    truth = np.array([answer is not None and is_unanswerable(answer) for answer in right])
    kept = view.known("answerable") & np.array([answer is not None for answer in right])
    if not truth[kept].any():
        return None
    said = ~view.flags("answerable")
    found, missed = int((truth & said & kept).sum()), int((truth & ~said & kept).sum())
    wrongly, rightly = int((~truth & said & kept).sum()), int((~truth & ~said & kept).sum())
    return {
        "questions": int(kept.sum()),
        "unanswerable_found": found,
        "unanswerable_missed": missed,
        "answerable_called_unanswerable": wrongly,
        "answerable_called_answerable": rightly,
        "precision": found / (found + wrongly) if found + wrongly else None,
        "recall": found / (found + missed),
        "f1": 2 * found / (2 * found + wrongly + missed),
        "average_precision": _average_precision(truth, view.numbers("answerability"), kept),
    }


def _average_precision(truth: NDArray[np.bool_], answerability: Floats, kept: NDArray[np.bool_]) -> float | None:
    kept = kept & np.isfinite(answerability)
    if not truth[kept].any():
        return None
    with needs("scikit-learn"):
        from sklearn.metrics import average_precision_score
    return float(average_precision_score(truth[kept], 1 - answerability[kept]))


def _confusion(view: View, right: Sequence[str | None]) -> Document | None:
    table = confusion(right, view.texts("prediction"))
    if not table.answers:
        return None
    return {"rows": list(table.rows), "columns": list(table.columns), "counts": [list(row) for row in table.counts]}


def _timings(view: View) -> Document:
    """Milliseconds of the answers that were computed; an answer from the cache has no stages."""
    kept = ~view.flags("cached") & ~view.failed
    stages = {}
    for stage in STAGES:
        times = view.numbers(f"{stage}_ms")[kept]
        times = times[np.isfinite(times)]
        if times.size:
            median, p95 = np.quantile(times, [0.5, 0.95]).tolist()
            stages[stage] = {"questions": int(times.size), "median_ms": median, "p95_ms": p95}
    return {"stages": stages, "cached": int(view.flags("cached").sum())}
