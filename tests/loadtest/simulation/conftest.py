"""A small machine, and a way to run a replica through a scenario worked out by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest

from loadtest.simulation.machine import Machine
from loadtest.simulation.measured import SIZES, Measured
from loadtest.simulation.question import Outcome, Question
from loadtest.simulation.replica import Replica
from loadtest.simulation.timeline import Timeline


@dataclass
class Scenario:
    """One replica and what became of its questions, as (name, outcome, moment)."""

    machine: Machine
    timeline: Timeline = field(default_factory=Timeline)
    ended: list[tuple[str, Outcome, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.replica = Replica(0, self.machine, self.timeline, self._done)
        self._names: dict[Question, str] = {}

    def asks(
        self, name: str, at: float, *, within: float = 100.0, picture: int = 0, prepare: float = 0.0, busy: float = 1.0
    ) -> None:
        """One more question; those of one name and picture are the same question."""
        question = Question(at, at + within, picture, hash((name, picture)), 1, prepare, busy, busy)
        self._names[question] = name
        self.timeline.at(at, self.replica.offer, question)

    def run(self, *, crash_at: float | None = None) -> list[tuple[str, Outcome, float]]:
        """Until nothing happens any more."""
        self.lost: list[str] = []
        if crash_at is not None:
            self.timeline.at(crash_at, self._crash)

        async def in_a_task() -> None:
            while self.timeline.next_at < float("inf"):
                self.timeline.step()

        asyncio.run(in_a_task())
        return self.ended

    def _crash(self) -> None:
        self.lost = [self._names[question] for question in self.replica.crash()]

    def _done(self, question: Question, outcome: Outcome) -> None:
        self.ended.append((self._names[question], outcome, round(self.timeline.now, 6)))


@pytest.fixture
def scenario() -> Callable[..., Scenario]:
    """Makes a replica with so many cores whose inferences take a second and never have all cores."""

    def make(cores: int = 1, **changes: float) -> Scenario:
        return Scenario(Machine(cores, alone_s=2.0, busy_s=1.0, **changes))  # type: ignore[arg-type]

    return make


@pytest.fixture
def measured() -> Measured:
    """Round figures: 10 ms to prepare, 100 ms to infer, two cores: 2 / 0.11 = 18.2 questions a second."""
    return Measured(
        model="round",
        cores=2,
        prepare_s={size: np.array([0.01]) for size in SIZES},
        alone_s=np.array([0.05]),
        busy_s=np.array([0.1]),
        picture_bytes=dict.fromkeys(SIZES, 100_000.0),
        front_s=0.0,
        refusal_s=0.0,
        start_s=5.0,
        entry_bytes=64 * 1024,
        shared_bytes=32 * 1024,
        series=100,
    )
