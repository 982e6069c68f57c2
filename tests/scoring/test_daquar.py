"""DAQUAR against calculate_wups.py, whose functions gave the numbers below for these ten questions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from service.errors import DataError
from service.scoring import wups
from service.scoring.daquar import read_answers, score
from service.scoring.scores import Inputs, Scores
from tests.support.golden import write

TRUTH = ["curtain", "table, lamp", "chair", "2", "stove", "red", "sofa,pillow", "night_stand", "cup", "person"]
ANSWERS = ["blinds", "lamp ,table", "stool", "3", "fire_extinguisher", "blue", "sofa", "cabinet", "xyzzy", "window"]
EXPECTED = {"accuracy": 0.1, "wups@0.9": 0.3211227824463118, "wups@0.0": 0.6541690009337068}
OFFICIAL = "".join(f"what is in the image{number} ?\n{answer}\n" for number, answer in enumerate(TRUTH))


def scored(folder: Path, annotations: str, results: Any) -> Scores:
    return score(Inputs(annotations=write(folder / "a.txt", annotations), results=write(folder / "r.txt", results)))


def has_wordnet() -> bool:
    try:
        wups.Wups()
    except LookupError:
        return False
    return True


@pytest.mark.skipif(not has_wordnet(), reason="WordNet is not installed")
def test_equals_the_original(tmp_path: Path) -> None:
    scores = scored(tmp_path, OFFICIAL, "\n".join(ANSWERS) + "\n\n")
    assert scores.metrics["scores"] == EXPECTED
    assert scores.accuracy == 10.0
    assert scores.metrics["wups"] == {"0.9": 32.11, "0.0": 65.42}
    assert scores.official[:3] == ("standard Accuracy is used", "exact final score: 0.1", "final score is 10.00%")
    assert scores.official[3] == "soft WUPS at 0.90 is used"
    assert scores.notes == ()


def test_answers_alone_and_results_as_json_are_the_same(tmp_path: Path) -> None:
    rows = [{"question_id": index, "answer": answer} for index, answer in enumerate(ANSWERS)]
    one = scored(tmp_path, "\n".join(TRUTH), list(reversed(rows)))
    other = scored(tmp_path, OFFICIAL, "\n".join(ANSWERS))
    assert one == other
    assert one.per_question == {index: float(index == 1) for index in range(10)}


def test_without_wordnet_wups_is_null(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wups, "DEBIAN_WORDNET", tmp_path)
    scores = scored(tmp_path, OFFICIAL, "\n".join(ANSWERS))
    if scores.metrics["wups"] is not None:
        pytest.skip("nltk has WordNet of its own")
    assert scores.accuracy == 10.0
    assert "wordnet-base" in scores.notes[0]
    assert len(scores.official) == 3


@pytest.mark.parametrize(
    ("results", "match"),
    [
        ("\n".join(ANSWERS[:9]), "9 answers to the 10 questions"),
        ("\n".join([*ANSWERS[:3], "", *ANSWERS[3:]]), "line 4: the line is empty"),
        ("\n", "the file is empty"),
        ([{"question_id": 0, "answer": "cup"}], "9 of 10 have no answer"),
    ],
)
def test_results_that_do_not_fit_are_refused(tmp_path: Path, results: Any, match: str) -> None:
    with pytest.raises(DataError, match=match):
        scored(tmp_path, OFFICIAL, results)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("what is in the image1 ?\nwhat is in the image2 ?\ncup\n", "line 2: expected an answer"),
        ("what is in the image1 ?\ncup\ntable\nchair\n", "line 3: expected a question"),
        ("what is in the image1 ?\ncup\nwhat is in the image2 ?\n", "line 3: the last question has no answer"),
    ],
)
def test_questions_and_answers_out_of_turn_are_refused(tmp_path: Path, text: str, match: str) -> None:
    with pytest.raises(DataError, match=match):
        read_answers(write(tmp_path / "a.txt", text))
