"""One contestant in one round: started, checked, measured, stopped; every figure is a row, and so is every refusal."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from loadtest.peers.answer import Answer
from loadtest.peers.contestants import BARE, Contestant
from loadtest.peers.given import Comparison, Given
from loadtest.peers.load import OVERLOAD, STEADY, Load
from loadtest.peers.measuring import FIGURES, Lengths, measure, warm_up
from loadtest.peers.running import RefusedError, Running, running
from loadtest.server import free_port

# Scores are those of the bare loop up to the order of sums in a batch.
TOLERANCE = 5e-5
# So much of what can be done within the deadline may be inside at once; the rest of it is for what varies.
INSIDE = 0.75
Row = dict[str, Any]


@dataclass(frozen=True)
class Plan:
    """What is measured, and how.

    Attributes:
        comparison: same work, or an hour's.
        model: what the peers serve.
        environments: the folder of the peers' environments; None runs all in this one.
        lengths: of the scenarios.
        drawings: whether the model knows drawings, so that answers are checked with those.
    """

    comparison: Comparison
    model: Path
    environments: Path | None
    lengths: Lengths
    drawings: bool


def order(contestants: Sequence[Contestant], number: int) -> list[Contestant]:
    """Who follows whom in round `number` (from 1): another begins each time, and every second round runs backwards."""
    at = (number - 1) % len(contestants)
    turned = [*contestants[at:], *contestants[:at]]
    return turned if number % 2 else turned[::-1]


def expected(plan: Plan, load: Load) -> list[Answer]:
    """The right answers: those of the bare loop.

    Raises:
        RefusedError: they are so much alike that a server which looks at nothing would pass.
    """
    entries = load.checks(plan.drawings)
    given = Given(plan.comparison, plan.model, 0, workers=1)
    with running(Contestant(BARE, None, ""), given, plan.environments, entries[0]) as bare:
        said = bare.order(0, ask=load.pickled("checks", entries))["answers"]
    answers = [Answer(one["answer"], one["score"]) for one in said]
    for k, one in enumerate(answers):
        for other in answers[:k]:
            if one.text == other.text and abs(one.score - other.score) <= 2 * TOLERANCE:
                raise RefusedError(f"the check has no power: two of its answers are the same, {one} and {other}")
    return answers


def fault(found: Sequence[Answer], right: Sequence[Answer], exact: bool) -> str | None:
    """What is wrong with a contestant's answers; None where nothing is.

    Args:
        found, right: its own and the bare loop's, in the same order.
        exact: whether they must agree; else any answers will do.
    """
    if len(found) != len(right):
        return f"{len(found)} answers to {len(right)} questions"
    if exact:
        for number, (one, other) in enumerate(zip(found, right, strict=True), 1):
            if one.text != other.text or not abs(one.score - other.score) <= TOLERANCE:
                said, meant = (f"{answer.text!r} ({answer.score:.5f})" for answer in (one, other))
                return f"answers {said} to check {number}, not {meant}"
    return None


def one_round(
    contestant: Contestant, plan: Plan, load: Load, right: Sequence[Answer], scenarios: Sequence[str], number: int
) -> Iterator[Row]:
    """The rows of one contestant in round `number`, each as soon as it is there."""
    given = Given(plan.comparison, contestant.model or plan.model, free_port())
    first = 37 * number
    steady = math.nan

    def row(scenario: str, figures: Row) -> Row:
        return {"round": number, "contestant": contestant.name, "scenario": scenario} | figures

    def refused(scenario: str, why: object) -> Row:
        return row(scenario, dict.fromkeys(FIGURES) | {"note": f"refused: {why}"})

    calm = [scenario for scenario in scenarios if scenario != OVERLOAD]
    started = time.monotonic()
    try:
        with running(contestant, given, plan.environments, load.checks(plan.drawings)[0]) as server:
            start_s = time.monotonic() - started
            _check(server, load, plan, right)
            warm_up(server, load, plan.lengths)
            yield row("start", dict.fromkeys(FIGURES) | {"per_second": None, "note": f"ready after {start_s:.1f} s"})
            for scenario in calm:
                figures = measure(scenario, server, load, plan.lengths, first, steady)
                yield row(scenario, figures)
                steady = figures["per_second"] if scenario == STEADY else steady
                server.settle()
    except RefusedError as why:
        yield refused("start", why)
        return
    if OVERLOAD not in scenarios or contestant.protocol is None:
        return
    if not steady > 0:
        yield refused(OVERLOAD, "nothing was answered in `steady`, so there is no capacity to double")
        return
    # Started anew, with what the peer has for a limit and a deadline: sixteen patient clients may be more than fit.
    inside = max(2 * given.workers, int(INSIDE * steady * plan.lengths.deadline_s))
    limited = replace(given, port=free_port(), most_inside=inside, deadline_s=plan.lengths.deadline_s)
    try:
        with running(contestant, limited, plan.environments, load.checks(plan.drawings)[0]) as server:
            warm_up(server, load, replace(plan.lengths, warm_up=1))
            yield row(OVERLOAD, measure(OVERLOAD, server, load, plan.lengths, first, steady))
    except RefusedError as why:
        yield refused(OVERLOAD, why)


def _check(server: Running, load: Load, plan: Plan, right: Sequence[Answer]) -> None:
    entries = load.checks(plan.drawings)
    if server.contestant.protocol is None:
        said = server.order(0, ask=load.pickled("checks", entries))["answers"]
        found = [Answer(one["answer"], one["score"]) for one in said]
    else:
        found = server.answers(entries)
    if why := fault(found, right, server.contestant.exact):
        raise RefusedError(why)
