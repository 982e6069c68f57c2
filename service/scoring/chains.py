"""Answer normalisations of programs other than the official one.

They descend from the official chain (`service.answers.normalise`) and differ on purpose or by accident. All run
under Python 3, where digits are Unicode's, and letters are lower-cased with their context. Where one of them is
followed, its numbers are wanted as they are, so each accident is kept.

| chain | program | differs |
|---|---|---|
| `port` | LAVIS 506965b | Python 3 only |
| `port_commas` | lmms-eval 75571cf (vqav2) | several commas between digits count, too |
| `eval_ai` | mmf b0ffc7f (m4c), lmms-eval (textvqa, ok_vqa, vizwiz_vqa) | first drops `,` and `?`, splits off `'s` |
| `vlmevalkit` | VLMEvalKit e8e78f0 | keeps a full stop after a digit, too |
| `vizwiz` | the VizWiz API | the contractions of VQA's code of 2015, with curly apostrophes |
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from service.answers.normalise import ARTICLES, CONTRACTIONS, NUMBER_WORDS, PUNCTUATION

_MARKS: Final = re.compile("[" + re.escape(PUNCTUATION) + "]")
_DIGIT_COMMA: Final = re.compile(r"\d,\d")
_DIGIT_COMMAS: Final = re.compile(r"\d,+(?=\d)")
_FULL_STOP: Final = re.compile(r"\.(?!\d)")
LONELY_FULL_STOP: Final = re.compile(r"(?<!\d)\.(?!\d)")
_FULL_STOPS_REMOVED: Final = 32  # all of them pass `re.UNICODE`, which is 32, where `sub` takes a count

_STRAIGHT_KEYS: Final = frozenset({"couldn'tve", "hadn'tve"})
_STRAIGHT_VALUES: Final = frozenset({"ain't", "aren't", "can't", "could've", "couldn't", "we've", "where's", "who've"})


def _curly(text: str) -> str:
    return text.replace("'", "\u2019")


# The table of the VQA code of 2015 (commit 14a5e12): that of today with curly apostrophes, but for ten slips.
_CONTRACTIONS_2015: Final = {
    key if key in _STRAIGHT_KEYS else _curly(key): value if value in _STRAIGHT_VALUES else _curly(value)
    for key, value in CONTRACTIONS.items()
}


def strip3(text: str) -> str:
    """New line and tab become a space; white space around the text goes."""
    return text.replace("\n", " ").replace("\t", " ").strip()


def punctuation3(text: str, commas: re.Pattern[str] = _DIGIT_COMMA, full_stop: re.Pattern[str] = _FULL_STOP) -> str:
    """`processPunctuation` under Python 3: marks deleted or made spaces, up to 32 full stops removed."""
    out = text
    if found := set(_MARKS.findall(text)):
        delete_all = commas.search(text) is not None
        out = text.translate({ord(p): "" if delete_all or f"{p} " in text or f" {p}" in text else " " for p in found})
    return full_stop.sub("", out, count=_FULL_STOPS_REMOVED)


def words3(text: str, contractions: Mapping[str, str] = CONTRACTIONS) -> str:
    """`processDigitArticle` under Python 3: small letters, number words, articles, contractions."""
    words = (NUMBER_WORDS.get(word, word) for word in text.lower().split())
    return " ".join(contractions.get(word, word) for word in words if word not in ARTICLES)


def port(text: str) -> str:
    """The official chain carried over to Python 3 (LAVIS)."""
    return words3(punctuation3(strip3(text)))


def port_commas(text: str) -> str:
    """The same with the comma pattern of the EvalAI processor: `1,,2` counts as a number too (lmms-eval, vqav2)."""
    return words3(punctuation3(strip3(text), _DIGIT_COMMAS))


def eval_ai(text: str) -> str:
    """`EvalAIAnswerProcessor`: `,` and `?` go first, and `'s` becomes a word of its own."""
    text = text.lower().replace(",", "").replace("?", "").replace("'s", " 's").strip()
    return port_commas(text)


def vlmevalkit(text: str) -> str:
    """VLMEvalKit's `process_answer`: its full-stop pattern really looks behind."""
    return words3(punctuation3(strip3(text), full_stop=LONELY_FULL_STOP))


def vizwiz(text: str) -> str:
    """The VizWiz API's normal form of a prediction; it leaves the annotators' answers as they are."""
    return words3(punctuation3(strip3(text)), _CONTRACTIONS_2015)
