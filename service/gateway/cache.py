"""What was answered before: posteriors by everything that they depend on, in memory and, where wanted, shared.

The cache holds what a backend said, before calibration, abstention and spelling: these stay each request's own.
"""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import hmac
import logging
import sys
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextvars import Context
from dataclasses import dataclass
from typing import Final, Protocol

from service.answers import CHOICES, AnswerSet, Posterior
from service.backends import Notice

log = logging.getLogger(__name__)

# What an entry takes beside its arrays and texts: the objects themselves and their place in the cache (a test measures
# it). Too much is the safe side.
_ENTRY_OVERHEAD: Final = 800
_NOTICE_OVERHEAD: Final = 64

MAX_PENDING_PUTS: Final = 64
"""Most entries on their way to the shared level; further ones are not sent."""


@dataclass(frozen=True, slots=True)
class CacheKey:
    """Everything that a posterior depends on, and whose it is.

    Attributes:
        tenant: whose question it is; tenants never see each other's entries, "" where there are none.
        picture: SHA-256 of the picture's encoded bytes, hexadecimal.
        question: the text as `Backend.canonical` gives it.
        answer_set: the answer set's `identity`.
        model, revision: the model that answers.
        preprocessing: version of what turns bytes into the model's input.
        policy: the routing policy, which may ask several models.
    """

    tenant: str
    picture: str
    question: str
    answer_set: str
    model: str
    revision: str
    preprocessing: str
    policy: str

    def digest(self, secret: bytes) -> str:
        """HMAC-SHA256 of all fields, hexadecimal: a name for outside this process, of which nothing can be read.

        Without the secret nobody can even try whether a guessed question was asked.
        """
        mac = hmac.new(secret, digestmod=hashlib.sha256)
        for text in self._texts():
            part = text.encode("utf-8", "surrogatepass")
            # The length goes first, so that no two keys are the same bytes ("ab", "c" and "a", "bc").
            mac.update(len(part).to_bytes(8, "big"))
            mac.update(part)
        return mac.hexdigest()

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the key's own texts take; the others are shared, or the entry's to count."""
        return sys.getsizeof(self.picture) + sys.getsizeof(self.question)

    def _texts(self) -> tuple[str, ...]:
        return (
            self.tenant,
            self.picture,
            self.question,
            self.answer_set,
            self.model,
            self.revision,
            self.preprocessing,
            self.policy,
        )


@dataclass(frozen=True, slots=True)
class Cached:
    """A backend's reply to one question, without what it cost.

    Attributes:
        posterior: over the answer set in the spelling of whoever asks (in the cache: of who asked first).
        warnings, withheld: as in `Scored`.
        width, height: the upright picture's size in pixels.
        statistics: of the picture, as in `ImageFacts`.
        own_label_bytes: bytes of memory of the posterior's labels where they are this entry's own; 0 where they are
            the model's or the answer set's.
    """

    posterior: Posterior
    warnings: tuple[Notice, ...]
    withheld: bool
    width: int
    height: int
    statistics: Mapping[str, float] | None = None
    own_label_bytes: int = 0

    @property
    def nbytes(self) -> int:
        """Bytes of memory that are this entry's own, about.

        The model's labels and the sets that the service or the model names are shared by all entries and not counted;
        a caller's own choices are.
        """
        posterior, answer_set = self.posterior, self.posterior.answer_set
        size = _ENTRY_OVERHEAD + posterior.probabilities.nbytes + posterior.label_of.nbytes + self.own_label_bytes
        size += sum(_NOTICE_OVERHEAD + sys.getsizeof(notice.message) for notice in self.warnings)
        if self.statistics is not None:
            size += sys.getsizeof(self.statistics) + sum(map(sys.getsizeof, self.statistics.values()))
        if answer_set.name == CHOICES:
            texts = (*answer_set.spellings, *answer_set.keys, answer_set.identity)
            size += sum(map(sys.getsizeof, texts)) + sys.getsizeof(texts)
        return size

    def respelled(self, answer_set: AnswerSet) -> Cached:
        """The same in another caller's spelling of the same answer set.

        Raises:
            ValueError: the set is another one.
        """
        if answer_set is self.posterior.answer_set:
            return self
        return dataclasses.replace(self, posterior=self.posterior.respelled(answer_set))


class Cache(Protocol):
    """A place for entries. It may forget at any time, and it never fails: what cannot be had is not there."""

    async def get(self, key: CacheKey, answer_set: AnswerSet) -> Cached | None:
        """The entry in the spelling of `answer_set`, whose identity is the key's; None where there is none."""

    async def put(self, key: CacheKey, cached: Cached) -> None:
        """Keep an entry, if possible."""

    async def close(self) -> None:
        """Finish what is under way and let go of everything."""


