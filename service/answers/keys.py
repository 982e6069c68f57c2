"""The key by which two spellings of an answer count as the same answer."""

from __future__ import annotations

import unicodedata

from service.answers.normalise import normalise, process_punctuation, strip_answer

_APOSTROPHES = str.maketrans({"\u2019": "'", "\u2018": "'", "\u02bc": "'"})


def match_key(text: str) -> str:
    """The official normal form, made usable for matching.

    Composed and decomposed accents are one letter, and the curly apostrophe that phones type is a straight
    one. Where the normal form is empty the text says more than the form does ("A" as the letter of a choice,
    "the", "!"), so it is kept, in small letters.

    Returns:
        A key that is empty only if the text is blank.
    """
    text = unicodedata.normalize("NFC", text).translate(_APOSTROPHES)
    key = normalise(text)
    if key:
        return key
    stripped = strip_answer(text)
    return " ".join(process_punctuation(stripped).casefold().split()) or stripped.casefold()
