"""A run: rounds of all contestants, its rows on disk at all times, and going on where an interrupted one was."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from loadtest import report
from loadtest.peers.answer import Answer
from loadtest.peers.contestants import Contestant
from loadtest.peers.given import Given
from loadtest.peers.load import ONE, OVERLOAD, STEADY, Load
from loadtest.peers.rounds import Plan, Row, one_round, order
from loadtest.peers.tables import START, tables

# Measured in every round; the others in every second one, from the first on, so that all fits into two hours.
ALWAYS = (STEADY, ONE)


class CannotResumeError(Exception):
    """The results on disk are of another measurement."""


@dataclass
class Bench:
    """What is measured, by whom, and what was found so far.

    Attributes:
        plan: what is measured, and how.
        people: the contestants.
        scenarios: which, in every round; None is all, those that are not `ALWAYS` in every second round.
        results: the folder of the results.
        quick: whether this is the miniature.
        rows: all that was measured.
    """

    plan: Plan
    people: Sequence[Contestant]
    scenarios: tuple[str, ...] | None
    every: tuple[str, ...]
    results: Path
    quick: bool
    machine: dict[str, Any]
    rows: list[Row] = field(default_factory=list)
    versions: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Of the results."""
        return f"peers-{self.plan.comparison}"

    def resume(self) -> None:
        """Take the rows that are on disk.

        Raises:
            CannotResumeError: they are of another measurement, or cannot be read.
        """
        path = self.results / f"{self.name}-{self.plan.model.name}.json"
        try:
            data = json.loads(path.read_text())
            rows, plan = data["rows"], data["plan"]
        except FileNotFoundError:
            return
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CannotResumeError(f"{path} is no result of this command: {error}") from None
        if plan != self._told():
            raise CannotResumeError(f"{path} is of another measurement: {plan}, not {self._told()}; move it away")
        self.rows, self.machine = rows, data["machine"]

    def run(self, rounds: int, load: Load, right: Sequence[Answer], say: Callable[[str], None]) -> None:
        """All rounds that are not there yet."""
        todo = [
            (number, one) for number in range(1, rounds + 1) for one in order(self.people, number)
            if not self._done(number, one)
        ]  # fmt: skip
        kept = [row for row in self.rows if self._complete(row)]
        self.rows = kept
        started = time.monotonic()
        for turn, (number, one) in enumerate(todo):
            for row in one_round(one, self.plan, load, right, self._scenarios(number), number):
                self.rows.append(row)
                say(f"round {number} {one.name:12} {row['scenario']:9} {_told(row)}")
                self.save()
            a_turn = (time.monotonic() - started) / (turn + 1)
            say(f"{len(todo) - turn - 1} turns are left, about {a_turn * (len(todo) - turn - 1) / 60:.0f} minutes")

    def save(self, echo: bool = False) -> Path:
        """Write what was found so far."""
        named = {one.name: one for one in self.people}
        others = [row["others_cores"] for row in self.rows if row["others_cores"] is not None]
        summary: dict[str, Any] = {
            name: f"{one.settings}; {', '.join(f'{key} {value}' for key, value in self.versions.get(name, {}).items())}"
            for name, one in named.items()
        }
        summary["deadline in overload"] = f"{self.plan.lengths.deadline_s:g} s"
        summary["cores used by others, most in a row"] = max(others, default=0.0)
        return report.write(
            self.name,
            str(self.plan.model),
            self.results,
            machine=self.machine,
            summary=summary,
            rows=self.rows,
            quick=self.quick,
            module="peers",
            tables=tables(self.rows, self.people),
            more={"plan": self._told(), "versions": self.versions},
            echo=echo,
        )

    def _scenarios(self, number: int) -> tuple[str, ...]:
        if self.scenarios is not None:
            return self.scenarios
        return self.every if number % 2 else tuple(one for one in self.every if one in ALWAYS)

    def _done(self, number: int, one: Contestant) -> bool:
        there = {row["scenario"] for row in self.rows if (row["round"], row["contestant"]) == (number, one.name)}
        wanted = {scenario for scenario in self._scenarios(number) if scenario != OVERLOAD or one.protocol is not None}
        refused = any(
            (row["round"], row["contestant"], row["scenario"]) == (number, one.name, START)
            and str(row["note"]).startswith("refused")
            for row in self.rows
        )
        return refused or wanted <= there

    def _complete(self, row: Row) -> bool:
        """Whether a row belongs to a turn that is done; of one that was interrupted nothing is kept."""
        [one] = [one for one in self.people if one.name == row["contestant"]] or [None]
        return one is None or self._done(row["round"], one)

    def _told(self) -> dict[str, Any]:
        """What must be the same for rows to be put together."""
        return {
            "comparison": self.plan.comparison,
            "model": self.plan.model.name,
            "lengths": asdict(self.plan.lengths),
        }


def versions(people: Sequence[Contestant], plan: Plan) -> dict[str, dict[str, str]]:
    """Of each contestant's packages."""
    given = Given(plan.comparison, plan.model, 0)
    return {one.name: one.versions(given, plan.environments) for one in people}


def _told(row: Row) -> str:
    if row["per_second"] is None:
        return str(row["note"])
    figures = f"{row['per_second']:8.2f}/s  p50 {row['p50_ms']:8.1f} ms  p99 {row['p99_ms']:8.1f} ms"
    return f"{figures}  lost {row['lost']}  {row['note']}"
