"""Against 8,321 texts as the original code under Python 2.7.18 gave them, and the quirks one by one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.answers import normalise, process_digits_articles, process_punctuation, strip_answer


def test_every_stage_equals_the_original_on_every_golden_text(golden):
    rows = golden("vqa_norm_golden.jsonl.gz")
    assert len(rows) > 8000
    wrong = []
    for row in rows:
        stripped = strip_answer(row["text"])
        punct = process_punctuation(stripped)
        got = (stripped, punct, process_digits_articles(punct), normalise(row["text"]))
        if got != (row["stripped"], row["punct"], row["normalized"], row["normalized"]):
            wrong.append((row, got))
    assert not wrong, wrong[:3]


def test_predictions_of_the_golden_questions(golden):
    rows = golden("vqa_golden.jsonl.gz")
    assert len(rows) > 4500
    assert [normalise(row["prediction"]) for row in rows] == [row["normalized_prediction"] for row in rows]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("." * 40, "." * 8),  # only 32 full stops go
        ("3.5 m.", "3.5 m"),  # a full stop before a digit stays
        ("a.b", "ab"),
        ("well-known", "well known"),  # a mark between letters becomes a space
        ("well- known", "well known"),  # and is deleted beside a space
        ("x-ray, 1,000", "xray 1000"),  # and everywhere, if a comma stands between two digits
        ("somebody'd", "somebodyd"),  # the table's odd entry
        ("Dont", "don't"),
        ("none of ten", "0 of 10"),
        ("eleven", "eleven"),
        ("the A an", ""),
        ("\u180ea\u180edog\u180e", "dog"),  # a space in Unicode 5.2
        ("ΟΔΟΣ", "οδοσ"),  # no final sigma
        ("İstanbul", "istanbul"),  # one letter for one
        ("\u1c90", "\u1c90"),  # a capital of Unicode 11
        ("\U00010400", "\U00010428"),  # a capital beyond 16 bits (wide build)
        ("\ud800 Dog.", "\ud800 dog"),  # a lone surrogate is only a letter
        ("१,२", "१ २"),  # digits in the patterns are ASCII
    ],
)
def test_quirks_of_the_original(text, expected):
    assert normalise(text) == expected


def test_the_codes_hold_the_same_chain_and_no_other_is_known():
    assert normalise("The Two dogs.", "2016") == normalise("The Two dogs.", "2021") == "2 dogs"
    with pytest.raises(ValueError, match="2021, 2016"):
        normalise("dog", "always")


@given(st.text(alphabet=st.characters(), max_size=300))
def test_any_text_goes_through(text):
    result = normalise(text)
    assert result == " ".join(result.split())
    assert not set(result.split()) & {"a", "an", "the"}
