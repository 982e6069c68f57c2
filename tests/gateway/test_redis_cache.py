"""The shared level against a real Redis: what it gives, and that nothing that happens to it reaches a caller."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import socket
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from service.answers import AnswerSet
from service.errors import SettingsError
from service.gateway.cache import Cached, CacheKey, MemoryCache, TieredCache
from service.gateway.redis_cache import PREFIX, RedisCache
from tests.gateway.test_cache import KEY, SECRET, VOCABULARY, entry
from tests.support.redis import RedisServer, redis_server

DEFAULT = VOCABULARY.default_set
# Generous where the time is no property under test: another test may have the processor.
SLOW_S = 2.0


class Clock:
    """Time that a test moves."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Level:
    """A RedisCache with what it told."""

    def __init__(self, url: str, *, secret: bytes = SECRET, timeout_s: float = SLOW_S, **options: int) -> None:
        self.clock = Clock()
        self.results: list[str] = []
        self.cache = RedisCache(
            url, secret, 60, timeout_s=timeout_s, observe=self.results.append, clock=self.clock, **options
        )

    async def get(self, key: CacheKey = KEY, answer_set: AnswerSet = DEFAULT) -> Cached | None:
        return await self.cache.get(key, answer_set)

    async def put(self, cached: Cached | None = None, key: CacheKey = KEY) -> None:
        await self.cache.put(key, cached or entry())

    def take(self) -> list[str]:
        """What was told since the last call."""
        told, self.results[:] = self.results[:], []
        return told


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with redis_server(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
async def raw(shared_server: RedisServer) -> AsyncIterator:
    """A plain client of an emptied server."""
    from redis.asyncio import Redis

    client = Redis.from_url(shared_server.url)
    await client.flushall()
    yield client
    await client.aclose()


@pytest.fixture
async def level(shared_server: RedisServer, raw) -> AsyncIterator[Level]:
    made = Level(shared_server.url)
    yield made
    await made.cache.close()


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[RedisServer]:
    """A server for a test that breaks it."""
    with redis_server(tmp_path) as server:
        yield server


# what it gives


async def test_what_one_replica_puts_another_gets(level: Level, shared_server: RedisServer) -> None:
    assert await level.get() is None
    put = entry(withheld=True)
    await level.put(put)
    other = Level(shared_server.url)
    got = await other.get()
    await other.cache.close()
    assert got is not None
    assert got.posterior.probabilities.tobytes() == put.posterior.probabilities.tobytes()
    assert (got.warnings, got.withheld, got.width, got.height) == (put.warnings, True, 64, 48)
    assert (level.take(), other.take()) == (["miss"], ["hit"])


async def test_nothing_can_be_read_there(level: Level, raw) -> None:
    await level.put()
    [name] = await raw.keys()
    assert name == (PREFIX + KEY.digest(SECRET)).encode()
    value = await raw.get(name)
    for text in (KEY.question, KEY.tenant, KEY.picture):
        assert text.encode() not in name + value
    assert 0 < await raw.ttl(name) <= 60


async def test_another_tenant_or_secret_finds_nothing(level: Level, shared_server: RedisServer) -> None:
    await level.put()
    assert await level.get(dataclasses.replace(KEY, tenant="other")) is None
    stranger = Level(shared_server.url, secret=b"another secret..")
    assert await stranger.get() is None
    await stranger.cache.close()


async def test_many_at_once_share_a_few_connections(level: Level, raw) -> None:
    await level.put()
    got = await asyncio.gather(*(level.get() for _ in range(300)))
    assert None not in got
    clients = await raw.client_list()
    assert len(clients) <= 18


async def test_a_value_that_is_too_large_stays_out(shared_server: RedisServer, raw) -> None:
    small = Level(shared_server.url, max_value_bytes=200)
    await small.put()
    await small.cache.close()
    assert await raw.dbsize() == 0
    assert small.take() == []


async def test_behind_memory(level: Level, shared_server: RedisServer) -> None:
    first = TieredCache(MemoryCache(100_000), RedisCache(shared_server.url, SECRET, 60, timeout_s=SLOW_S))
    await first.put(KEY, entry())
    await first.close()
    assert await level.get() is not None


# what is wrong with it


async def test_wrong_data_is_a_miss_and_no_reason_to_stay_away(
    level: Level, raw, caplog: pytest.LogCaptureFixture
) -> None:
    name = PREFIX + KEY.digest(SECRET)
    await level.put()
    value = await raw.get(name)
    other = dataclasses.replace(KEY, question="is it blue?")
    wrong = [b"", b"is it red?", value[:-1], value + b"\0", value[:40] + bytes([value[40] ^ 1]) + value[41:]]
    for data in [*wrong, b"x" * 2**21]:
        await raw.set(name, data)
        assert await level.get() is None
    await raw.set(PREFIX + other.digest(SECRET), value)
    assert await level.get(other) is None, "an entry belongs to its key"
    await raw.delete(name)
    await raw.lpush(name, "is it red?")
    assert await level.get() is None
    assert level.take() == ["error"] * 8
    await level.put()
    assert await level.get() is not None, "a put mends it"
    assert len(caplog.records) == 1
    assert "is it red" not in caplog.text


async def test_gone_mid_way_and_back(own_server: RedisServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "service")
    level = Level(own_server.url)
    await level.put()
    await asyncio.gather(*(level.get() for _ in range(30)))  # several connections, all of which will be dead
    level.take()
    own_server.stop()
    assert await level.get() is None
    started = time.perf_counter()
    for _ in range(1000):
        assert await level.get() is None
        await level.put()
    assert time.perf_counter() - started < 1.5, "left out, it costs nothing"
    assert set(level.take()) == {"error"}
    level.clock.now += 1
    assert await level.get() is None, "the probe fails too"
    own_server.start()
    level.clock.now += 1.5
    assert await level.get() is None, "the pause has doubled"
    assert set(level.take()) == {"error"}
    level.clock.now += 1
    assert await level.get() is None
    assert level.take() == ["miss"], "asked again: it came back empty"
    await level.put()
    assert await level.get() is not None
    own_server.stop()
    own_server.start()
    await asyncio.sleep(0.05)  # the event loop hears of the closed connections
    assert await level.get() is None
    assert level.take() == ["hit", "miss"], "connections that died unseen are replaced at once"
    messages = [record.getMessage() for record in caplog.records]
    assert messages == [
        "the shared cache cannot be used and is left out: it cannot be reached",
        "the shared cache works again",
    ]
    await level.cache.close()


async def test_one_that_hangs_costs_one_timeout_a_pause(
    own_server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    level = Level(own_server.url, timeout_s=0.2)
    await level.put()
    own_server.pause()
    started = time.perf_counter()
    assert await asyncio.gather(*(level.get() for _ in range(50))) == [None] * 50
    for _ in range(50):
        assert await level.get() is None
    assert 0.15 < time.perf_counter() - started < 3.0
    level.clock.now += 1
    started = time.perf_counter()
    assert await asyncio.gather(*(level.get() for _ in range(50))) == [None] * 50
    assert 0.15 < time.perf_counter() - started < 3.0, "one probe, the others go on without it"
    assert [record.getMessage() for record in caplog.records] == [
        "the shared cache cannot be used and is left out: it did not answer in time"
    ]
    own_server.resume()
    level.clock.now += 2
    for _ in range(20):
        found = await level.get()
        if found is not None:
            break
        level.clock.now += 30
        await asyncio.sleep(0.05)
    assert found is not None
    await level.cache.close()


async def test_close_does_not_hang_with_it(own_server: RedisServer) -> None:
    level = Level(own_server.url, timeout_s=0.2)
    cache = TieredCache(MemoryCache(10**6), level.cache)
    await level.get()
    own_server.pause()
    for _ in range(10):
        await cache.put(KEY, entry())
    async with asyncio.timeout(5):
        await cache.close()


async def test_a_caller_who_leaves_spoils_nothing_for_the_next(own_server: RedisServer) -> None:
    """Cancelled between question and answer: the next one must not get the answer that was meant for it."""
    level = Level(own_server.url)
    other = dataclasses.replace(KEY, question="another?")
    await level.put(entry(width=1))
    await level.put(entry(width=2), other)
    for _ in range(3):
        own_server.pause()
        tasks = [asyncio.create_task(level.get()) for _ in range(20)]
        await asyncio.sleep(0.05)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        own_server.resume()
        for _ in range(20):
            got, got_other = await asyncio.gather(level.get(), level.get(other))
            assert got is not None
            assert got_other is not None
            assert (got.width, got_other.width) == (1, 2)
    await level.cache.close()


@pytest.mark.parametrize("given", [":wrong-word@", ""])
async def test_a_wrong_password_is_a_miss_and_no_secret_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, given: str
) -> None:
    caplog.set_level(logging.DEBUG)
    with redis_server(tmp_path, "--requirepass", "right-word") as server:
        level = Level(server.url.replace("//", f"//{given}"))
        assert await level.get() is None
        await level.put()
        assert level.take() == ["error"]
        await level.cache.close()
        told = [r.getMessage() for r in caplog.records if r.name.startswith("service")]
        assert told == ["the shared cache cannot be used and is left out: it refuses the password"]
        assert "wrong-word" not in caplog.text
        right = Level(server.url.replace("//", "//:right-word@"))
        await right.put()
        assert await right.get() is not None
        await right.cache.close()


async def test_a_full_one_still_gives_what_it_has(own_server: RedisServer, caplog: pytest.LogCaptureFixture) -> None:
    from redis.asyncio import Redis

    level, raw = Level(own_server.url), Redis.from_url(own_server.url)
    await level.put()
    await raw.config_set("maxmemory-policy", "noeviction")
    await raw.config_set("maxmemory", "1")
    other = dataclasses.replace(KEY, question="another?")
    for _ in range(3):
        await level.put(entry(), other)
    assert await level.get() is not None
    assert await level.get(other) is None
    assert level.take() == ["error", "hit", "miss"], "one put was tried"
    assert [record.getMessage() for record in caplog.records] == [
        "writing to the shared cache cannot be used and is left out: it is full"
    ]
    await raw.config_set("maxmemory", "0")
    level.clock.now += 1
    await level.put(entry(), other)
    assert await level.get(other) is not None
    await raw.aclose()
    await level.cache.close()


async def test_a_server_that_is_no_redis_is_a_miss() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    level = Level(f"redis://127.0.0.1:{port}")
    assert await level.get() is None
    assert level.take() == ["error"]
    await level.cache.close()
    server.close()


async def test_an_address_where_nobody_is() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    for url in (f"redis://127.0.0.1:{port}", "unix:///nowhere/redis.sock", f"rediss://127.0.0.1:{port}"):
        level = Level(url)
        assert await level.get() is None
        assert level.take() == ["error"]
        await level.cache.close()


# the start


@pytest.mark.parametrize(
    "url", ["redis://:pa/ss-word@host:1", "redis://host?colour=ss-word", "redis://host?db=ss-word", "http://ss-word"]
)
def test_an_address_that_cannot_be_used_is_refused_without_quoting_it(url: str) -> None:
    with pytest.raises(SettingsError, match=r"redis_url \(VQA_REDIS_URL\)") as caught:
        RedisCache(url, SECRET, 60)
    assert "ss-word" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_a_missing_package_is_told_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis.asyncio", None)
    with pytest.raises(SettingsError, match=r"redis_url .*\[redis\]"):
        RedisCache("redis://localhost", SECRET, 60)
