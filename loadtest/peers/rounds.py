"""One contestant in one round: started, checked, measured, stopped; every figure is a row, and so is every refusal."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from loadtest.peers.answer import Answer
from loadtest.peers.contestants import BARE, Contestant
from loadtest.peers.given import Comparison
from loadtest.peers.load import OVERLOAD, SCENARIOS, STEADY, Load
from loadtest.peers.measuring import FIGURES, Lengths, measure, warm_up
from loadtest.peers.running import RefusedError, Running, running
from loadtest.server import free_port

START = "start"
# Scores are those of the bare loop up to the order of sums, which batches and threads change; in an int8 graph another
# last bit may be rounded to another step.
TOLERANCE = 5e-5
INT8_TOLERANCE = 2e-3
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
        cores: that there are.
    """

    comparison: Comparison
    model: Path
    environments: Path | None
    lengths: Lengths
    drawings: bool
    cores: int


def order(contestants: Sequence[Contestant], number: int) -> list[Contestant]:
    """Who follows whom in round `number` (from 1): shuffled, each round in its own way, the same in every run."""
    return random.Random(number).sample(contestants, len(contestants))


def expected(plan: Plan, load: Load, model: Path | None = None) -> list[Answer]:
    """The right answers: those of the bare loop.

    Args:
        plan: what is measured.
        load: what is asked.
        model: one of this service's, where its weights are not those of the plan's model.

    Raises:
        RefusedError: they are so much alike that a server which looks at nothing would pass.
    """
    entries = load.checks(plan.drawings)
    bare = Contestant(BARE, None, "", wide=True)
    given = bare.given("same" if model else plan.comparison, model or plan.model, 0, cores=1)
    with running(bare, given, plan.environments, entries[0]) as loop:
        said = loop.order(0, ask=load.pickled("checks", entries))["answers"]
    answers = [Answer(one["answer"], one["score"]) for one in said]
    if model is not None:
        return answers
    for k, one in enumerate(answers):
        for other in answers[:k]:
            if one.text == other.text and abs(one.score - other.score) <= 2 * TOLERANCE:
                raise RefusedError(f"the check has no power: two of its answers are the same, {one} and {other}")
    return answers


def fault(found: Sequence[Answer], right: Sequence[Answer], tolerance: float = TOLERANCE) -> str | None:
    """What is wrong with a contestant's answers; None where nothing is.

    Args:
        found, right: its own and the bare loop's, in the same order.
        tolerance: by which scores may differ.
    """
    if len(found) != len(right):
        return f"{len(found)} answers to {len(right)} questions"
    for number, (one, other) in enumerate(zip(found, right, strict=True), 1):
        if one.text != other.text or not abs(one.score - other.score) <= tolerance:
            said, meant = (f"{answer.text!r} ({answer.score:.5f})" for answer in (one, other))
            return f"answers {said} to check {number}, not {meant}"
    return None


def one_round(
    contestant: Contestant, plan: Plan, load: Load, right: Sequence[Answer], scenarios: Sequence[str], number: int
) -> Iterator[Row]:
    """The rows of one contestant in round `number`, each as soon as it is there."""
    given = contestant.given(plan.comparison, plan.model, free_port(), plan.cores)
    first = 37 * number
    steady = math.nan

    def row(scenario: str, figures: Row) -> Row:
        when = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")
        return {"round": number, "contestant": contestant.name, "scenario": scenario} | figures | {"when": when}

    def refused(scenario: str, why: object) -> Row:
        return row(scenario, dict.fromkeys(FIGURES) | {"note": f"refused: {why}"})

    calm = [scenario for scenario in SCENARIOS if scenario in scenarios and scenario != OVERLOAD]
    started = time.monotonic()
    try:
        with running(contestant, given, plan.environments, load.checks(plan.drawings)[0]) as server:
            start_s = time.monotonic() - started
            _check(server, load, plan, right)
            warm_up(server, load, plan.lengths)
            yield row(START, dict.fromkeys(FIGURES) | {"note": f"ready after {start_s:.1f} s"})
            for scenario in calm:
                try:
                    figures = measure(scenario, server, load, plan.lengths, first, steady)
                except RefusedError as why:
                    yield refused(scenario, why)
                    continue
                yield row(scenario, figures)
                steady = figures["per_second"] if scenario == STEADY else steady
                server.settle()
    except RefusedError as why:
        yield refused(START, why)
        return
    if OVERLOAD not in scenarios or contestant.protocol is None:
        return
    if not steady > 0:
        yield refused(OVERLOAD, "no question was answered in `steady` of this round, so there is no capacity to double")
        return
    # Started anew, with what the peer has for a limit and a deadline: sixteen patient clients may be more than fit.
    inside = max(2 * given.workers, int(INSIDE * steady * plan.lengths.deadline_s))
    limited = replace(given, port=free_port(), max_in_flight=inside, deadline_s=plan.lengths.deadline_s)
    try:
        with running(contestant, limited, plan.environments, load.checks(plan.drawings)[0]) as server:
            warm_up(server, load, replace(plan.lengths, warm_up=1))
            yield row(OVERLOAD, measure(OVERLOAD, server, load, plan.lengths, first, steady))
    except RefusedError as why:
        yield refused(OVERLOAD, why)


def _check(server: Running, load: Load, plan: Plan, right: Sequence[Answer]) -> None:
    entries = load.checks(plan.drawings)
    protocol = server.contestant.protocol
    if protocol is None:
        said = server.order(0, ask=load.pickled("checks", entries))["answers"]
        found = [Answer(one["answer"], one["score"]) for one in said]
    else:
        found = server.answers(entries)
    tolerance = INT8_TOLERANCE if server.contestant.int8 else TOLERANCE
    if why := fault(found, right, tolerance):
        raise RefusedError(why)
    if protocol is None or protocol.ask_many is None:
        return
    if why := fault(server.answers(entries, together=True), right, tolerance):
        raise RefusedError(f"asked for all of a picture's questions at once: {why}")
