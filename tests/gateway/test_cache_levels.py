"""Which levels the settings make, and that they are counted."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from service.errors import SettingsError
from service.gateway.cache import MemoryCache, TieredCache
from service.gateway.cache_levels import build_cache
from service.settings import load_settings
from service.telemetry.metrics import Metrics
from tests.gateway.test_cache import KEY, VOCABULARY, entry
from tests.support.redis import redis_server

DEFAULT = VOCABULARY.default_set
SECRET = "0123456789abcdef"


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, labels)


async def test_memory_alone() -> None:
    metrics = Metrics()
    cache = build_cache(load_settings(cache_bytes=3000), metrics)
    assert isinstance(cache, MemoryCache)
    for i in range(5):
        await cache.put(dataclasses.replace(KEY, question=f"{i}"), entry())
    assert value(metrics, "vqa_cache_entries") == cache.entries > 0
    assert value(metrics, "vqa_cache_bytes") == cache.bytes <= 3000
    assert value(metrics, "vqa_cache_evictions_total") == 5 - cache.entries


async def test_nothing() -> None:
    cache = build_cache(load_settings(cache_bytes=0), Metrics())
    await cache.put(KEY, entry())
    assert await cache.get(KEY, DEFAULT) is None


@pytest.mark.parametrize("cache_bytes", [0, 100_000])
async def test_replicas_share(tmp_path: Path, cache_bytes: int) -> None:
    with redis_server(tmp_path) as server:
        settings = load_settings(cache_bytes=cache_bytes, redis_url=server.url, cache_secret=SECRET)
        metrics = Metrics()
        first, second = build_cache(settings, Metrics()), build_cache(settings, metrics)
        assert isinstance(second, TieredCache)
        assert await second.get(KEY, DEFAULT) is None
        await first.put(KEY, entry())
        await first.close()
        assert await second.get(KEY, DEFAULT) is not None
        await second.close()
    assert value(metrics, "vqa_shared_cache_total", result="hit") == 1
    assert value(metrics, "vqa_shared_cache_total", result="miss") == 1


def test_an_address_that_cannot_be_used() -> None:
    with pytest.raises(SettingsError, match="redis_url"):
        build_cache(load_settings(redis_url="redis://x?colour=red", cache_secret=SECRET), Metrics())
