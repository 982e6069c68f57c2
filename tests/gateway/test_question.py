"""What counts as a question."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.errors import Code, VQAError
from service.gateway import clean_text


def code_of(text: str, limit: int = 100) -> Code:
    with pytest.raises(VQAError) as refused:
        clean_text(text, limit)
    assert refused.value.field == "question"
    return refused.value.code


@pytest.mark.parametrize(
    "text", ["", " ", "\t\n\r", "\u00a0\u2003", "\u200b", "\u200d\ufeff\u2060", "\u3164", "\u2800", "\u0301"]
)
def test_nothing_visible_is_empty(text: str) -> None:
    assert code_of(text) is Code.QUESTION_EMPTY


@pytest.mark.parametrize("text", ["a\x00", "\x07bell", "a\x7f", "\x9b1m", "\ud83d", "x\udfff"])
def test_what_is_no_text_is_refused(text: str) -> None:
    assert code_of(text) is Code.QUESTION_INVALID


def test_too_long() -> None:
    assert clean_text("x" * 100, 100) == "x" * 100
    assert code_of("x" * 101) is Code.QUESTION_TOO_LONG
    assert code_of("x" * 1_000_000) is Code.QUESTION_TOO_LONG
    assert clean_text("x" + " " * 250 + "y", 100) == "x y", "white space does not count"


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [("  is\tit\n red? ", "is it red?"), ("¿qué color?", "¿qué color?"), ("👁️ ?", "👁️ ?"), ("?", "?"), ("क्या", "क्या")],
)
def test_text_stays_text(text: str, cleaned: str) -> None:
    assert clean_text(text, 100) == cleaned


@given(st.text(max_size=60))
def test_any_text_is_cleaned_or_refused(text: str) -> None:
    try:
        cleaned = clean_text(text, 50)
    except VQAError:
        return
    assert cleaned
    assert cleaned == clean_text(cleaned, 50)
    cleaned.encode("utf-8")
