"""Questions to token ids, with the hub's `tokenizer.json` and no transformers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer


@dataclass(frozen=True, slots=True)
class EncodedQuestion:
    """One question as the model reads it.

    Attributes:
        ids: int64, shape (tokens,), with [CLS] and [SEP].
        cut: how many tokens the limit cut off.
        words: how many tokens are words, parts of words or numbers that the vocabulary has.
        unknown: how many tokens stand for a word that it does not have.
    """

    ids: NDArray[np.int64]
    cut: int
    words: int
    unknown: int


class QuestionTokenizer:
    """A BERT tokenizer that treats a caller's text as text.

    `[SEP]` in a question is spelt out as ordinary pieces: the ids of special tokens come from the template alone.
    """

    def __init__(self, path: Path, max_tokens: int) -> None:
        self._tokenizer = Tokenizer.from_file(str(path))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._tokenizer.encode_special_tokens = True
        self.max_tokens = max_tokens
        pad = self._tokenizer.token_to_id("[PAD]")
        self.pad_id = 0 if pad is None else int(pad)
        unknown = self._tokenizer.token_to_id("[UNK]")
        self._unknown_id = -1 if unknown is None else int(unknown)
        added = self._tokenizer.get_added_tokens_decoder()
        special = {token_id for token_id, token in added.items() if token.special}
        self._words = frozenset(
            token_id
            for token, token_id in self._tokenizer.get_vocab().items()
            if token_id != self._unknown_id and token_id not in special and any(char.isalnum() for char in token)
        )
        # Added tokens that are not special are looked for in the text as it came, before it is normalised.
        self._normalizer = None if len(special) < len(added) else self._tokenizer.normalizer

    def canonical(self, question: str) -> str:
        """The text as the model's vocabulary is applied to it: equal ones are encoded alike."""
        return question if self._normalizer is None else str(self._normalizer.normalize_str(question))

    def encode(self, question: str) -> EncodedQuestion:
        """Encode one question, cut to `max_tokens` with its closing mark kept."""
        ids: list[int] = self._tokenizer.encode(question).ids
        unknown = ids.count(self._unknown_id)
        words = sum(map(self._words.__contains__, ids))
        cut = max(0, len(ids) - self.max_tokens)
        if cut:
            ids = ids[: self.max_tokens - 1] + ids[-1:]
        return EncodedQuestion(np.asarray(ids, dtype=np.int64), cut, words, unknown)
