"""A run: rounds of all contestants, its rows on disk at all times, and going on where an interrupted one was."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from loadtest import report
from loadtest.peers.answer import Answer
from loadtest.peers.contestants import Contestant
from loadtest.peers.load import ONE, OVERLOAD, SCENARIOS, STEADY, Load
from loadtest.peers.rounds import Plan, Row, one_round, order
from loadtest.peers.tables import tables
from loadtest.server import ROOT

# What is measured in every round. `same` is about these: its other scenarios are in every third round, from the first
# on, too few for a verdict. With one wide inference at a time nothing else is asked.
ALWAYS = (STEADY, ONE)
_EVERY = 3
# What a figure of this service is of.
CODE = ("service", "models/vilt-shapes", "loadtest/peers", ":(glob)loadtest/*.py", "constraints.txt")


class CannotResumeError(Exception):
    """The results on disk are of another measurement."""


@dataclass
class Bench:
    """What is measured, by whom, and what was found so far.

    Attributes:
        plan: what is measured, and how.
        people: the contestants that are measured now.
        everyone: all that there are; those with rows are shown, too.
        scenarios: which, in every round; None is all, those of `same` that are not `ALWAYS` in some rounds only.
        results: the folder of the results.
        quick: whether this is the miniature.
        machine: its facts.
        code: of what commit this service is.
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
    code: str = ""
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
        path = self.path
        try:
            data = json.loads(path.read_text())
            rows, plan = data["rows"], data["plan"]
        except FileNotFoundError:
            return
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CannotResumeError(f"{path} is no result of this command: {error}") from None
        if plan != self._told():
            raise CannotResumeError(f"{path} is of another measurement: {plan}, not {self._told()}; move it away")
        # Who had no environment yet has no versions.
        known = {name: found for name, found in data["versions"].items() if found}
        if changed := [name for name, found in self.versions.items() if found and known.get(name, found) != found]:
            raise CannotResumeError(f"{path} is of other versions of {', '.join(changed)}; move it away")
        self.rows, self.machine = rows, data["machine"]
        self.versions |= known

    def missing(self, rounds: int) -> list[tuple[int, Contestant]]:
        """The turns of the first `rounds` rounds that are not there yet, in order; of a begun one nothing is kept."""
        turns = [(number, one) for number in range(1, rounds + 1) for one in order(self.people, number)]
        todo = [turn for turn in turns if not self._done(*turn)]
        begun = {(number, one.name) for number, one in todo}
        self.rows = [row for row in self.rows if (row["round"], row["contestant"]) not in begun]
        return todo

    def run(self, rounds: int, load: Load, right: Mapping[str, Sequence[Answer]], say: Callable[[str], None]) -> None:
        """All rounds that are not there yet.

        Args:
            rounds: how many there are to be in all.
            load: what is asked.
            right: by contestant, the right answers to what is asked first.
            say: told what was measured, a line each.
        """
        todo = self.missing(rounds)
        started = time.monotonic()
        for turn, (number, one) in enumerate(todo, 1):
            with closing(
                one_round(one, self.plan, load, right[one.name], self._scenarios(number, one), number)
            ) as found:
                for row in found:
                    self.rows.append(row)
                    say(f"round {number} {one.name:12} {row['scenario']:9} {_line(row)}")
                    self.save()
            left = len(todo) - turn
            say(f"{left} turns are left, about {(time.monotonic() - started) / turn * left / 60:.0f} minutes")

    def save(self, echo: bool = False) -> Path:
        """Write what was found so far."""
        measured = {row["contestant"] for row in self.rows}
        shown = [one for one in self.everyone if one in self.people or one.name in measured]
        others = [row["others_cores"] for row in self.rows if row["others_cores"] is not None]
        summary: dict[str, Any] = {
            one.name: "; ".join(filter(None, (self._settings(one), _listed(self.versions.get(one.name, {})))))
            for one in shown
        }
        summary["commit"] = self.code
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

    @property
    def path(self) -> Path:
        """Where the results are."""
        return report.path(self.name, str(self.plan.model), self.results)

    def _settings(self, one: Contestant) -> str:
        given = one.given(self.plan.comparison, self.plan.model, 0, self.plan.cores)
        return one.settings.format(workers=given.workers, threads=given.threads)

    def _scenarios(self, number: int, one: Contestant) -> tuple[str, ...]:
        wanted = self.scenarios or (SCENARIOS if self.plan.comparison == "hour" or number % _EVERY == 1 else ALWAYS)
        return tuple(scenario for scenario in wanted if scenario in ALWAYS or not one.wide)

    def _done(self, number: int, one: Contestant) -> bool:
        rows = [row for row in self.rows if (row["round"], row["contestant"]) == (number, one.name)]
        wanted = set(self._scenarios(number, one)) - (set() if one.protocol else {OVERLOAD})
        return wanted <= {row["scenario"] for row in rows if not str(row["note"]).startswith("refused")}

    def _told(self) -> dict[str, Any]:
        """What must be the same for rows to be put together."""
        return {
            "comparison": self.plan.comparison,
            "model": self.plan.model.name,
            "models of ours": [one.model.name for one in self.everyone if one.model],
            "lengths": asdict(self.plan.lengths),
            "scenarios": list(self.scenarios or ()),
            "cores": self.plan.cores,
            "cpu": self.machine.get("cpu"),
            "code": self.code,
        }


def versions(people: Sequence[Contestant], plan: Plan) -> dict[str, dict[str, str]]:
    """Of each contestant's packages."""
    return {
        one.name: one.versions(one.given(plan.comparison, plan.model, 0, plan.cores), plan.environments)
        for one in people
    }


def code() -> str:
    """The last commit that changed what is measured, with `+` behind it where files were changed since."""

    def git(*words: str) -> str:
        return subprocess.run(["git", *words, "--", *CODE], cwd=ROOT, capture_output=True, text=True).stdout.strip()

    return git("log", "-1", "--format=%h") + ("+" if git("status", "--porcelain") else "")


def _listed(versions: dict[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def _line(row: Row) -> str:
    if row["per_second"] is None:
        return str(row["note"])
    times = "".join(f"  {name} {row[f'{name}_ms']:8.1f} ms" for name in ("p50", "p99") if row[f"{name}_ms"])
    return f"{row['per_second']:8.2f}/s{times}  lost {row['lost']}  {row['note']}"
