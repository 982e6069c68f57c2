"""Predictions as what is fitted to, and the calibration that comes of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from service.answers import Calibration, Evidence, ScoreKind
from service.errors import DataError
from service.evaluation.calibrating.fit import MIN_OF_EACH, MIN_QUESTIONS, fit
from service.evaluation.calibrating.samples import Samples, read_samples
from service.images import STATISTICS, picture_statistics
from tests.support.runs import row, write_run

CANDIDATES = (("red", 0.5), ("unanswerable", 0.25), ("blue", 0.125))


def asked(question_id: str, people: Sequence[str], candidates: Any = CANDIDATES, **more: Any) -> dict[str, Any]:
    """A question, answered by people and by a model."""
    given = {"answers": list(people), "candidates": candidates, "off_set": 0.2, "model": "m", "revision": "r"}
    said = candidates[0][0] if candidates else "red"
    return row(question_id, **{"prediction": said} | given | more)


def read(tmp_path: Path, *rows: dict[str, Any]) -> Samples:
    return read_samples(write_run(tmp_path / "run", rows))


def test_evidence_of_what_was_predicted(tmp_path: Path) -> None:
    samples = read(tmp_path, asked("a", ["red"] * 10))
    [evidence] = samples.evidence
    assert evidence.masses == pytest.approx((0.4, 0.2, 0.1))  # 0.8 of each share lies in the set
    assert (evidence.top, evidence.unanswerable) == pytest.approx((0.4, 0.2))
    assert evidence.second == pytest.approx(0.3)  # the rest, which is more than blue
    expected = picture_statistics(Image.new("RGB", (8, 8), (200, 30, 30)))
    assert evidence.statistics == pytest.approx(expected)
    assert tuple(samples.statistics[0]) == STATISTICS
    assert (len(samples), samples.off_set_known, samples.models) == (1, True, frozenset({("m", "r")}))


@pytest.mark.parametrize(
    ("people", "accuracy", "answerable"),
    [
        (["red"] * 10, 1.0, True),
        (["Red."] * 3 + ["blue"] * 7, 0.9, True),  # the mean over ten subsets of nine
        (["red"] + ["blue"] * 9, 0.3, True),
        (["blue"] * 10, 0.0, True),
        (["unanswerable"] * 4 + ["red"] * 6, 1.0, True),
        (["unanswerable"] * 5 + ["red"] * 5, 1.0, False),  # half of them is not less than half
        (["can't tell", "Unknown"] * 5, 0.0, False),
        (["red"], 1.0, True),  # one right answer: exact
        (["the red"], 1.0, True),
        (["blue"], 0.0, True),
        (["unsure"], 0.0, False),
    ],
)
def test_what_the_best_answer_is_worth(tmp_path: Path, people, accuracy, answerable) -> None:
    samples = read(tmp_path, asked("a", people))
    assert samples.accuracy.tolist() == pytest.approx([accuracy])
    assert samples.answerable.tolist() == [answerable]


def test_the_best_answer_is_the_best_answerable_one(tmp_path: Path) -> None:
    candidates = (("unanswerable", 0.9), ("2", 0.06), ("red", 0.04))
    only = (("unanswerable", 1.0),)
    samples = read(tmp_path, asked("a", ["2"] * 10, candidates), asked("b", ["2"] * 10, only))
    assert samples.accuracy.tolist() == [1.0, 0.0]
    assert samples.kinds[0] == "number"
    assert [evidence.top for evidence in samples.evidence] == pytest.approx([0.06 * 0.8, 0.0])


def test_types_are_of_the_answer(tmp_path: Path) -> None:
    given = [asked(name, ["x"] * 10, ((name, 0.9), ("other", 0.1))) for name in ("yes", "No.", "3", "red")]
    assert [str(kind) for kind in read(tmp_path, *given).kinds] == ["yes/no", "yes/no", "number", "other"]


def test_questions_of_one_picture_stay_together(tmp_path: Path) -> None:
    rows = [asked(str(k), ["red"] * 10, image=f"{k // 3}.png") for k in range(9)]
    samples = read(tmp_path, *rows)
    assert samples.pictures.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert len(samples.statistics) == 3


def test_answers_that_were_held_back_count(tmp_path: Path) -> None:
    samples = read(tmp_path, asked("a", ["red"] * 10, prediction=None, abstained=True))
    assert samples.accuracy.tolist() == [1.0]


def test_scores_without_a_rest_are_seen(tmp_path: Path) -> None:
    samples = read(tmp_path, asked("a", ["red"] * 10), asked("b", ["red"] * 10, off_set=None))
    assert not samples.off_set_known
    assert samples.evidence[1].masses == pytest.approx((0.5, 0.25, 0.125))
    assert samples.evidence[1].rest == 0.0


def test_blind_views_are_left_out(tmp_path: Path) -> None:
    people = ["red"] * 10
    samples = read(tmp_path, asked("a", people), asked("a", people, (("blue", 0.9),), view="blank"))
    assert len(samples) == 1
    assert samples.accuracy.tolist() == [1.0]


def test_each_picture_is_told_of_once(tmp_path: Path) -> None:
    seen: list[int] = []
    read_samples(write_run(tmp_path / "run", [asked(str(k), ["red"] * 10) for k in range(5)]), seen.append)
    assert seen == [1] * 5


def test_predictions_without_candidates_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"question a.*candidates|candidates.*question a"):
        read(tmp_path, asked("a", ["red"] * 10, ()))


def test_a_picture_that_is_gone_or_broken_is_named(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", [asked("a", ["red"] * 10)])
    picture = tmp_path / "run-data" / "a.png"
    picture.write_bytes(b"no picture")
    with pytest.raises(DataError, match=r"a\.png"):
        read_samples(folder)
    picture.unlink()
    with pytest.raises(DataError, match=r"a\.png.*cannot be read"):
        read_samples(folder)


def made(n: int, *, unanswerable: int = 0, kinds: Sequence[str] = ("other",), pictures: int = 40) -> Samples:
    """Questions whose best answer is right as often as its mass says; the last ones cannot be answered."""
    rng = np.random.default_rng(0)
    statistics = [dict(zip(STATISTICS, rng.normal(size=8).tolist(), strict=True)) for _ in range(pictures)]
    answerable = np.arange(n) < n - unanswerable
    evidence = []
    for k in range(n):
        nothing = float(rng.beta(1, 8) if answerable[k] else rng.beta(8, 1))
        top = float(rng.uniform(0.5, 1) * (1 - nothing))
        masses = tuple(sorted((top, nothing, 1 - top - nothing), reverse=True))
        evidence.append(Evidence(masses, top, 1 - top - nothing, nothing, statistics[k % pictures]))
    right = rng.uniform(size=n) < np.array([e.top for e in evidence])
    return Samples(
        evidence=evidence,
        kinds=[kinds[k % len(kinds)] for k in range(n)],
        accuracy=(right & answerable).astype(np.float64),
        answerable=answerable,
        pictures=np.arange(n) % pictures,
        statistics=statistics,
        off_set_known=True,
        models=frozenset({("m", "r")}),
    )


@pytest.mark.parametrize(("unanswerable", "fitted"), [(0, False), (MIN_OF_EACH - 1, False), (MIN_OF_EACH, True)])
def test_answerability_needs_questions_of_both_kinds(unanswerable: int, fitted: bool) -> None:
    body, report = fit(made(150, unanswerable=unanswerable), "text", ScoreKind.SOFTMAX)
    assert ("answerability" in body) is fitted is ("answerability" in report["chosen"])
    assert report["unanswerable"] == unanswerable
    calibration = Calibration.load(body)
    assert (calibration.fitted_on, calibration.questions) == ("text", 150)
    assert calibration.applies_to(ScoreKind.SOFTMAX)
    assert not calibration.applies_to(ScoreKind.SIGMOID)
    if fitted:
        sure, not_sure = (Evidence((0.95, 0.04), *rest) for rest in ((0.95, 0.01, 0.04), (0.04, 0.01, 0.95)))
        statistics = dict.fromkeys(STATISTICS, 0.0)
        told = [
            calibration.answerability(Evidence(e.masses, e.top, e.second, e.unanswerable, statistics))
            for e in (sure, not_sure)
        ]
        assert told[0] > 0.9
        assert told[1] < 0.1


def test_few_pictures_give_no_domain_and_many_do() -> None:
    body, report = fit(made(60, pictures=40), "text", ScoreKind.SOFTMAX)
    assert "domain" not in body
    assert report["domain"]["pictures"] == 40
    body, _ = fit(made(60, pictures=60), "text", ScoreKind.SOFTMAX)
    assert Calibration.load(body).domain is not None


def test_a_rare_type_takes_the_default_map() -> None:
    # of 4 questions 3 are "other": 210 of 280, and 70 numbers
    assert 70 < MIN_QUESTIONS <= 210
    body, report = fit(made(280, kinds=["other", "other", "other", "number"]), "text", ScoreKind.SOFTMAX)
    assert set(body["confidence"]["maps"]) == {"default", "other"} == set(report["chosen"])
    confidence = Calibration.load(body).confidence
    evidence = made(1).evidence[0]
    assert confidence(evidence, "number") == confidence(evidence, "yes/no") == confidence.maps["default"].of(evidence)
    assert confidence(evidence, "other") == confidence.maps["other"].of(evidence)


def test_scores_that_are_no_distribution_have_no_temperature() -> None:
    samples = made(60)
    _, report = fit(samples, "text", ScoreKind.SOFTMAX)
    assert "temperature" in report["cross_validated_brier"]["default"]
    _, report = fit(Samples(**{**vars(samples), "off_set_known": False}), "text", ScoreKind.SIGMOID)
    assert "temperature" not in report["cross_validated_brier"]["default"]


def test_where_no_question_would_be_answered_all_are_fitted_to() -> None:
    samples = made(30, unanswerable=30)
    body, _ = fit(samples, "text", ScoreKind.SOFTMAX)
    assert Calibration.load(body).confidence is not None
