"""WUPS: similarities that nltk and the paper publish, and the set score."""

from __future__ import annotations

from pathlib import Path

import pytest

from service.scoring.wups import Wups, dirac, items, set_score


@pytest.fixture(scope="module")
def wups() -> Wups:
    try:
        return Wups()
    except LookupError as error:
        pytest.skip(str(error))


def test_words_as_published(wups: Wups) -> None:
    """Malinowski and Fritz 2014 give two decimals for the pairs of things; dog and cat are in nltk's documentation."""
    wup = wups.measure(0.0)
    assert wup("dog", "cat") == pytest.approx(0.857142857, abs=1e-9)
    assert round(wup("curtain", "blinds"), 2) == 0.94
    assert round(wup("stove", "fire_extinguisher"), 2) == 0.82


def test_below_the_threshold_a_tenth_counts(wups: Wups) -> None:
    assert wups.measure(0.9)("dog", "cat") == 0.1 * wups.measure(0.0)("dog", "cat")
    assert wups.measure(0.9)("curtain", "blinds") == wups.measure(0.0)("curtain", "blinds")


def test_words_that_wordnet_does_not_know(wups: Wups) -> None:
    wup = wups.measure(0.0)
    assert wup("no_such_word", "cup") == wup("", "cup") == 0.0
    assert wup("no_such_word", "no_such_word") == 1.0


def test_without_wordnet_it_says_what_to_install(tmp_path: Path) -> None:
    import nltk

    if any((Path(folder) / "corpora" / "wordnet").exists() for folder in nltk.data.path):
        pytest.skip("nltk has WordNet of its own")
    with pytest.raises(LookupError, match="wordnet-base"):
        Wups(tmp_path)


@pytest.mark.parametrize(
    ("truth", "answer", "expected"),
    [
        ("book, chair", "chair,book", 1.0),
        ("book,book", "book", 1.0),
        ("book", "book,chair", 0.0),
        ("book,chair", "book", 0.0),
        ("", "", 1.0),
    ],
)
def test_sets_of_words(truth: str, answer: str, expected: float) -> None:
    """As the program's own comments say: {book,book} is {book,book}, and {book,chair} is {chair,book}."""
    assert set_score(items(truth), items(answer), dirac) == expected


def test_the_worse_direction_counts() -> None:
    alike = {("a", "b"): 0.5, ("b", "a"): 0.5, ("a", "a"): 1.0}
    assert set_score(["a", "a"], ["a", "b"], lambda one, other: alike[one, other]) == 0.5
