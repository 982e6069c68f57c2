"""What was answered before: whose it is, how much of it fits, and that no level is waited for."""

from __future__ import annotations

import asyncio
import dataclasses
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.answers import CHOICES, AnswerSet, Posterior, Vocabulary
from service.backends import Notice
from service.gateway.cache import Cached, CacheKey, MemoryCache, TieredCache

SECRET = b"0123456789abcdef"
KEY = CacheKey("acme", "ab" * 32, "is it red?", "cd" * 32, "vilt", "r1", "p1", "auto")
VOCABULARY = Vocabulary(["yes", "no", "two", "2", "Red.", "unknown"])


def entry(answer_set: AnswerSet = VOCABULARY.default_set, **changes: object) -> Cached:
    logits = [1.0, 2.0, 0.5, 0.25, 0.125, 0.0]
    posterior = Posterior.from_logits(logits, VOCABULARY.project(answer_set), answer_set, "softmax")
    return dataclasses.replace(Cached(posterior, (Notice("demo", "A demo."),), False, 64, 48), **changes)


def key(i: int) -> CacheKey:
    return dataclasses.replace(KEY, question=f"question {i:06}")


def choices(n: int) -> AnswerSet:
    # Not `from_choices`: normalising keeps texts of its own, which would be measured too.
    return AnswerSet(
        CHOICES,
        tuple(f"The answer number {i:06}" for i in range(n)),
        tuple(f"answer number {i:06}" for i in range(n)),
        None,
    )


# the key


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(CacheKey)])
def test_every_field_makes_another_key(field: str) -> None:
    other = dataclasses.replace(KEY, **{field: "other"})
    assert other != KEY
    assert other.digest(SECRET) != KEY.digest(SECRET)


@given(st.lists(st.text(max_size=4), min_size=8, max_size=8), st.lists(st.text(max_size=4), min_size=8, max_size=8))
def test_digests_are_equal_only_for_equal_keys(a: list[str], b: list[str]) -> None:
    assert (CacheKey(*a).digest(SECRET) == CacheKey(*b).digest(SECRET)) == (a == b)


def test_letters_may_not_move_from_field_to_field() -> None:
    rest = ["x"] * 6
    assert CacheKey("ab", "c", *rest).digest(SECRET) != CacheKey("a", "bc", *rest).digest(SECRET)


def test_the_digest_tells_nothing_without_the_secret() -> None:
    digest = KEY.digest(SECRET)
    assert len(bytes.fromhex(digest)) == 32
    assert digest != KEY.digest(b"another secret..")
    assert KEY.digest(SECRET) == dataclasses.replace(KEY).digest(SECRET)
    assert dataclasses.replace(KEY, question="\ud800").digest(SECRET)


# memory


async def test_what_was_put_is_there_in_the_spelling_of_who_asks() -> None:
    cache = MemoryCache(100_000)
    first, second = AnswerSet.from_choices(["yes", "no"]), AnswerSet.from_choices(["YES", "No!"])
    put = entry(first)
    assert await cache.get(KEY, first) is None
    await cache.put(KEY, put)
    assert await cache.get(KEY, first) is put
    respelled = await cache.get(KEY, second)
    assert respelled is not None
    assert respelled.posterior.answer_set is second
    assert respelled.posterior.probabilities is put.posterior.probabilities
    assert (respelled.width, respelled.height, respelled.warnings) == (64, 48, put.warnings)
    assert cache.get_now(KEY, first) is put, "another's spelling is not kept"


def test_those_not_used_for_longest_make_room() -> None:
    seen: list[tuple[int, int]] = []
    evicted: list[int] = []
    one = key(0).nbytes + entry().nbytes
    cache = MemoryCache(3 * one, lambda size, count: seen.append((size, count)), lambda: evicted.append(1))
    for i in range(3):
        cache.put_now(key(i), entry())
    assert (cache.bytes, cache.entries, evicted) == (3 * one, 3, [])
    default = VOCABULARY.default_set
    assert cache.get_now(key(0), default)
    cache.put_now(key(3), entry())
    assert [bool(cache.get_now(key(i), default)) for i in range(4)] == [True, False, True, True]
    cache.put_now(key(0), entry())
    assert (cache.bytes, cache.entries, len(evicted)) == (3 * one, 3, 1), "one that is replaced is no eviction"
    assert seen[-1] == (3 * one, 3)


def test_an_entry_larger_than_the_limit_is_not_kept() -> None:
    cache = MemoryCache(entry().nbytes * 2)
    cache.put_now(key(1), entry())
    cache.put_now(key(2), entry(choices(500)))
    assert cache.entries == 1
    cache.put_now(key(1), entry(choices(500)))
    assert (cache.entries, cache.bytes) == (0, 0), "nor is what it would have replaced"


def test_a_limit_of_nought_is_off() -> None:
    cache = MemoryCache(0)
    cache.put_now(KEY, entry())
    assert (cache.entries, cache.bytes, cache.get_now(KEY, VOCABULARY.default_set)) == (0, 0, None)


