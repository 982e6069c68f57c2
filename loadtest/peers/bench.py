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
from loadtest.peers.load import ONE, OVERLOAD, SCENARIOS, STEADY, Load
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
        people: the contestants that are measured now.
        everyone: all that there are; those with rows are shown, too.
        scenarios: which, in every round; None is all, those that are not `ALWAYS` in every second round only.
        results: the folder of the results.
        quick: whether this is the miniature.
        machine: its facts.
        rows: all that was measured.
        versions: of each contestant's packages.
    """

    plan: Plan
    people: Sequence[Contestant]
    everyone: Sequence[Contestant]
    scenarios: tuple[str, ...] | None
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
        self.rows, self.machine, self.versions = rows, data["machine"], data["versions"]

    def missing(self, rounds: int) -> list[tuple[int, Contestant]]:
        """The turns of the first `rounds` rounds that are not there yet, in order; of a begun one nothing is kept."""
        turns = [(number, one) for number in range(1, rounds + 1) for one in order(self.people, number)]
        todo = [turn for turn in turns if not self._done(*turn)]
        begun = {(number, one.name) for number, one in todo}
        self.rows = [row for row in self.rows if (row["round"], row["contestant"]) not in begun]
        return todo

    def run(self, rounds: int, load: Load, right: Sequence[Answer], say: Callable[[str], None]) -> None:
        """All rounds that are not there yet.

        Args:
            rounds: how many there are to be in all.
            load: what is asked.
            right: the right answers to what is asked first.
            say: told what was measured, a line each.
        """
        todo = self.missing(rounds)
        started = time.monotonic()
        for turn, (number, one) in enumerate(todo, 1):
            for row in one_round(one, self.plan, load, right, self._scenarios(number), number):
                self.rows.append(row)
                say(f"round {number} {one.name:10} {row['scenario']:9} {_told(row)}")
                self.save()
            left = len(todo) - turn
            say(f"{left} turns are left, about {(time.monotonic() - started) / turn * left / 60:.0f} minutes")

    def save(self, echo: bool = False) -> Path:
        """Write what was found so far."""
        measured = {row["contestant"] for row in self.rows}
        shown = [one for one in self.everyone if one in self.people or one.name in measured]
        others = [row["others_cores"] for row in self.rows if row["others_cores"] is not None]
        summary: dict[str, Any] = {
            one.name: "; ".join(filter(None, (one.settings, _listed(self.versions.get(one.name, {}))))) for one in shown
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
            tables=tables(self.rows, shown),
            more={"plan": self._told(), "versions": self.versions},
            echo=echo,
        )

    def _scenarios(self, number: int) -> tuple[str, ...]:
        if self.scenarios is not None:
            return self.scenarios
        return SCENARIOS if number % 2 else ALWAYS

    def _done(self, number: int, one: Contestant) -> bool:
        rows = [row for row in self.rows if (row["round"], row["contestant"]) == (number, one.name)]
        wanted = {scenario for scenario in self._scenarios(number) if scenario != OVERLOAD or one.protocol is not None}
        refused = any(row["scenario"] == START and str(row["note"]).startswith("refused") for row in rows)
        return refused or wanted <= {row["scenario"] for row in rows}

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


def _listed(versions: dict[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def _told(row: Row) -> str:
    if row["per_second"] is None:
        return str(row["note"])
    figures = f"{row['per_second']:8.2f}/s  p50 {row['p50_ms']:8.1f} ms  p99 {row['p99_ms']:8.1f} ms"
    return f"{figures}  lost {row['lost']}  {row['note']}"