class MemoryCache:
    """The entries used last, within a bound in bytes. For one event loop, not for several threads.

    Args:
        limit_bytes: most bytes, by the entries' own estimate; 0 keeps nothing. A larger entry is not kept.
        observe: told the bytes and the number of entries after each change.
        on_evict: called for each entry that had to make room.
    """

    def __init__(
        self,
        limit_bytes: int,
        observe: Callable[[int, int], None] = lambda _bytes, _entries: None,
        on_evict: Callable[[], None] = lambda: None,
    ) -> None:
        self._limit = limit_bytes
        self._observe = observe
        self._on_evict = on_evict
        self._entries: OrderedDict[CacheKey, tuple[Cached, int]] = OrderedDict()
        self._bytes = 0

    @property
    def bytes(self) -> int:
        """Bytes held, by the entries' own estimate."""
        return self._bytes

    @property
    def entries(self) -> int:
        """Entries held."""
        return len(self._entries)

    def get_now(self, key: CacheKey, answer_set: AnswerSet) -> Cached | None:
        """As `get`, at once."""
        found = self._entries.get(key)
        if found is None:
            return None
        self._entries.move_to_end(key)
        return found[0].respelled(answer_set)

    def put_now(self, key: CacheKey, cached: Cached) -> None:
        """As `put`, at once."""
        size = key.nbytes + cached.nbytes
        replaced = self._entries.pop(key, None)
        if replaced is not None:
            self._bytes -= replaced[1]
        if size <= self._limit:
            self._entries[key] = cached, size
            self._bytes += size
            while self._bytes > self._limit:
                _, (_, freed) = self._entries.popitem(last=False)
                self._bytes -= freed
                self._on_evict()
        elif replaced is None:
            return
        self._observe(self._bytes, len(self._entries))

    async def get(self, key: CacheKey, answer_set: AnswerSet) -> Cached | None:
        """The entry, which from now on is the one used last."""
        return self.get_now(key, answer_set)

    async def put(self, key: CacheKey, cached: Cached) -> None:
        """Keep an entry in place of those that were not used for the longest time."""
        self.put_now(key, cached)

    async def close(self) -> None:
        """Forget everything."""
        self._entries.clear()
        self._bytes = 0
        self._observe(0, 0)


class TieredCache:
    """Memory in front of a level that several processes share.

    Args:
        memory: asked first; gets what the shared level had.
        shared: closed with this cache. Putting into it never delays whoever puts.
        max_pending: most puts under way to the shared level; further entries stay in memory only.
    """

    def __init__(self, memory: MemoryCache, shared: Cache, max_pending: int = MAX_PENDING_PUTS) -> None:
        self._memory = memory
        self._shared = shared
        self._max_pending = max_pending
        self._pending: set[asyncio.Task[None]] = set()
        self._closed = False

    async def get(self, key: CacheKey, answer_set: AnswerSet) -> Cached | None:
        """The entry from the nearest level that has it."""
        if (found := self._memory.get_now(key, answer_set)) is not None:
            return found
        if (found := await self._shared.get(key, answer_set)) is None:
            # It may have been computed here meanwhile.
            return self._memory.get_now(key, answer_set)
        self._memory.put_now(key, found)
        return found

    async def put(self, key: CacheKey, cached: Cached) -> None:
        """Keep an entry in memory now, and in the shared level soon."""
        self._memory.put_now(key, cached)
        if self._closed or len(self._pending) >= self._max_pending:
            return
        # Nobody's context: the request that asked is over before its entry has arrived.
        task = asyncio.get_running_loop().create_task(self._shared.put(key, cached), context=Context())
        self._pending.add(task)
        task.add_done_callback(self._arrived)

    async def close(self) -> None:
        """Wait for the puts under way (the shared level bounds their time) and close both levels."""
        self._closed = True
        if self._pending:
            await asyncio.wait(set(self._pending))
        await self._shared.close()
        await self._memory.close()

    def _arrived(self, task: asyncio.Task[None]) -> None:
        self._pending.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            # A cache does not fail; should one do so all the same, it is said without its words.
            log.error("an entry could not be put into the shared cache: %s", type(error).__name__)
