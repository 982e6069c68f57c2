from __future__ import annotations

import pytest

from service.answers import match_key


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Two", "2"),
        ("Yes.", "yes"),
        ("don’t know", "dont know"),
        ("caf\u00e9", "cafe\u0301"),
        ("A.", "a"),
        ("The", "the"),
    ],
)
def test_alike(one, other):
    assert match_key(one) == match_key(other)


def test_what_the_normal_form_leaves_empty_stays_apart():
    keys = [match_key(text) for text in ("A", "an", "the", "!", "?", "...", "a the")]
    assert all(keys)
    assert len(set(keys)) == len(keys)


def test_only_blank_text_has_no_key():
    assert match_key(" \t\n") == ""