async def test_closed_is_empty() -> None:
    cache = MemoryCache(100_000)
    await cache.put(KEY, entry())
    await cache.close()
    assert (cache.entries, cache.bytes) == (0, 0)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 40)), max_size=60), st.integers(0, 40_000))
def test_the_bound_holds_whatever_comes(puts: list[tuple[int, int]], limit: int) -> None:
    cache = MemoryCache(limit)
    sizes = {n: entry(choices(n)) for n in {n for _, n in puts}}
    latest: dict[int, int] = {}
    for i, n in puts:
        cache.put_now(key(i), sizes[n])
        latest[i] = n
        assert 0 <= cache.bytes <= limit
        kept = sizes[n].nbytes + key(i).nbytes <= limit
        assert (cache.get_now(key(i), sizes[n].posterior.answer_set) is not None) == kept
    held = [i for i, n in latest.items() if cache.get_now(key(i), sizes[n].posterior.answer_set)]
    assert cache.bytes == sum(key(i).nbytes + sizes[latest[i]].nbytes for i in held)
    assert cache.entries == len(held)


LARGE = Vocabulary([f"label {i}" for i in range(3129)])


@pytest.mark.parametrize("of", ["small", "large", "choices"])
def test_the_estimate_is_what_it_takes(of: str) -> None:
    """Within a third of what the allocator says, and not below it by more than a tenth: the bound is a real one."""
    count = 50 if of != "small" else 500
    cache = MemoryCache(10**9)
    cache.put_now(key(count + 1), entry())
    vocabulary = LARGE if of == "large" else VOCABULARY
    logits = np.zeros(len(vocabulary))
    tracemalloc.start()
    try:
        for i in range(count):
            answer_set = choices(300) if of == "choices" else vocabulary.default_set
            projection = vocabulary._make_projection(answer_set)
            posterior = Posterior.from_logits(logits, projection, answer_set, "softmax")
            # Texts of their own, as they come from a request.
            own = dataclasses.replace(KEY, question=f"question {i:06} " + "x" * 30, picture=f"{i:064}")
            cache.put_now(own, Cached(posterior, (Notice("demo", "A demo."),), False, 64, 48))
            del projection, posterior, answer_set, own
        real = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert 0.9 * real <= cache.bytes <= 1.35 * real, (real, cache.bytes)


# levels


class Level:
    """A shared level that a test holds in its hand."""

    def __init__(self) -> None:
        self.kept: dict[CacheKey, Cached] = {}
        self.gate = asyncio.Event()
        self.gate.set()
        self.closed = False
        self.gets = 0
        self.error: Exception | None = None

    async def get(self, key: CacheKey, answer_set: AnswerSet) -> Cached | None:
        self.gets += 1
        found = self.kept.get(key)
        return found and found.respelled(answer_set)

    async def put(self, key: CacheKey, cached: Cached) -> None:
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        self.kept[key] = cached

    async def close(self) -> None:
        self.closed = True


async def test_what_is_computed_during_a_look_up_is_found() -> None:
    memory = MemoryCache(100_000)

    class Slow(Level):
        async def get(self, key: CacheKey, answer_set: AnswerSet) -> Cached | None:
            found = await super().get(key, answer_set)
            memory.put_now(key, entry())
            return found

    assert await TieredCache(memory, Slow()).get(KEY, VOCABULARY.default_set) is not None


async def test_memory_comes_first_and_learns_from_the_shared_level() -> None:
    level, memory = Level(), MemoryCache(100_000)
    cache = TieredCache(memory, level)
    default = VOCABULARY.default_set
    level.kept[KEY] = entry()
    assert memory.get_now(KEY, default) is None
    assert await cache.get(KEY, default) is not None
    assert memory.get_now(KEY, default) is not None
    assert await cache.get(KEY, default) is not None
    assert level.gets == 1
    assert await cache.get(key(1), default) is None


async def test_nobody_waits_for_a_put_and_close_does() -> None:
    level = Level()
    level.gate.clear()
    cache = TieredCache(MemoryCache(100_000), level, max_pending=2)
    for i in range(4):
        async with asyncio.timeout(1):
            await cache.put(key(i), entry())
        assert await cache.get(key(i), VOCABULARY.default_set), "in memory it is there"
    closing = asyncio.create_task(cache.close())
    await asyncio.sleep(0.01)
    assert not closing.done()
    level.gate.set()
    await closing
    assert list(level.kept) == [key(0), key(1)], "what is beyond the bound is dropped"
    assert level.closed
    await cache.put(key(9), entry())
    await asyncio.sleep(0)
    assert key(9) not in level.kept


async def test_a_level_that_fails_all_the_same_is_told_without_its_words(caplog: pytest.LogCaptureFixture) -> None:
    level = Level()
    level.error = RuntimeError("is it red?")
    cache = TieredCache(MemoryCache(100_000), level)
    await cache.put(KEY, entry())
    await cache.close()
    assert "RuntimeError" in caplog.text
    assert "is it red" not in caplog.text
