"""A cache level in Redis, which several replicas share. Whatever is wrong with it is a miss."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Literal

from service.answers import AnswerSet
from service.errors import SettingsError
from service.gateway.breaker import Breaker
from service.gateway.cache import Cached, CacheKey
from service.gateway.cache_codec import decode, encode

if TYPE_CHECKING:
    from redis.asyncio import Redis

log = logging.getLogger(__name__)

Result = Literal["hit", "miss", "error"]

PREFIX: Final = "vqa:1:"
MAX_VALUE_BYTES: Final = 1024 * 1024
TIMEOUT_S: Final = 0.05
_CONNECTIONS: Final = 16
_SEAL_BYTES: Final = 32
_CLOSE_S: Final = 1.0


class RedisCache:
    """A `Cache` in Redis.

    A key there is a digest and a value is sealed with the same secret, for this very key: who can write to Redis can
    neither read a question nor plant an answer.

    Args:
        url: `redis://`, `rediss://` or `unix://`; may hold a password, and is never logged.
        secret: the same in all replicas that share the entries.
        ttl_s: seconds after which Redis forgets an entry.
        timeout_s: most seconds that one look-up or put may take, the connecting included.
        max_value_bytes: larger entries are not stored.
        observe: told what came of each look-up, and of each put that failed. Look-ups that are not made because Redis
            failed just before are errors too.
        clock: seconds, for the back-off.

    Raises:
        SettingsError: the package `redis` is not installed, or the address cannot be used.
    """

    def __init__(
        self,
        url: str,
        secret: bytes,
        ttl_s: int,
        *,
        timeout_s: float = TIMEOUT_S,
        max_value_bytes: int = MAX_VALUE_BYTES,
        observe: Callable[[Result], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._redis = _client(url, timeout_s)
        self._secret = secret
        self._ttl_s = ttl_s
        self._timeout_s = timeout_s
        self._max_value_bytes = max_value_bytes
        self._observe = observe
        self._breaker = Breaker("the shared cache", clock)
        # A Redis that is full, or a read-only replica, still gives what it has.
        self._writing = Breaker("writing to the shared cache", clock)
        self._wrong_data_told = False

    async def get(self, key: CacheKey, answer_set: AnswerSet) -> Cached | None:
        """The entry; None where there is none, Redis cannot be asked in time, or what it has is not to be trusted."""
        name = self._name(key)
        ticket = self._breaker.enter()
        if ticket is None:
            self._observe("error")
            return None
        try:
            async with asyncio.timeout(self._timeout_s):
                value = await self._redis.get(name)
        except Exception as error:  # noqa: BLE001 - whatever a client library throws is a miss
            if not _is_of_another_type(error):
                self._failed(self._breaker, ticket, error)
                return None
            value = b""
        finally:
            self._breaker.left(ticket)
        self._breaker.succeeded(ticket)
        if value is None:
            self._observe("miss")
            return None
        try:
            found = decode(self._unsealed(name, value), answer_set)
        except ValueError:
            self._observe("error")
            if not self._wrong_data_told:
                self._wrong_data_told = True
                log.warning("the shared cache holds values that are not this service's own; they are passed over")
            return None
        self._observe("hit")
        return found

    async def put(self, key: CacheKey, cached: Cached) -> None:
        """Store an entry, or not."""
        ticket = self._breaker.enter()
        if ticket is None:
            return
        writing = self._writing.enter()
        try:
            if writing is not None and await self._store(key, cached):
                self._breaker.succeeded(ticket)
                self._writing.succeeded(writing)
        except Exception as error:  # noqa: BLE001 - likewise
            if writing is not None and _concerns_writing(error):
                self._breaker.succeeded(ticket)
                self._failed(self._writing, writing, error)
            else:
                self._failed(self._breaker, ticket, error)
        finally:
            self._breaker.left(ticket)
            if writing is not None:
                self._writing.left(writing)

    async def _store(self, key: CacheKey, cached: Cached) -> bool:
        """Whether Redis was asked to store the entry, and did."""
        data = encode(cached)
        if len(data) + _SEAL_BYTES > self._max_value_bytes:
            return False
        name = self._name(key)
        async with asyncio.timeout(self._timeout_s):
            await self._redis.set(name, self._seal(name, data) + data, ex=self._ttl_s)
        return True

    async def close(self) -> None:
        """Close the connections."""
        try:
            async with asyncio.timeout(_CLOSE_S):
                await self._redis.aclose()
        except Exception as error:  # noqa: BLE001 - nothing is left to be done about it
            log.debug("the shared cache could not be closed: %s", type(error).__name__)

    def _name(self, key: CacheKey) -> str:
        return PREFIX + key.digest(self._secret)

    def _seal(self, name: str, data: bytes) -> bytes:
        mac = hmac.new(self._secret, name.encode("ascii"), hashlib.sha256)
        mac.update(data)
        return mac.digest()

    def _unsealed(self, name: str, value: bytes | str) -> bytes:
        if isinstance(value, str) or len(value) > self._max_value_bytes:
            raise ValueError("this is no value of ours")
        seal, data = value[:_SEAL_BYTES], value[_SEAL_BYTES:]
        if not hmac.compare_digest(seal, self._seal(name, data)):
            raise ValueError("the seal is wrong")
        return data

    def _failed(self, breaker: Breaker, ticket: int, error: Exception) -> None:
        self._observe("error")
        breaker.failed(ticket, _why(error))


def _client(url: str, timeout_s: float) -> Redis:
    try:
        from redis.asyncio import BlockingConnectionPool, Redis
        from redis.asyncio.retry import Retry
        from redis.backoff import NoBackoff
        from redis.maint_notifications import MaintNotificationsConfig
    except ImportError:
        raise SettingsError(
            "setting redis_url (VQA_REDIS_URL): the package redis is not installed; install the extra [redis]"
        ) from None
    try:
        pool = BlockingConnectionPool.from_url(
            url,
            max_connections=_CONNECTIONS,
            timeout=timeout_s,
            socket_timeout=timeout_s,
            socket_connect_timeout=timeout_s,
            # The level is skipped after a failure; trying again at once would only make a caller wait longer.
            retry=Retry(NoBackoff(), 0),
            # With these notices on, the pool takes a connection that the server closed for one that has news.
            maint_notifications_config=MaintNotificationsConfig(enabled=False),
            decode_responses=False,
        )
        # Made and thrown away, unconnected: an option that no connection takes is found here and not at every look-up.
        pool.connection_class(**pool.connection_kwargs)
    except Exception:  # noqa: BLE001 - what it says may quote the address and the password in it
        raise SettingsError("setting redis_url (VQA_REDIS_URL): this is no address that can be used") from None
    client: Redis = Redis.from_pool(pool)
    return client


def _is_of_another_type(error: Exception) -> bool:
    """Whether Redis is well, but holds a list or the like where a value of ours should be."""
    from redis import exceptions

    return isinstance(error, exceptions.ResponseError) and str(error).startswith("WRONGTYPE")


def _concerns_writing(error: Exception) -> bool:
    """Whether Redis is well, but stores nothing."""
    from redis import exceptions

    return isinstance(error, exceptions.OutOfMemoryError | exceptions.ReadOnlyError)


def _why(error: Exception) -> str:
    """An error in words of our own: its own ones could hold an address."""
    from redis import exceptions

    known: list[tuple[Any, str]] = [
        (exceptions.AuthenticationError | exceptions.AuthorizationError, "it refuses the password"),
        (exceptions.NoPermissionError, "it does not permit these commands"),
        (exceptions.OutOfMemoryError, "it is full"),
        (exceptions.ReadOnlyError, "it is read-only"),
        (exceptions.BusyLoadingError, "it is loading its data"),
        (TimeoutError | exceptions.TimeoutError, "it did not answer in time"),
        (OSError | exceptions.ConnectionError, "it cannot be reached"),
    ]
    return next((words for kind, words in known if isinstance(error, kind)), type(error).__name__)
