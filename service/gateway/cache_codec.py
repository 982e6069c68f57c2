"""A cached reply as bytes, for a cache that outlives this process or serves several.

Layout, all little endian: the magic bytes with the version, the header's length (4 bytes), the header (ASCII JSON),
n probabilities (8-byte floats), and a bitmap of n bits, most significant first: which members the model has a
spelling for. Nothing in it is code, and nothing of it is believed before it was checked.

The model's labels are not stored, only how it spells those members whose spelling is not the answer set's key.
"""

from __future__ import annotations

import json
import math
import struct
import sys
from typing import Any, Final

import numpy as np

from service.answers import AnswerSet, Posterior, ScoreKind
from service.backends import Notice
from service.gateway.cache import Cached
from service.images import STATISTICS

VERSION: Final = 2
_START: Final = struct.Struct("<4sBI")
_MAGIC: Final = b"vqac"


def encode(cached: Cached) -> bytes:
    """The bytes of a cached reply.

    Raises:
        ValueError: it holds numbers that no posterior has.
    """
    posterior = cached.posterior
    labels, keys = posterior.labels, posterior.answer_set.keys
    header = {
        "answer_set": posterior.answer_set.identity,
        "members": len(keys),
        "off_set": posterior.off_set,
        "score_kind": posterior.score_kind.value,
        "says_unanswerable": posterior.says_unanswerable,
        "spellings": [
            [member, labels[label]]
            for member, (label, key) in enumerate(zip(posterior.label_of.tolist(), keys, strict=True))
            if label >= 0 and labels[label] != key
        ],
        "warnings": [[notice.code, notice.message] for notice in cached.warnings],
        "withheld": cached.withheld,
        "size": [cached.width, cached.height],
        "statistics": None if cached.statistics is None else [cached.statistics[name] for name in STATISTICS],
    }
    # ASCII: an unpaired surrogate in a spelling is then an escape like any other.
    text = json.dumps(header, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode("ascii")
    spelled = np.packbits(posterior.label_of >= 0)
    start = _START.pack(_MAGIC, VERSION, len(text))
    return b"".join((start, text, posterior.probabilities.astype("<f8").tobytes(), spelled.tobytes()))


def decode(data: bytes, answer_set: AnswerSet) -> Cached:
    """The cached reply, its posterior spelled as in `answer_set`.

    Raises:
        ValueError: these are no such bytes, or those of another version or answer set.
    """
    try:
        return _decode(data, answer_set)
    except (ValueError, TypeError, KeyError, IndexError, OverflowError, RecursionError, struct.error) as error:
        # The inner message could quote what is in there.
        raise ValueError(f"no cached reply to this question: {type(error).__name__}") from None


def _decode(data: bytes, answer_set: AnswerSet) -> Cached:
    magic, version, length = _START.unpack_from(data)
    n = len(answer_set)
    arrays = _START.size + length
    spelled_at = arrays + 8 * n
    _require((magic, version) == (_MAGIC, VERSION) and len(data) == spelled_at + (n + 7) // 8)
    header = json.loads(data[_START.size : arrays].decode("ascii"))
    _require(isinstance(header, dict))
    _require(header["answer_set"] == answer_set.identity and header["members"] == n)
    # Copies: views would keep all of `data` alive, and unaligned.
    probabilities = np.frombuffer(data, "<f8", n, arrays).astype(np.float64)
    _require(bool(((probabilities >= 0) & (probabilities <= 1)).all()))
    spelled = np.unpackbits(np.frombuffer(data, np.uint8, offset=spelled_at), count=n).astype(np.bool_)
    label_of = np.where(spelled, np.arange(n, dtype=np.intp), -1)
    own = [(_integer(member), _text(spelling)) for member, spelling in header["spellings"]]
    # Behind the keys, which spell everybody else: the answer set's own tuple where nobody differs.
    labels = (*answer_set.keys, *(spelling for _, spelling in own)) if own else answer_set.keys
    for i, (member, _) in enumerate(own):
        _require(0 <= member < n and bool(spelled[member]))
        label_of[member] = n + i
    width, height = map(_integer, header["size"])
    _require(width > 0 and height > 0)
    off_set = header["off_set"]
    _require(off_set is None or (isinstance(off_set, float) and 0.0 <= off_set <= 1.0))
    posterior = Posterior(
        answer_set,
        probabilities,
        off_set,
        ScoreKind(header["score_kind"]),
        _flag(header["says_unanswerable"]),
        labels,
        label_of,
    )
    _require((off_set is None) == (posterior.score_kind is ScoreKind.SIGMOID))
    warnings = tuple(Notice(_text(code), _text(message)) for code, message in header["warnings"])
    own_bytes = sys.getsizeof(labels) + sum(sys.getsizeof(spelling) for _, spelling in own) if own else 0
    return Cached(posterior, warnings, _flag(header["withheld"]), width, height, _statistics(header), own_bytes)


def _statistics(header: dict[str, Any]) -> dict[str, float] | None:
    values = header["statistics"]
    if values is None:
        return None
    _require(isinstance(values, list) and all(type(value) is float and math.isfinite(value) for value in values))
    return dict(zip(STATISTICS, values, strict=True))


def _require(holds: bool) -> None:
    if not holds:
        raise ValueError


def _integer(value: Any) -> int:
    _require(type(value) is int)
    return int(value)


def _text(value: Any) -> str:
    _require(type(value) is str)
    return str(value)


def _flag(value: Any) -> bool:
    _require(type(value) is bool)
    return bool(value)
