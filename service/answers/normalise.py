"""The official VQA answer normalisation, character for character.

Source: GT-Vision-Lab/VQA, PythonEvaluationTools/vqaEvaluation/vqaEval.py, the file that published VQA scores
come from. This is our own code for the same function. Where it differs from what one would write today, that
is on purpose:

- The original runs under Python 2.7, and this follows Python 2.7 on a wide (UCS-4) build, not the ports of it
  to Python 3: digits in its patterns are ASCII digits, and letters are lower-cased one by one by Unicode 5.2,
  so `ΟΔΟΣ` becomes `οδοσ` (a port gives `οδος`) and a capital dotted I becomes a plain `i`. Published scores
  and the evaluation servers are the original's; a port differs from it on about 1.5 % of deliberately hard
  texts and on hardly any real one.
- `re.UNICODE` is passed where `sub` expects a count, so only the first 32 full stops are removed.
- The look-behind in the full-stop pattern is a look-ahead by mistake and always holds: a full stop is removed
  unless a digit follows it.
- Whether a mark is deleted or becomes a space depends on the untouched text: deleted if it stands beside a
  space anywhere in it, or if any comma stands between two digits.

The codes "2016" and "2021" hold the same chain. They differ only in when a scorer applies it (see
`accuracy`).
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Final

CODES: Final = ("2021", "2016")

PUNCTUATION: Final = ';/[]"{}()=+\\_-><@`,?!'
_HAS_PUNCTUATION: Final = re.compile("[" + re.escape(PUNCTUATION) + "]")
_DIGIT_COMMA_DIGIT: Final = re.compile("[0-9],[0-9]")
_FULL_STOP: Final = re.compile(r"\.(?![0-9])")
_FULL_STOPS_REMOVED: Final = 32  # re.UNICODE, in the place of a count

# What Python 2.7 takes for white space: today's, and the Mongolian vowel separator, a space until
# Unicode 6.3.
_SPACE_OF_OLD: Final = "\u180e"
_SPACES: Final = (
    "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u180e\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008"
    "\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
# Capitals that came after Unicode 5.2, or whose small letter did (Cherokee): Python 2.7 leaves them
# as they are.
_CAPITALS_OF_LATER: Final = re.compile(
    "[\u037f\u0526\u0528\u052a\u052c\u052e\u10c7\u10cd\u13a0-\u13f5\u1c89\u1c90-\u1cbf\u2c2f\u2cf2\ua660\ua698\ua69a"
    "\ua78d\ua790-\ua7dc\ua7f5\U000104b0-\U000104d3\U00010570-\U00010595\U00010c80-\U00010cb2\U00010d50-\U00010d65"
    "\U000118a0-\U000118bf\U00016e40-\U00016e5f\U0001e900-\U0001e921]"
)

NUMBER_WORDS: Final = {
    "none": "0",
    "zero": "0",
    "one": "1",
    "two": "2",
    "three": "3",
    "four": "4",
    "five": "5",
    "six": "6",
    "seven": "7",
    "eight": "8",
    "nine": "9",
    "ten": "10",
}
ARTICLES: Final = frozenset({"a", "an", "the"})

_CACHED_LENGTH: Final = 200  # longer texts are no answers; they are normalised and not kept
_CACHED_TEXTS: Final = 16_384


def _read_contractions() -> dict[str, str]:
    text = (Path(__file__).parent / "data" / "contractions.txt").read_text(encoding="utf-8")
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    return dict(line.split("\t") for line in lines)


CONTRACTIONS: Final = _read_contractions()


def strip_answer(text: str) -> str:
    """First stage: newline and tab become a space; white space around the text goes."""
    return text.replace("\n", " ").replace("\t", " ").strip(_SPACES)


def process_punctuation(text: str) -> str:
    """Second stage (`processPunctuation`): 21 marks deleted or made spaces, up to 32 full stops removed."""
    out = text
    if found := set(_HAS_PUNCTUATION.findall(text)):
        delete_all = _DIGIT_COMMA_DIGIT.search(text) is not None
        out = text.translate({ord(p): "" if delete_all or f"{p} " in text or f" {p}" in text else " " for p in found})
    return _FULL_STOP.sub("", out, count=_FULL_STOPS_REMOVED)


def process_digits_articles(text: str) -> str:
    """Third stage (`processDigitArticle`): small letters, number words, articles, contractions."""
    words = (NUMBER_WORDS.get(word, word) for word in _lower(text).replace(_SPACE_OF_OLD, " ").split())
    return " ".join(CONTRACTIONS.get(word, word) for word in words if word not in ARTICLES)


def normalise(text: str, code: str = "2021") -> str:
    """An answer in the official normal form, as both official codes give it.

    Args:
        text: any string, lone surrogates included.
        code: "2021" or "2016"; the chain is the same in both.

    Returns:
        The normal form; empty where nothing is left (`"the"`, `"!"`).

    Raises:
        ValueError: `code` is neither.
    """
    if code not in CODES:
        raise ValueError(f"code is {code!r}; it must be one of {', '.join(CODES)}")
    return _cached(text) if len(text) <= _CACHED_LENGTH else _chain(text)


def _chain(text: str) -> str:
    return process_digits_articles(process_punctuation(strip_answer(text)))


_cached = lru_cache(maxsize=_CACHED_TEXTS)(_chain)


def _lower(text: str) -> str:
    """Lower case as Python 2.7 does it: letter by letter, with the letters of Unicode 5.2."""
    if text.isascii():
        return text.lower()
    return "".join(map(_lower_letter, text))


def _lower_letter(letter: str) -> str:
    if letter == "İ":  # the one letter whose full lower case (Python 3) is longer than its simple one
        return "i"
    return letter if _CAPITALS_OF_LATER.match(letter) else letter.lower()
