"""A request's picture: who it is, what it will cost, and, decoded once for all, what each backend needs of it."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from service.backends import Backend
from service.errors import Code, VQAError
from service.gateway.decode_time import DecodeTime
from service.gateway.question import Picture
from service.gateway.reply import ImageFacts
from service.images import (
    STATISTICS_SIZE,
    ImageLimits,
    Needed,
    decode_image,
    memory_boundary,
    peek,
    picture_statistics,
)
from service.scheduling import SharedWork, Urgency, WorkerThreads
from service.telemetry.metrics import Metrics

log = logging.getLogger(__name__)

# Up to here base64 and SHA-256 take less than a hop to a thread and back under load.
_INLINE_BYTES = 512 * 1024


@dataclass(frozen=True, slots=True)
class Identified:
    """A picture's encoded bytes, their SHA-256 (hexadecimal), and what its header says: format and pixels (a guess
    where it does not say)."""

    data: bytes
    sha256: str
    kind: str
    pixels: int


@dataclass(frozen=True, slots=True)
class Prepared:
    """A decoded picture as each backend wants it (or why it could not be had), and what that cost, in seconds."""

    facts: ImageFacts
    by_backend: Mapping[str, object | VQAError]
    queue_s: float
    decode_s: float


class Pictures:
    """Decodes pictures in a bounded pool; those who ask for the same one at the same time share the work.

    Args:
        threads: the pool.
        limits: of bytes and pixels.
        metrics: where stages are timed.
    """

    def __init__(self, threads: WorkerThreads, limits: ImageLimits, metrics: Metrics) -> None:
        self._threads = threads
        self._limits = limits
        self._stages = metrics.stages
        self._times = DecodeTime()
        self._under_way: SharedWork[Prepared] = SharedWork()

    async def identify(self, picture: Picture) -> Identified:
        """Load a picture's bytes and digest them.

        Raises:
            VQAError: the bytes are not to be had (base64 that is none).
        """

        def work() -> Identified:
            data = picture.load()
            kind, size = peek(data)
            return Identified(data, hashlib.sha256(data).hexdigest(), kind, self._times.pixels(size, len(data)))

        if picture.size is not None and picture.size <= _INLINE_BYTES:
            return work()
        # Not in the pool: who must be refused may not have to wait for those who were not.
        return await asyncio.to_thread(work)

    def expected_s(self, picture: Identified, tenant: str, backends: Sequence[Backend]) -> float:
        """Seconds of the machine that preparing will cost; 0 where it is under way for somebody else."""
        if self._key(picture, tenant, backends) in self._under_way:
            return 0.0
        pixels = min(picture.pixels, self._limits.max_pixels)
        return self._times.expected(picture.kind, pixels) / self._threads.threads

    async def prepare(
        self, picture: Identified, tenant: str, backends: Sequence[Backend], urgency: Urgency
    ) -> Prepared:
        """Decode a picture and prepare it for the backends.

        Raises:
            ImageError: it is refused.
        """

        @memory_boundary(picture.kind)
        def work() -> tuple[ImageFacts, dict[str, object | VQAError]]:
            looked_at = any(backend.calibration and backend.calibration.reads_pictures for backend in backends)
            sizes = [backend.needed for backend in backends] + ([_for_statistics] if looked_at else [])
            image = decode_image(picture.data, limits=self._limits, needed=partial(_largest, sizes))
            statistics = picture_statistics(image.picture) if looked_at else None
            by_backend: dict[str, object | VQAError] = {}
            for backend in backends:
                try:
                    by_backend[backend.name] = backend.prepare(image)
                except MemoryError:
                    raise
                except Exception:
                    # One backend's fault leaves the questions of the others alone.
                    log.exception("the %s could not prepare a picture", backend.name)
                    by_backend[backend.name] = VQAError(
                        Code.BACKEND_FAILED, f"The {backend.name} failed on this picture."
                    )
            return ImageFacts(picture.sha256, image.width, image.height, statistics), by_backend

        async def compute(shared: Urgency) -> Prepared:
            done = await self._threads.run_timed(work, shared)
            facts, by_backend = done.result
            self._times.observe(picture.kind, picture.pixels, done.run_s)
            self._stages["decode_queue"].observe(done.queue_s)
            self._stages["decode"].observe(done.run_s)
            return Prepared(facts, by_backend, done.queue_s, done.run_s)

        return await self._under_way.run(self._key(picture, tenant, backends), urgency, compute)

    @staticmethod
    def _key(picture: Identified, tenant: str, backends: Sequence[Backend]) -> tuple[object, ...]:
        return tenant, picture.sha256, *(backend.name for backend in backends)


def _for_statistics(_height: int, _width: int) -> tuple[int, int]:
    return STATISTICS_SIZE


def _largest(sizes: Sequence[Needed], height: int, width: int) -> tuple[int, int]:
    """What is enough for all of them."""
    heights, widths = zip(*(size(height, width) for size in sizes), strict=True)
    return max(heights), max(widths)
