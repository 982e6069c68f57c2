"""The answer normalisation of facebookresearch/reliable_vqa, under Python 3.

For words (numbers, articles, contractions) it does as the VQA code does. For punctuation it has other rules: marks at
the ends go, a comma between digits goes, and a mark beside a mark or a space, or between two letters, becomes a space.
A mark between a letter and a digit stays.
"""

from __future__ import annotations

import re
from typing import Final

from service.scoring.chains import strip3, words3

_MARKS: Final = r"\\;/\"`\[\](){}<>@=+_\-,?!"
_AT_START: Final = re.compile(rf"\A[ {_MARKS}]+(?=[a-zA-Z0-9 ])")
_AT_END: Final = re.compile(rf"(?<=[a-zA-Z0-9 ])[ {_MARKS}]+\Z")
_COMMAS_IN_NUMBER: Final = re.compile(r"(?<=\d),+(?=\d)")
_BESIDE_MARK_OR_SPACE: Final = re.compile(rf"(?<=[ {_MARKS}])[{_MARKS}]|[{_MARKS}](?=[ {_MARKS}])")
_BETWEEN_LETTERS: Final = re.compile(rf"(?<=[a-zA-Z])[{_MARKS}](?=[a-zA-Z])")
_SPACES: Final = re.compile(" +")
_FULL_STOP: Final = re.compile(r"\.(?!\d)")  # the original's look-behind is a look-ahead by mistake and always holds
_FULL_STOPS_REMOVED: Final = 32  # re.UNICODE, in the place of a count


def chain(text: str) -> str:
    """The whole chain."""
    return words3(_punctuation(strip3(text)))


def _punctuation(text: str) -> str:
    """The second stage (`processPunctuation`), after white space around the text is gone."""
    out = _AT_START.sub("", text)
    out = _AT_END.sub("", out)
    out = _COMMAS_IN_NUMBER.sub("", out)
    out = _BESIDE_MARK_OR_SPACE.sub(" ", out)
    out = _SPACES.sub(" ", out)
    out = _BETWEEN_LETTERS.sub(" ", out)
    return _FULL_STOP.sub("", out, count=_FULL_STOPS_REMOVED)
