"""Questions to token ids, with the hub's `tokenizer.json` and no transformers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer


@dataclass(frozen=True, slots=True)
class EncodedQuestion:
    """Token ids (int64, shape (tokens,)) with [CLS] and [SEP], and how many tokens the limit cut off."""

    ids: NDArray[np.int64]
    cut: int


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

    def encode(self, question: str) -> EncodedQuestion:
        """Encode one question, cut to `max_tokens` with its closing mark kept."""
        ids: list[int] = self._tokenizer.encode(question).ids
        cut = max(0, len(ids) - self.max_tokens)
        if cut:
            ids = ids[: self.max_tokens - 1] + ids[-1:]
        return EncodedQuestion(np.asarray(ids, dtype=np.int64), cut)
