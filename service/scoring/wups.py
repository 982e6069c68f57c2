"""WUPS: how alike two answers are in meaning, by their places in WordNet (Malinowski and Fritz 2014).

Source: M. Malinowski's calculate_wups.py, the program that DAQUAR is scored with. An answer is a set of words; two sets
are as alike as the worst-matched of their words. Two words are as alike as their most alike noun senses (Wu and Palmer
1994); below a threshold that similarity counts for a tenth.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from functools import lru_cache
from io import StringIO
from pathlib import Path
from typing import Any, Final

from service.errors import needs

DEBIAN_WORDNET: Final = Path("/usr/share/wordnet")
INSTALL_WORDNET: Final = (
    "install WordNet 3.0: `apt-get install wordnet-base` (Debian), or `python -m nltk.downloader wordnet`"
)

_LESS: Final = 0.1  # the weight of a similarity below the threshold
_LEXICOGRAPHER_FILES: Final = 45  # of WordNet 3.0; only their number matters here

Measure = Callable[[str, str], float]


def dirac(one: str, other: str) -> float:
    """1 where the words are the same, else 0."""
    return float(one == other)


class Wups:
    """Wu-Palmer similarity of words.

    Args:
        folder: where WordNet's files are if not on nltk's data path; none takes Debian's place.

    Raises:
        MissingExtraError: nltk is not installed.
        LookupError: WordNet is neither on nltk's data path nor in Debian's place; the message says what to install.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._wordnet = _open_wordnet(folder or DEBIAN_WORDNET)
        self._similarity = lru_cache(maxsize=None)(self._most_alike)

    def measure(self, threshold: float) -> Measure:
        """The similarity of two words, 0 to 1, where one below `threshold` counts for a tenth."""

        def wup(one: str, other: str) -> float:
            if one == other:
                return 1.0
            similarity = self._similarity(one, other)
            return similarity * _LESS if similarity < threshold else similarity

        return wup

    def _most_alike(self, one: str, other: str) -> float:
        """The greatest similarity of a noun sense of the one and of the other; 0 where either has none."""
        ours, theirs = (self._wordnet.synsets(word, pos="n") for word in (one, other))
        return max((float(a.wup_similarity(b) or 0.0) for a in ours for b in theirs), default=0.0)


def items(answer: str) -> list[str]:
    """The words of an answer, which commas part."""
    return [item.strip() for item in answer.split(",")]


def set_score(truth: Sequence[str], answer: Sequence[str], measure: Measure) -> float:
    """How alike two sets of words are: each word counts with its best match in the other set, and the matches multiply.

    The smaller of the two products is the score, so a word too many costs as much as a word too few.
    """

    def product(ours: Sequence[str], theirs: Sequence[str]) -> float:
        return math.prod(max(measure(one, other) for other in theirs) for one in ours)

    return min(product(truth, answer), product(answer, truth))


def _open_wordnet(folder: Path) -> Any:
    """nltk's reader of WordNet, from nltk's own data where they are installed, else from a folder of Debian's package.

    Debian leaves out `lexnames`, a list of names that no similarity looks at; a stand-in takes its place. nltk reads
    only below its data path, so the folder is put on it.
    """
    with needs("nltk"):
        import nltk
        from nltk.corpus import wordnet
        from nltk.corpus.reader.wordnet import WordNetCorpusReader
    try:
        wordnet.ensure_loaded()
    except LookupError:
        if not (folder / "data.noun").is_file():
            raise LookupError(INSTALL_WORDNET) from None
    else:
        return wordnet

    class DebianWordNet(WordNetCorpusReader):  # type: ignore[misc]
        """WordNet 3.0 without `lexnames`."""

        def open(self, file: str) -> Any:
            if file == "lexnames" and not (folder / file).exists():
                return StringIO("".join(f"{number:02d}\t-\t0\n" for number in range(_LEXICOGRAPHER_FILES)))
            return super().open(file)

        def map_wn(self, version: str = "wordnet") -> None:
            """No mapping to another WordNet: only this one is there."""

    if str(folder) not in nltk.data.path:
        nltk.data.path.append(str(folder))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns that only English is there
        return DebianWordNet(str(folder), None)
