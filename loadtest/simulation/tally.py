"""What became of the questions: counts, latencies, and the checks that every run has to pass."""

from __future__ import annotations

import math
from array import array
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loadtest.simulation.question import Outcome

_MOST_ERROR = 1e-6


class BookkeepingError(AssertionError):
    """A run contradicts itself, and its figures are not to be used."""


class Tally:
    """Counted as questions end.

    Args:
        seconds: until the last arrival.
        warm_s: figures are of questions that arrive after so many seconds; the checks are of all.

    Attributes:
        by_minute: (minutes, outcomes) by the minute of arrival, of all questions.
        hits_by_minute: (minutes,) of those, answered by a cache.
        retried: questions that were asked a second time.
        present: questions in the system now.
        present_s: the integral over time of their number.
        sojourns_s: the sum of the times that all questions were in the system.
    """

    def __init__(self, seconds: float, warm_s: float = 0.0) -> None:
        minutes = int(seconds / 60) + 1
        self.by_minute = np.zeros((minutes, len(Outcome)), dtype=np.int64)
        self.hits_by_minute = np.zeros(minutes, dtype=np.int64)
        self.retried = self.present = 0
        self.present_s = self.sojourns_s = 0.0
        self._counts, self._all, self._hits = [0] * len(Outcome), 0, 0
        self._warm_s, self._seconds, self._since = warm_s, seconds, 0.0
        self._latencies, self._ends = array("d"), array("d")

    def came(self, now: float) -> None:
        """A question arrived."""
        self._account(now)
        self.present += 1

    def ended(self, arrived: float, now: float, outcome: Outcome, cached: bool) -> None:
        """A question that arrived then ends now."""
        self._account(now)
        self.present -= 1
        self.sojourns_s += now - arrived
        minute = int(arrived / 60)
        self.by_minute[minute, outcome] += 1
        self._all += 1
        if cached:
            self.hits_by_minute[minute] += 1
        if outcome is Outcome.ANSWERED:
            self._ends.append(now)
        if arrived < self._warm_s:
            return
        self._counts[outcome] += 1
        self._hits += cached
        if outcome is Outcome.ANSWERED:
            self._latencies.append(now - arrived)

    @property
    def goodput_per_s(self) -> float:
        """Answers in time a second, between the warm-up and the last arrival; what is answered later is of no second
        that is counted."""
        ends = np.frombuffer(self._ends, dtype=np.float64)
        inside = int(((ends >= self._warm_s) & (ends <= self._seconds)).sum())
        return inside / max(self._seconds - self._warm_s, 1e-9)

    def _account(self, now: float) -> None:
        self.present_s += self.present * (now - self._since)
        self._since = now

    @property
    def latencies_s(self) -> NDArray[np.float64]:
        """Of the questions that were answered in time."""
        return np.frombuffer(self._latencies, dtype=np.float64)

    @property
    def asked(self) -> int:
        """Questions that count."""
        return sum(self._counts)

    def count(self, outcome: Outcome) -> int:
        """Questions that count and ended so."""
        return self._counts[outcome]

    def figures(self) -> dict[str, Any]:
        """Shares of the questions that count, and quantiles (values that occurred) of those answered in time."""
        asked, ordered = max(self.asked, 1), np.sort(self.latencies_s)

        def quantile_ms(share: float) -> float:
            return float(ordered[max(0, math.ceil(share * len(ordered)) - 1)]) * 1000 if len(ordered) else math.nan

        return {
            "questions": self.asked,
            "in_time": self._counts[Outcome.ANSWERED] / asked,
            "refused": self._counts[Outcome.REFUSED] / asked,
            "late": self._counts[Outcome.LATE] / asked,
            "lost": self._counts[Outcome.LOST] / asked,
            "hit_ratio": self._hits / asked,
            "goodput_per_s": self.goodput_per_s,
            "p50_ms": quantile_ms(0.5),
            "p99_ms": quantile_ms(0.99),
        }

    def check(self, asked: int) -> None:
        """Every question ended as exactly one thing, and Little's law holds: the mean number in the system is the
        arrival rate times the mean time in it, so that both integrals are one (Little, 1961).

        Raises:
            BookkeepingError: one of them does not hold.
        """
        if self._all != asked or self.present:
            raise BookkeepingError(f"{asked} questions were asked, {self._all} ended, {self.present} are left")
        if abs(self.present_s - self.sojourns_s) > _MOST_ERROR * max(self.sojourns_s, 1.0):
            raise BookkeepingError(f"L T is {self.present_s} s, the sum of W is {self.sojourns_s} s")
