"""The figures of the embedded model's card, against values by hand and scikit-learn, and the card made of them."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from models.vilt.card import figures, with_figures
from models.vilt.measure import answerability, area_under_risk_coverage, exact, official, outside, people, trust
from service.evaluation.reporting.predictions import Run, read_run
from tests.support.runs import row, write_run

ROOT = Path(__file__).parents[2]


def test_the_area_is_the_mean_risk_over_all_coverages() -> None:
    """Most confident first, right, wrong, right, wrong: the risk is 0, 1/2, 1/3, 1/2."""
    confidence, accuracy = np.array([0.9, 0.8, 0.7, 0.6]), np.array([1.0, 0.0, 1.0, 0.0])
    assert area_under_risk_coverage(confidence, accuracy) == pytest.approx((0 + 1 / 2 + 1 / 3 + 1 / 2) / 4)
    shuffled = np.array([2, 0, 3, 1])
    assert area_under_risk_coverage(confidence[shuffled], accuracy[shuffled]) == pytest.approx(1 / 3)


def test_questions_of_equal_score_count_as_their_mean_over_all_orders() -> None:
    score, accuracy = np.array([0.5, 0.9, 0.5, 0.5, 0.1]), np.array([1.0, 0.3, 0.0, 0.6, 1.0])
    areas = []
    for tied in permutations([0, 2, 3]):
        ordered = accuracy[[1, *tied, 4]]
        areas.append(np.mean(1 - np.cumsum(ordered) / np.arange(1, 6)))
    assert area_under_risk_coverage(score, accuracy) == pytest.approx(np.mean(areas))


def test_a_constant_score_has_the_mean_risk() -> None:
    accuracy = np.random.default_rng(0).choice([0.0, 0.3, 1.0], 50)
    assert area_under_risk_coverage(np.full(50, 0.4), accuracy) == pytest.approx(1 - accuracy.mean())


def test_a_better_order_has_a_smaller_area() -> None:
    accuracy = np.sort(np.random.default_rng(1).choice([0.0, 0.6, 1.0], 40))
    rising = np.linspace(0, 1, 40)
    assert (
        area_under_risk_coverage(rising, accuracy) < 1 - accuracy.mean() < area_under_risk_coverage(-rising, accuracy)
    )


def _asked(name: str, said: list[str], answer: str | None, **other: object) -> dict:
    return row(name, prediction=answer, answers=said, **other)


UNSURE = ["unanswerable"] * 6 + ["red"] * 4
QUESTIONS = [
    # Seven of ten say yes.
    _asked("1", ["yes"] * 7 + ["no"] * 3, "yes", answer_type="yes/no", question_type="is there", confidence=0.8,
           answerable=True, answerability=0.9, top_probability=0.7),
    _asked("2", ["no"] * 10, "yes", answer_type="yes/no", question_type="is there", confidence=0.6,
           answerable=True, answerability=0.6, top_probability=0.9),
    _asked("3", ["2"] * 8 + ["3"] * 2, "3", answer_type="number", question_type="how many", confidence=0.4,
           answerable=True, answerability=0.7, top_probability=0.4),
    _asked("4", ["red"] * 9 + ["orange"], "Red.", answer_type="other", question_type="what", confidence=1.0,
           answerable=True, answerability=0.8, top_probability=0.5),
    _asked("5", UNSURE, "unanswerable", answer_type="other", question_type="what", confidence=0.5,
           answerable=False, answerability=0.3, top_probability=0.6),
    _asked("6", UNSURE, "red", answer_type="other", question_type="what", confidence=0.2,
           answerable=True, answerability=0.65, top_probability=0.3),
    _asked("7", ["red"] * 10, None, answer_type="other", question_type="what", confidence=0.1, abstained=True,
           answerable=None, answerability=0.5, hints=("outside_model_domain",)),
]  # fmt: skip
# Their VQA accuracies, each person left out in turn: 7, 0, 2, 9, 6 and 4 of 10 agree; of the last nothing was said.
ACCURACIES = [1.0, 0.0, 0.6, 1.0, 1.0, 1.0, 0.0]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    blank = [{**each, "view": "blank", "confidence": 0.3} for each in QUESTIONS]
    return read_run(write_run(tmp_path_factory.mktemp("runs") / "run", [*QUESTIONS, *blank]))


def test_people_by_hand(run: Run) -> None:
    found = people(run.views["sighted"])
    assert list(found) == ["all", "number", "other", "yes/no"]
    # A person among seven who agree finds six others: 1; among three, two: 2/3.
    yes_no = [(7 * 1 + 3 * 2 / 3) / 10, 1.0]
    number = [(8 * 1 + 2 * 1 / 3) / 10]
    other = [(9 * 1 + 0) / 10, (6 * 1 + 4 * 1) / 10, (6 * 1 + 4 * 1) / 10, 1.0]
    for name, shares in (("yes/no", yes_no), ("number", number), ("other", other), ("all", yes_no + number + other)):
        assert found[name]["a_person"] == round(100 * np.mean(shares), 2)
        assert found[name]["best_possible"] == 100.0
    assert found["number"]["majority"] == {"answer": "2", "accuracy": 100.0}
    # "red" and "unanswerable" are each the commonest answer of two; of equals the first. Red: 9, 4, 4 and 10 agree.
    assert found["other"]["majority"] == {"answer": "red", "accuracy": 100.0}
    assert found["all"]["majority"] == {"answer": "red", "accuracy": round(100 * 4 / 7, 2)}


def test_the_best_possible_is_less_where_people_differ(tmp_path: Path) -> None:
    said = [f"word {k // 2}" for k in range(10)]  # five words, two people each
    questions = [_asked("1", said, "word 1", confidence=0.5, answer_type="other")]
    found = people(read_run(write_run(tmp_path / "run", questions)).views["sighted"])
    # Two agree: (2 * 1/3 + 8 * 2/3) / 10. A person finds one other: 1/3.
    assert found["all"]["best_possible"] == 60.0
    assert found["all"]["a_person"] == 33.33


def test_the_official_accuracy_is_the_evaluators(run: Run) -> None:
    found = official(run)
    assert list(found) == ["sighted", "blank"]
    assert found["sighted"]["accuracy"] == pytest.approx(100 * np.mean(ACCURACIES), abs=0.01)
    assert list(run.views["sighted"].accuracy) == pytest.approx(ACCURACIES)


def test_trust_by_hand_and_by_the_definitions(run: Run) -> None:
    found = trust(run.views["sighted"])
    assert {name: each["questions"] for name, each in found.items()} == {"all": 7, "number": 1, "other": 4, "yes/no": 2}
    number = found["number"]
    assert number["confidence"] == {"brier": 0.04, "area_under_risk_coverage": 0.4, "ece": 0.2}  # 0.4 for 0.6
    assert number["constant"] == {"brier": 0.0, "area_under_risk_coverage": 0.4, "ece": 0.0}
    yes_no = found["yes/no"]
    assert yes_no["confidence"]["brier"] == pytest.approx(((0.8 - 1) ** 2 + 0.6**2) / 2)
    assert yes_no["softmax"]["brier"] == pytest.approx(((0.7 - 1) ** 2 + 0.9**2) / 2)
    assert yes_no["constant"]["brier"] == pytest.approx(0.25)
    # The right one first: risks 0 and 1/2; the wrong one first: 1 and 1/2; at random: a half throughout.
    areas = [yes_no[score]["area_under_risk_coverage"] for score in ("confidence", "softmax", "constant")]
    assert areas == [0.25, 0.75, 0.5]
    assert yes_no["confidence"]["ece"] == pytest.approx((abs(0.8 - 1) + 0.6) / 2)  # two bins of 15
    confidence = np.array([0.8, 0.6, 0.4, 1.0, 0.5, 0.2, 0.1])
    errors = (confidence - ACCURACIES) ** 2
    assert found["all"]["confidence"]["brier"] == pytest.approx(errors.mean(), abs=1e-5)
    assert found["all"]["constant"]["brier"] == pytest.approx(np.var(ACCURACIES), abs=1e-5)


def test_answerability_by_hand(run: Run) -> None:
    """Two of seven cannot be answered: 0.3 and 0.65 among 0.9, 0.6, 0.7, 0.8 and 0.5."""
    found = answerability(run.views["sighted"])
    assert found["questions"] == 7
    assert found["answerable_share"] == round(5 / 7, 4)
    assert found["unanswerable_share"] == round(2 / 7, 4)
    # Precision at each one found, from the best score down: answerable 1/1, 2/2, 3/3, 4/5, 5/6; unanswerable 1/1, 2/4.
    assert found["average_precision_answerable"] == round((1 + 1 + 1 + 4 / 5 + 5 / 6) / 5, 4)
    assert found["average_precision_unanswerable"] == round((1 + 2 / 4) / 2, 4)
    assert found["unanswerable_found"] == 0.5
    assert found["answerable_refused"] == 0.0


def test_what_is_outside_by_hand(run: Run) -> None:
    found = outside(run.views["sighted"])
    assert found["questions"] == found["pictures"] == 7
    assert found["outside_model_domain"] == round(1 / 7, 4)
    assert found["held_back_or_unanswerable"] == round(2 / 7, 4)
    assert found["confidence_above_half"] == round(3 / 7, 4)  # 0.8, 0.6, 1.0; one half is not above


def test_exact_by_hand(run: Run) -> None:
    assert exact(run.views["sighted"]) == {
        "questions": 7,
        "accuracy": round(100 * 4.6 / 7, 2),
        "by_kind": {
            "how many": {"questions": 1, "accuracy": 60.0},
            "is there": {"questions": 2, "accuracy": 50.0},
            "what": {"questions": 4, "accuracy": 75.0},
        },
    }


@pytest.fixture(scope="module")
def measured(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder after the command with every option."""
    folder = tmp_path_factory.mktemp("model")
    (folder / "model.onnx").write_bytes(b"x" * 3000)
    (folder / "parity.json").write_text(
        json.dumps({"largest_difference": 2.5e-6, "cases": {"a": 1e-6, "b": 2.5e-6}, "power": {"mask_all_ones": 0.25}})
    )
    (folder / "curve.csv").write_text("step,seconds,questions\n500,31,64000\n1000,170.4,128000\n")
    (folder / "MODEL_CARD.md").write_text("# A model\n\nBefore.\n\n## Figures\nold ones\n\n## Limits\nAfter.\n")
    int8 = tmp_path_factory.mktemp("int8")
    (int8 / "model.onnx").write_bytes(b"x" * 1000)
    (folder / "calibrated.json").write_text('{"model": "made-up"}')
    runs = [part for name in ("easy", "shapes", "real", "int8", "int8-easy") for part in (f"--{name}", str(run.folder))]
    command = ["-m", "models.vilt.measure", folder, *runs, "--int8-model", int8]
    done = subprocess.run(
        [sys.executable, *map(str, command), "--calibration", str(folder / "calibrated.json")],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


def test_the_command_writes_figures_and_card(measured: Path) -> None:
    report = json.loads((measured / "evaluation.json").read_text())
    assert report["int8"]["bytes"] == {"fp32": 3000, "int8": 1000}
    assert report["calibration"] == {"model": "made-up"}
    assert report["shapes_test"]["flagged"] == round(1 / 7, 4)
    card = (measured / "MODEL_CARD.md").read_text()
    assert card.startswith("# A model\n\nBefore.\n\n## Figures\n")
    assert card.endswith("\n## Limits\nAfter.\n")
    assert "old ones" not in card
    assert with_figures(card, report) == card


def test_the_card_has_every_section_and_its_figures(measured: Path) -> None:
    report = json.loads((measured / "evaluation.json").read_text())
    text = (measured / "MODEL_CARD.md").read_text()
    for heading in (
        "**Official easy-VQA test split**", "**Drawn test split**", "**Photographs**", "**int8 beside fp32**",
        "**ONNX Runtime against stock PyTorch**", "Answerability: average precision",
    ):  # fmt: skip
        assert heading in text, heading
    for line in (
        "| is there | 2 | 50.00 |",
        "| how many | 1 | 60.00 |",
        "| bytes | 3,000 | 1,000 |",
        "| yes/no | confidence | 0.20000 | 0.25000 | 0.4000 |",
        "| yes/no | softmax probability | 0.45000 | 0.75000 | 0.6000 |",
        "over\n2 cases of mixed sizes",
        "mask all ones 0.25.",
        "largest difference of a logit 2.5e-06",
        "**Training**: 1,000 steps, 128,000 questions, 3 minutes",
        "14.3 % held back as `outside_model_domain`",
    ):
        assert line in text, line
    # Every row of a table has as many cells as its head.
    tables = [part.splitlines() for part in text.split("\n\n") if part.lstrip().startswith("|")]
    assert len(tables) == 4
    for table in tables:
        assert len({line.count("|") for line in table if line}) == 1, table
    # What was not measured is left out.
    for name, heading in (
        ("photographs", "**Photographs**"),
        ("parity", "**ONNX"),
        ("training", "**Training"),
        ("int8", "**int8"),
    ):
        assert heading not in figures({key: value for key, value in report.items() if key != name})
    assert "|" not in figures({"photographs": report["photographs"]})


def test_a_card_without_a_place_for_figures_is_refused() -> None:
    with pytest.raises(ValueError, match="## Figures"):
        with_figures("# A model\n\nNo figures.\n", {})
