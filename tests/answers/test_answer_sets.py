from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.answers import MAX_CHOICE_LENGTH, MAX_CHOICES, AnswerSet, is_unanswerable
from service.errors import Code, VQAError


def test_the_callers_spelling_and_order_are_kept_and_unanswerable_is_added():
    answer_set = AnswerSet.from_choices(["Pink!", " The Red one", "Two"])
    assert answer_set.spellings == ("Pink!", " The Red one", "Two", "unanswerable")
    assert answer_set.keys == ("pink", "red 1", "2", "unanswerable")
    assert answer_set.unanswerable == 3
    assert answer_set.name == "choices"


@pytest.mark.parametrize("named", ["unknown", "Can't tell.", "unsuitable", "I don't know"])
def test_members_of_the_family_that_the_caller_named_stay_the_callers(named):
    answer_set = AnswerSet.from_choices(["yes", named, "no"])
    assert is_unanswerable(named)
    assert answer_set.spellings == ("yes", named, "no", "unanswerable")
    assert answer_set.unanswerable == 3


def test_unanswerable_itself_is_the_implicit_member_in_the_callers_place_and_spelling():
    answer_set = AnswerSet.from_choices(["Unanswerable.", "yes"])
    assert answer_set.spellings == ("Unanswerable.", "yes")
    assert answer_set.unanswerable == 0


def test_choices_that_are_articles_or_marks_work():
    answer_set = AnswerSet.from_choices(["A", "B", "the", "!", "C"])
    assert answer_set.spellings[:5] == ("A", "B", "the", "!", "C")


def test_one_choice_is_enough():
    assert AnswerSet.from_choices(["yes"]).spellings == ("yes", "unanswerable")


@pytest.mark.parametrize(
    ("choices", "field", "says"),
    [
        ([], "choices", "0 choices"),
        ("yes", "choices", "list"),
        ([str(i) for i in range(MAX_CHOICES + 1)], "choices", "4,097"),
        (["yes", " "], "choices[1]", "blank"),
        (["yes", "\u200b\u00a0"], "choices[1]", "blank"),
        (["yes", 3], "choices[1]", "not a text"),
        (["yes", None], "choices[1]", "not a text"),
        (["x" * (MAX_CHOICE_LENGTH + 1)], "choices[0]", "201"),
        (["a\0b"], "choices[0]", "control"),
        (["red\nblue"], "choices[0]", "control"),
        (["ok", "\ud800"], "choices[1]", "surrogates"),
        (["yes", "no", "yes"], "choices[2]", "choices[0] and choices[2]"),
        (["no", "Two", "2"], "choices[2]", "choices[1] and choices[2]"),
        (["the cat", "Cat!"], "choices[1]", "choices[0] and choices[1]"),
        (["unanswerable"], "choices[0]", "unanswerable"),
    ],
)
def test_refused(choices, field, says):
    with pytest.raises(VQAError) as caught:
        AnswerSet.from_choices(choices)
    assert caught.value.code is Code.CHOICES_INVALID
    assert caught.value.field == field
    assert says in caught.value.detail


def test_the_limits_themselves_are_allowed():
    assert len(AnswerSet.from_choices([str(i) for i in range(MAX_CHOICES)])) == MAX_CHOICES + 1
    assert AnswerSet.from_choices(["x" * MAX_CHOICE_LENGTH]).spellings[0] == "x" * MAX_CHOICE_LENGTH


def test_errors_do_not_repeat_the_callers_text():
    with pytest.raises(VQAError) as caught:
        AnswerSet.from_choices(["secret", "Secret."])
    assert "ecret" not in caught.value.detail


def test_named_sets():
    assert AnswerSet.named("yes-no").spellings == ("yes", "no", "unanswerable")
    assert AnswerSet.named("numbers").spellings == (*map(str, range(21)), "unanswerable")
    colors = AnswerSet.named("colors")
    assert {"red", "blue", "gray", "black", "white"} < set(colors.spellings)
    assert colors.name == "colors"


@pytest.mark.parametrize("name", ["open", "colours", "", "../data/numbers"])
def test_unknown_name(name):
    with pytest.raises(VQAError, match="yes-no, numbers, colors") as caught:
        AnswerSet.named(name)
    assert caught.value.code is Code.UNKNOWN_ANSWER_SET
    assert caught.value.field == "answer_set"


def test_identity_is_of_the_meaning():
    one = AnswerSet.from_choices(["Yes", "no."])
    other = AnswerSet.named("yes-no")
    assert one.identity == other.identity
    assert one != other
    assert AnswerSet.from_choices(["no", "yes"]).identity != one.identity
    assert AnswerSet.from_choices(["yes", "no", "unanswerable"]).identity == one.identity
    assert hash(AnswerSet.from_choices(["Yes", "no."])) == hash(one)
    assert AnswerSet.from_choices(["Yes", "no."]) == one


def test_identity_says_which_member_is_unanswerable():
    keys = ("yes", "unanswerable")
    assert AnswerSet("x", keys, keys, 1).identity != AnswerSet("x", keys, keys, None).identity


def test_a_set_that_contradicts_itself_cannot_be_made():
    with pytest.raises(ValueError, match="no key twice"):
        AnswerSet("x", ("a", "b"), ("a", "a"), None)
    with pytest.raises(ValueError, match="unanswerable"):
        AnswerSet("x", ("a",), ("a",), 1)


@given(st.lists(st.text(max_size=30), min_size=1, max_size=6))
def test_any_texts_are_either_a_set_or_a_choices_error(choices):
    try:
        answer_set = AnswerSet.from_choices(choices)
    except VQAError as error:
        assert error.code is Code.CHOICES_INVALID  # noqa: PT017
    else:
        assert list(answer_set.spellings[: len(choices)]) == choices
        assert all(answer_set.keys)
