"""The official answer types: yes/no, number, other; and the service's own fourth, unanswerable.

VQA v2 gives the type to the question, by the answer most annotators gave. Here it is read off the answer
itself.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final


class AnswerType(StrEnum):
    """What kind of answer it is, under the data set's own names."""

    YES_NO = "yes/no"
    NUMBER = "number"
    OTHER = "other"
    UNANSWERABLE = "unanswerable"


# A first word in digits: 3, 3.5, 10:55, 1,000, 05/29/2013, $5, 20%; with or without its unit ("10 feet").
_NUMBER: Final = re.compile(r"[-+$€£]?[0-9]+([.,:/][0-9]+)*%?(\s|$)")


def answer_type(key: str) -> AnswerType:
    """The type of an answerable answer, from its match key ("two" is "2" there)."""
    if key in ("yes", "no"):
        return AnswerType.YES_NO
    return AnswerType.NUMBER if _NUMBER.match(key) else AnswerType.OTHER
