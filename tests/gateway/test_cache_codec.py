"""A cached reply as bytes: what comes back is what went in, and everything else is refused."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.answers import AnswerSet, Posterior, Vocabulary
from service.backends import Notice, load_manifest, read_labels
from service.gateway.cache import Cached
from service.gateway.cache_codec import VERSION, decode, encode
from service.images import STATISTICS
from service.settings import load_settings

LABELS = ["yes", "no", "two", "2", "red", "unknown", "can't tell", "blue", "Red.", "", "the", "\ud800"]
SCORES = st.lists(st.floats(-60, 60), min_size=len(LABELS), max_size=len(LABELS))
CHOICES = st.lists(
    st.sampled_from(["Yes", "no", "2", "red", "blue", "unknown", "zebra", "lynx"]), min_size=1, unique=True
)
NOTICES = st.lists(st.builds(Notice, st.text(max_size=9), st.text(max_size=40)), max_size=3).map(tuple)
SIZES = st.integers(1, 2**40)
LOOKED_AT = st.none() | st.lists(
    st.floats(allow_nan=False, allow_infinity=False), min_size=len(STATISTICS), max_size=len(STATISTICS)
).map(lambda values: dict(zip(STATISTICS, values, strict=True)))


def cached(posterior: Posterior, warnings: tuple[Notice, ...] = (), withheld: bool = False) -> Cached:
    return Cached(posterior, warnings, withheld, 640, 480)


def assert_same(got: Cached, given: Cached) -> None:
    a, b = got.posterior, given.posterior
    assert a.probabilities.tobytes() == b.probabilities.tobytes(), "bit for bit"
    assert (a.off_set, a.score_kind, a.says_unanswerable) == (b.off_set, b.score_kind, b.says_unanswerable)
    assert (a.best(), a.best_answerable()) == (b.best(), b.best_answerable())
    members = range(len(b.answer_set))
    assert [a.raw_answer(m) for m in members] == [b.raw_answer(m) for m in members]
    assert [a.mass(m) for m in members] == [b.mass(m) for m in members]
    assert (got.warnings, got.withheld, got.width, got.height) == (
        given.warnings,
        given.withheld,
        given.width,
        given.height,
    )
    assert got.statistics == given.statistics
    assert not a.probabilities.flags.writeable
    assert a.probabilities.base is None, "a view would keep all the bytes alive"


@given(
    SCORES,
    CHOICES | st.none(),
    st.sampled_from(["softmax", "sigmoid"]),
    NOTICES,
    st.booleans(),
    SIZES,
    SIZES,
    LOOKED_AT,
)
def test_classifier_round_trip(scores, choices, kind, notices, withheld, width, height, looked_at) -> None:
    vocabulary = Vocabulary(LABELS)
    answer_set = vocabulary.default_set if choices is None else AnswerSet.from_choices(choices)
    posterior = Posterior.from_logits(scores, vocabulary.project(answer_set), answer_set, kind)
    given_ = Cached(posterior, notices, withheld, width, height, looked_at)
    assert_same(decode(encode(given_), answer_set), given_)


@given(st.lists(st.floats(-50, -1.2), min_size=3, max_size=3), st.booleans(), st.booleans())
def test_generator_round_trip(logprobs, own, says) -> None:
    answer_set = AnswerSet.from_choices(["A cat", "Dogs!"])
    spellings = ["a cat", "Dog", "none"] if own else None
    posterior = Posterior.from_logprobs(logprobs, answer_set, spellings=spellings, says_unanswerable=says)
    assert_same(decode(encode(cached(posterior)), answer_set), cached(posterior))


def test_nothing_in_the_set() -> None:
    answer_set = AnswerSet.from_choices(["zebra", "lynx"])
    vocabulary = Vocabulary(["red"])
    for kind in ("softmax", "sigmoid"):
        posterior = Posterior.from_logits([1.0], vocabulary.project(answer_set), answer_set, kind)
        assert_same(decode(encode(cached(posterior)), answer_set), cached(posterior))


@pytest.mark.parametrize("kind", ["softmax", "sigmoid"])
def test_the_embedded_models_vocabulary(kind: str) -> None:
    manifest = load_manifest(load_settings().models_dir, "vilt-shapes")
    vocabulary = Vocabulary(read_labels(manifest))
    rng = np.random.default_rng(1)
    for answer_set in (vocabulary.default_set, *map(AnswerSet.named, ("yes-no", "numbers", "colors"))):
        logits = rng.normal(0, 5, len(vocabulary)).astype(np.float32)
        posterior = Posterior.from_logits(logits, vocabulary.project(answer_set), answer_set, kind)
        assert_same(decode(encode(cached(posterior)), answer_set), cached(posterior))


def large() -> Cached:
    """As many labels as VQA v2 has, with spellings that are no keys among them."""
    rng = np.random.default_rng(2)
    vocabulary = Vocabulary([f"Answer {i}." if i % 7 == 0 else f"answer {i}" for i in range(3129)])
    logits = rng.normal(0, 5, 3129).astype(np.float32)
    return cached(
        Posterior.from_logits(logits, vocabulary.project(vocabulary.default_set), vocabulary.default_set, "sigmoid")
    )


def test_a_vocabulary_of_thousands_is_small_and_quick() -> None:
    given_ = large()
    answer_set = given_.posterior.answer_set
    data = encode(given_)
    assert len(data) < 45_000
    assert_same(decode(data, answer_set), given_)
    started = time.process_time()
    for _ in range(20):
        decode(encode(given_), answer_set)
    assert (time.process_time() - started) / 20 < 0.05, "it runs on the event loop"


def test_the_labels_are_the_sets_own_where_they_can_be() -> None:
    answer_set = AnswerSet.named("yes-no")
    vocabulary = Vocabulary(["yes", "no"])
    plain = Posterior.from_logits([1.0, 2.0], vocabulary.project(answer_set), answer_set, "softmax")
    got = decode(encode(cached(plain)), answer_set)
    assert got.posterior.labels is answer_set.keys
    assert got.own_label_bytes == 0
    odd = decode(encode(large()), large().posterior.answer_set)
    assert odd.own_label_bytes > 8 * 3129
    assert odd.nbytes > large().nbytes


def test_it_is_spelled_for_who_asks() -> None:
    first, second = AnswerSet.from_choices(["yes", "no"]), AnswerSet.from_choices(["YES!", "No"])
    vocabulary = Vocabulary(["yes", "No."])
    posterior = Posterior.from_logits([1.0, 2.0], vocabulary.project(first), first, "softmax")
    got = decode(encode(cached(posterior)), second).posterior
    assert got.answer_set is second
    assert got.raw_answer(1) == "No."


SET = AnswerSet.from_choices(["yes", "zebra", "two"])
WORDS = Vocabulary(["yes", "Two", "unknown"])
DATA = encode(
    Cached(
        Posterior.from_logits([1.0, 2.0, 3.0], WORDS.project(SET), SET, "softmax"),
        (Notice("a", "b"),),
        False,
        64,
        48,
    )
)


def with_header(**changes: object) -> bytes:
    """`DATA` with another header, its length put right."""
    length = int.from_bytes(DATA[5:9], "little")
    header = json.loads(DATA[9 : 9 + length]) | changes
    text = json.dumps({name: value for name, value in header.items() if value is not ...}).encode()
    return DATA[:5] + len(text).to_bytes(4, "little") + text + DATA[9 + length :]


def test_the_header_helper_changes_nothing_by_itself() -> None:
    assert decode(with_header(), SET).posterior.raw_answer(2) == "Two"


def test_statistics_come_back_by_name() -> None:
    got = decode(with_header(statistics=[0.5, 1.5, -2.0, 0.0, 1e-300, 1e300, -0.0, 3.25]), SET)
    assert list(got.statistics) == list(STATISTICS)
    assert got.statistics["contrast"] == 1.5
    assert got.statistics["coarse_gradient"] == 3.25
    assert decode(DATA, SET).statistics is None
    assert got.nbytes > decode(DATA, SET).nbytes


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_statistics_that_are_no_numbers_are_not_encoded(value: float) -> None:
    looked_at = dict.fromkeys(STATISTICS, 0.5) | {"sharpness": value}
    with pytest.raises(ValueError, match="JSON"):
        encode(Cached(decode(DATA, SET).posterior, (), False, 64, 48, looked_at))


@pytest.mark.parametrize("cut", range(0, len(DATA), 7))
def test_cut_short_is_refused(cut: int) -> None:
    with pytest.raises(ValueError, match="no cached reply"):
        decode(DATA[:cut], SET)


@pytest.mark.parametrize(
    "answer_set",
    [
        AnswerSet.from_choices(["yes", "zebra"]),
        AnswerSet.from_choices(["zebra", "yes", "two"]),
        AnswerSet.from_choices(["yes", "zebra", "three"]),
    ],
)
def test_another_answer_set_is_refused(answer_set: AnswerSet) -> None:
    with pytest.raises(ValueError, match="no cached reply"):
        decode(DATA, answer_set)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x80\x04K\x01.",
        DATA + b"\0",
        b"VQAC" + DATA[4:],
        DATA[:4] + bytes([VERSION + 1]) + DATA[5:],
        DATA[:5] + b"\xff\xff\xff\xff" + DATA[9:],
        DATA[:9] + b"[" + DATA[10:],
        DATA[:9] + b"\xff" + DATA[10:],
        with_header(members=3),
        with_header(answer_set=...),
        with_header(answer_set="other"),
        with_header(off_set=float("nan")),
        with_header(off_set=1.5),
        with_header(off_set=None),
        with_header(off_set="0"),
        with_header(score_kind="sigmoid"),
        with_header(score_kind="hinge"),
        with_header(says_unanswerable=1),
        with_header(spellings=[[9, "x"]]),
        with_header(spellings=[[-1, "x"]]),
        with_header(spellings=[[1, "x"]]),  # a member that the model has no word for
        with_header(spellings=[[0, 7]]),
        with_header(spellings=[[True, "x"]]),
        with_header(spellings={"0": "x"}),
        with_header(spellings=None),
        with_header(warnings=[["a"]]),
        with_header(warnings=[["a", None]]),
        with_header(withheld=None),
        with_header(size=[1]),
        with_header(size=[1, 2, 3]),
        with_header(size=[0, 1]),
        with_header(size=["1", 1]),
        with_header(statistics=...),
        with_header(statistics=[]),
        with_header(statistics=[0.5] * 7),
        with_header(statistics=[0.5] * 9),
        with_header(statistics=[0.5] * 7 + [float("nan")]),
        with_header(statistics=[0.5] * 7 + [float("inf")]),
        with_header(statistics=[0.5] * 7 + [1]),
        with_header(statistics=[0.5] * 7 + ["0.5"]),
        with_header(statistics=[0.5] * 7 + [None]),
        with_header(statistics=[0.5] * 7 + [[0.5]]),
        with_header(statistics=dict.fromkeys(STATISTICS, 0.5)),
        with_header(statistics="12345678"),
        with_header(statistics=False),
    ],
)
def test_what_is_no_such_reply_is_refused_without_quoting_it(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"^no cached reply to this question: \w+$"):
        decode(data, SET)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -0.5, 1.0000001])
def test_numbers_that_are_no_probabilities_are_refused(value: float) -> None:
    at = 9 + int.from_bytes(DATA[5:9], "little")
    with pytest.raises(ValueError, match="no cached reply"):
        decode(DATA[:at] + np.float64(value).tobytes() + DATA[at + 8 :], SET)


@given(st.binary(max_size=200) | st.binary(max_size=200).map(lambda tail: DATA[:9] + tail))
def test_garbage_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="no cached reply"):
        decode(data, SET)


@given(st.integers(0, len(DATA) - 1), st.integers(1, 255))
def test_a_flipped_byte_gives_a_reply_or_a_refusal(at: int, flip: int) -> None:
    data = bytearray(DATA)
    data[at] ^= flip
    try:
        got = decode(bytes(data), SET)
    except ValueError:
        return
    assert got.posterior.best() in range(4)
    assert [got.posterior.raw_answer(member) for member in range(4)]


def test_deeply_nested_json_is_refused() -> None:
    text = b"[" * 100_000
    with pytest.raises(ValueError, match="no cached reply"):
        decode(DATA[:5] + len(text).to_bytes(4, "little") + text + bytes(4 * 8 + 1), SET)
