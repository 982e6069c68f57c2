"""A short run of the decoder's fuzzer, and a check that the fuzzer notices what it looks for."""

from __future__ import annotations

import os
import signal

import pytest

from tests.fuzz import decoder
from tests.fuzz.decoder import Worker, fuzz, make
from tests.fuzz.seeds import seeds


def test_a_thousand_mutated_files() -> None:
    report = fuzz(range(1000), seed=2)
    assert report.findings == []
    # Mutations that nothing survives, or that everything survives, would test nothing.
    assert report.outcomes["decoded"] > 50
    assert report.outcomes["image_truncated"] > 50
    assert report.outcomes["image_undecodable"] > 50


def test_a_file_is_drawn_from_its_number_alone() -> None:
    files = seeds()
    assert make(7, 3, files) == make(7, 3, seeds())
    assert make(7, 3, files) != make(7, 4, files)


def test_a_death_of_the_worker_is_noticed() -> None:
    worker = Worker()
    assert "outcome" in worker.decode(b"x")
    os.kill(worker.pid, signal.SIGKILL)
    assert "died" in worker.decode(b"x")["finding"]
    worker.stop()


def test_a_hanging_worker_is_noticed_and_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = Worker()
    assert "outcome" in worker.decode(b"x")
    monkeypatch.setattr(decoder, "SECONDS_PER_FILE", 0.2)
    os.kill(worker.pid, signal.SIGSTOP)
    assert "longer" in worker.decode(b"x")["finding"]
    assert not worker.alive
