"""From settings to a cache: which levels there are."""

from __future__ import annotations

from service.errors import SettingsError
from service.gateway.cache import MemoryCache, TieredCache
from service.gateway.redis_cache import RedisCache
from service.settings import Settings
from service.telemetry.metrics import Metrics


def build_cache(settings: Settings, metrics: Metrics) -> MemoryCache | TieredCache:
    """The cache that the settings ask for; one that keeps nothing where they ask for none.

    Raises:
        SettingsError: Redis is wanted, and its package is missing or its address cannot be used.
    """

    def observe(held: int, entries: int) -> None:
        metrics.cache_bytes.set(held)
        metrics.cache_entries.set(entries)

    memory = MemoryCache(settings.cache_bytes, observe, metrics.cache_evictions.inc)
    if settings.redis_url is None:
        return memory
    if settings.cache_secret is None:
        raise SettingsError("setting cache_secret (VQA_CACHE_SECRET): redis_url needs it")
    shared = RedisCache(
        settings.redis_url.get_secret_value(),
        settings.cache_secret.get_secret_value().encode("utf-8", "surrogateescape"),
        settings.cache_ttl_s,
        observe=lambda result: metrics.shared_cache.labels(result).inc(),
    )
    return TieredCache(memory, shared)
