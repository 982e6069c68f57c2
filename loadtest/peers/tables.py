"""The tables that are read first: medians over rounds with their intervals, and each contestant beside this service.

Ratios are paired: each round's figure over that of this service in the same round, then the median of those. A peer is
ahead where the whole interval of its ratio is; nothing is said where the rounds are too few for an interval of 95 %.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from loadtest.peers.contestants import OURS, OURS_FP32, Contestant
from loadtest.peers.load import ONE, OVERLOAD, PHOTOS, SCENARIOS, STEADY, TEN
from loadtest.peers.rounds import START, Row
from loadtest.peers.statistics import LEVEL as SURE
from loadtest.peers.statistics import Spread, spread

# The figure of a scenario that is compared; of latencies less is better.
FIGURE = dict.fromkeys(SCENARIOS, "per_second") | {ONE: "p50_ms"}
TITLES = {
    STEADY: "steady: 640x480 pictures, 16 connections, closed loop",
    ONE: "one: one connection",
    PHOTOS: "photos: 12-megapixel pictures, 8 connections, closed loop",
    TEN: "ten: ten questions a picture, in one request where the server's own interface takes many, else ten requests",
    OVERLOAD: "overload: twice its own capacity, open loop; goodput",
}
UNITS = {"per_second": "questions/s", "p50_ms": "p50, ms"}
AHEAD, BEHIND, LEVEL, FEW = "ahead", "behind", "no difference shown", "too few rounds"


def tables(rows: Sequence[Row], contestants: Sequence[Contestant]) -> dict[str, list[dict[str, Any]]]:
    """A table for each scenario that was measured, with a row for each contestant."""
    found = {}
    for scenario in SCENARIOS:
        if any(row["scenario"] == scenario for row in rows):
            found[TITLES[scenario]] = [_line(rows, scenario, contestant) for contestant in contestants]
    return found


def _line(rows: Sequence[Row], scenario: str, contestant: Contestant) -> dict[str, Any]:
    key = FIGURE[scenario]
    mine = [row for row in rows if row["contestant"] == contestant.name and row["scenario"] in (scenario, START)]
    measured = [row for row in mine if row["scenario"] == scenario and _number(row[key])]
    refusals = dict.fromkeys(row["note"] for row in mine if str(row["note"]).startswith("refused"))
    figure = spread([row[key] for row in measured])
    lost, answered = (sum(row[name] or 0 for row in measured) for name in ("lost", "answered"))
    notes = list(refusals)
    if lost and scenario != OVERLOAD:
        notes.append(f"lost {lost} of {lost + answered}")
    if contestant.protocol is None and scenario == OVERLOAD:
        notes.append("no server, so nothing to overload")
    line: dict[str, Any] = {
        "contestant": contestant.name,
        UNITS[key]: _known(figure.median),
        "interval": _interval(figure),
    }
    line |= _beside_ours(rows, scenario, contestant, measured)
    if any(row["contestant"] == OURS_FP32 for row in rows):
        line |= {f"times {OURS_FP32}": _known(_ratios(rows, scenario, OURS_FP32, measured).median)}
    for column in _others(scenario):
        line[column] = _known(spread([row[column] for row in measured if _number(row[column])]).median)
    if scenario == OVERLOAD:
        line["of those sent, in time"] = f"{answered / (answered + lost):.0%}" if answered + lost else ""
    return line | {"rounds": figure.rounds, "notes": "; ".join(notes)}


def _others(scenario: str) -> tuple[str, ...]:
    if scenario == STEADY:
        return ("p50_ms", "p99_ms", "cpu_ms_each", "pss_mib")
    if scenario == OVERLOAD:
        return ("sent_per_s", "p99_ms")
    # A reply to ten questions takes as long as it takes.
    return () if scenario == TEN else ("p99_ms",)


def _beside_ours(
    rows: Sequence[Row], scenario: str, contestant: Contestant, measured: Sequence[Row]
) -> dict[str, str | float | None]:
    """The ratio to this service, paired by round, and what it shows."""
    key = FIGURE[scenario]
    ratios = _ratios(rows, scenario, OURS, measured)
    empty = contestant.name == OURS or not ratios.rounds
    verdict = ""
    if not empty and ratios.level < SURE:
        verdict = FEW
    elif not empty:
        less_is_better = key.endswith("_ms")
        better, worse = ratios.low > 1, ratios.high < 1
        verdict = (BEHIND if less_is_better else AHEAD) if better else LEVEL
        if worse:
            verdict = AHEAD if less_is_better else BEHIND
    return {
        "times ours": None if empty else ratios.median,
        "interval of that": "" if empty else _interval(ratios),
        "against ours": verdict,
    }


def _ratios(rows: Sequence[Row], scenario: str, other: str, measured: Sequence[Row]) -> Spread:
    """Of a contestant's figures to another's in the same rounds."""
    key = FIGURE[scenario]
    others = {
        row["round"]: row[key]
        for row in rows
        if row["contestant"] == other and row["scenario"] == scenario and _number(row[key])
    }
    # A round in which the other got nothing done counts, too.
    return spread(
        [
            row[key] / others[row["round"]] if others[row["round"]] else math.inf
            for row in measured
            if row["round"] in others
        ]
    )


def _interval(figure: Spread) -> str:
    if figure.rounds < 2:
        return ""
    return f"{figure.low:.4g} to {figure.high:.4g} ({figure.level:.0%})"


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def _number(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
