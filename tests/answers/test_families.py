from __future__ import annotations

import pytest

from service.answers import UNANSWERABLE, is_unanswerable


def test_the_labels_of_the_case(case):
    rows = case("answerability_labels.jsonl")
    assert len(rows) > 10
    assert {row["label"]: not is_unanswerable(row["label"]) for row in rows} == {
        row["label"]: row["answerable"] for row in rows
    }


# The sentences of this kind among the 3,129 answers of VQA v2, read through by hand.
VQA_V2 = [
    "don't know", "i don't know", "unknown", "unclear", "can't tell", "not possible", "can't see it", "not sure",
    "cannot tell", "can't see", "unsure",
]  # fmt: skip


@pytest.mark.parametrize("label", [UNANSWERABLE, *VQA_V2, "idk", "not visible"])
def test_members_in_any_case_and_punctuation(label):
    for spelling in (
        label,
        label.upper(),
        f" {label.capitalize()}. ",
        label.replace("'", ""),
        label.replace("'", "’"),
        f'"{label}"!',
    ):
        assert is_unanswerable(spelling), spelling


@pytest.mark.parametrize(
    "label",
    [
        "yes", "no", "none", "nothing", "nowhere", "maybe", "0", "answerable", "unknown brand", "not at all",
        "not likely", "not high", "know", "tell time", "clear", "blurry", "dark", "image", "", "!", "the",
        "unanswerable question mark", "do not enter", "sure", "possible",
    ],
)  # fmt: skip
def test_answers_are_no_members(label):
    assert not is_unanswerable(label)
