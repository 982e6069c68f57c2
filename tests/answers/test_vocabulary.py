from __future__ import annotations

import numpy as np
import pytest

from service.answers import AnswerSet, Vocabulary

LABELS = ["yes", "no", "2", "two", "Two.", "unknown", "can't tell", "unsuitable", "red", "", "the"]


@pytest.fixture
def vocabulary():
    return Vocabulary(LABELS)


def test_the_default_set_merges_spellings_and_the_family(vocabulary):
    default = vocabulary.default_set
    assert default.spellings == ("yes", "no", "2", "red", "the", "unanswerable")
    assert default.unanswerable == 5
    assert default.name == "vocabulary"
    assert vocabulary.project(default).index.tolist() == [0, 1, 2, 2, 2, 5, 5, 5, 3, -1, 4]
    assert vocabulary.default_set.unanswerable is not None


def test_a_vocabulary_without_the_family_cannot_say_unanswerable():
    vocabulary = Vocabulary(["yes", "no"])
    assert vocabulary.default_set.spellings == ("yes", "no")
    assert vocabulary.default_set.unanswerable is None
    assert vocabulary.default_set.unanswerable is None
    assert not vocabulary.project(AnswerSet.named("yes-no")).reaches(2)


def test_choices_match_by_normal_form_and_the_family_goes_to_unanswerable(vocabulary):
    answer_set = AnswerSet.from_choices(["RED!", "Two", "Yes."])
    assert vocabulary.covers(answer_set) == []
    assert vocabulary.project(answer_set).index.tolist() == [2, -1, 1, 1, 1, 3, 3, 3, 0, -1, -1]


def test_a_family_member_that_the_caller_named_is_the_callers(vocabulary):
    answer_set = AnswerSet.from_choices(["yes", "Unknown"])
    assert vocabulary.project(answer_set).index.tolist() == [0, -1, -1, -1, -1, 1, 2, 2, -1, -1, -1]


def test_unanswerable_named_by_the_caller_takes_the_family(vocabulary):
    answer_set = AnswerSet.from_choices(["Unanswerable", "yes"])
    assert vocabulary.covers(answer_set) == []
    assert vocabulary.project(answer_set).index.tolist()[5:8] == [0, 0, 0]


def test_what_is_not_covered_is_named_by_index(vocabulary):
    assert vocabulary.covers(AnswerSet.from_choices(["maroon", "yes", "not sure", "2"])) == [0, 2]


def test_labels_and_their_parts_are_consistent(vocabulary):
    for choices in (["red"], ["no", "red", "yes"], ["maroon"]):
        p = vocabulary.project(AnswerSet.from_choices(choices))
        assert sorted([*p.inside.tolist(), *p.outside.tolist()]) == list(range(len(LABELS)))
        assert (p.index[p.outside] == -1).all()
        ends = [*p.starts[1:].tolist(), len(p.inside)]
        for member, start, end in zip(p.members, p.starts, ends, strict=True):
            assert start < end
            assert (p.index[p.inside[start:end]] == member).all()
        with pytest.raises(ValueError, match="read-only"):
            p.index[0] = 1


def test_projections_are_kept_and_their_number_is_bounded(vocabulary):
    first = AnswerSet.from_choices(["yes", "no"])
    kept = vocabulary.project(first)
    assert vocabulary.project(AnswerSet.from_choices(["Yes!", "No"])) is kept
    for i in range(300):
        vocabulary.project(AnswerSet.from_choices(["yes", f"word{i}"]))
    again = vocabulary.project(first)
    assert again is not kept
    assert np.array_equal(again.index, kept.index)
    assert vocabulary.project(vocabulary.default_set) is vocabulary.project(vocabulary.default_set)


def test_the_projections_used_last_are_kept(vocabulary):
    first = AnswerSet.from_choices(["yes", "no"])
    kept = vocabulary.project(first)
    for i in range(300):
        vocabulary.project(AnswerSet.from_choices(["yes", f"word{i}"]))
        assert vocabulary.project(first) is kept


def test_a_group_is_of_the_family_whichever_spelling_comes_first():
    for labels in (["unknown", "un.known"], ["un.known", "unknown"]):
        assert Vocabulary(labels).default_set.spellings == ("unanswerable",)


@pytest.mark.parametrize("labels", [[], ["", " "]])
def test_a_vocabulary_needs_an_answer(labels):
    with pytest.raises(ValueError, match="label"):
        Vocabulary(labels)
