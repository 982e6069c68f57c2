"""What one replica runs on."""

from __future__ import annotations

from dataclasses import dataclass

from loadtest.simulation.measured import Measured


@dataclass(frozen=True)
class Machine:
    """What a replica runs on, and what it believes at its start, as the service does after measuring itself.

    Attributes:
        cores: of the replica.
        alone_s, busy_s: mean seconds of an inference on all cores, and on one core while all are busy.
        front_s, refusal_s: seconds of a core for what surrounds an answer, and for a refusal.
        cache_entries: most answers in the cache.
        limit: most questions under way.
    """

    cores: int
    alone_s: float
    busy_s: float
    front_s: float = 0.0
    refusal_s: float = 0.0
    cache_entries: int = 0
    limit: int = 256

    @classmethod
    def of(cls, measured: Measured, cache_bytes: int, cores: int | None = None) -> Machine:
        """The machine that was measured, with so many bytes of cache."""
        return cls(
            cores=cores or measured.cores,
            alone_s=float(measured.alone_s.mean()),
            busy_s=float(measured.busy_s.mean()),
            front_s=measured.front_s,
            refusal_s=measured.refusal_s,
            cache_entries=cache_bytes // measured.entry_bytes,
        )
