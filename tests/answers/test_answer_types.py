from __future__ import annotations

import pytest

from service.answers import answer_type


# Types of VQA v2's own annotations for these answers.
@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("yes", "yes/no"),
        ("no", "yes/no"),
        ("2", "number"),
        ("10:55", "number"),
        ("10000 feet", "number"),
        ("92.8", "number"),
        ("05/29/2013", "number"),
        ("1st", "other"),
        ("no 1", "other"),
        ("pine and 3rd", "other"),
        ("red", "other"),
        ("yes it is", "other"),
    ],
)
def test_type(key, expected):
    assert answer_type(key) == expected
