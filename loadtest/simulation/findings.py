"""The findings, for somebody in a hurry: sentences over the tables, with no figure in them that was not computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from loadtest.simulation.cost import PRICE_PER_VCPU_HOUR
from loadtest.simulation.limits import NIC_GBIT
from loadtest.simulation.plan import ABOVE, BELOW
from loadtest.simulation.routing import Policy

Row = Mapping[str, Any]
Rows = Sequence[Row]
# A signal is as good as the best within so many points.
_AS_GOOD = 0.5
# Percent in time that an autoscaler has to keep on an ordinary day.
_STEADY = 99.9


def findings(tables: Mapping[str, Rows]) -> list[str]:
    """One sentence or two for each experiment."""
    scaling, routing = tables["autoscaling"], tables["routing"]
    found = [_formulas(tables["theory"]), *map(_overload, tables["overload"])]
    found += [_autoscaling(scaling, crowd) for crowd in dict.fromkeys(row["crowd"] for row in scaling)]
    found += [_first_minute(scaling), *(_affinity(routing, load) for load in (BELOW, ABOVE))]
    found += [
        _trouble(routing, trouble) for trouble in dict.fromkeys(row["trouble"] for row in routing) if trouble != "none"
    ]
    found += [_scale(tables["scale"]), _rolling(tables["rolling"]), *_cost(tables["cost"]), _limits(tables)]
    return found


def best(rows: Rows, figure: str) -> Row:
    """Of the rows that are as good as the best in a figure, the one with the fewest replica-hours."""
    most = max(row[figure] for row in rows)
    return min((row for row in rows if row[figure] >= most - _AS_GOOD), key=lambda row: row["replica_hours"])


def _formulas(rows: Rows) -> str:
    worst = max(abs(row["ratio"] - 1) for row in rows)
    return f"**Can it be believed?** Waits and hit ratios are within {100 * worst:.1f} % of the formulas of theory."


def _overload(row: Row) -> str:
    told = [
        f"{name} {row[f'{key}_simulated'] * factor:.4g}{unit} ({row[f'{key}_real'] * factor:.4g})"
        for name, key, factor, unit in (
            ("capacity", "capacity_per_s", 1, "/s"),
            ("goodput of it", "goodput_of_capacity", 100, " %"),
            ("accepted and in time", "accepted_kept_share", 100, " %"),
            ("their median", "accepted_p50_ms", 1, " ms"),
            ("p99", "accepted_p99_ms", 1, " ms"),
            ("refused", "refused_share", 100, " %"),
        )
    ]
    return f"**The overload of {row['model']}, simulated (and real):** {', '.join(told)}."


def _autoscaling(rows: Rows, crowd: str) -> str:
    scaled = [row for row in rows if row["crowd"] == crowd and row["target"]]
    told = "; ".join(
        f"{row['signal']} {row['in_time_%']:g} % ({row['in_the_crowd_%']:g} %), {row['replica_hours']:g}, "
        f"{row['most_replicas']}"
        for row in scaled
    )
    steady = [row for row in scaled if row["outside_the_crowd_%"] >= _STEADY] or scaled
    chosen = best(steady, "in_time_%")["signal"]
    return (
        f"**Autoscaling, a crowd with {crowd}:** of the signals that keep {_STEADY:g} % outside the crowd, the "
        f"cheapest within {_AS_GOOD:g} points of the best is **{chosen}**. In time over the day (within the crowd), "
        f"replica-hours, most replicas: {told}."
    )


def _first_minute(rows: Rows) -> str:
    scaled = [row for row in rows if row["target"] and row["crowd"] == rows[0]["crowd"]]
    worst, most = min(row["worst_minute_%"] for row in scaled), max(row["worst_minute_%"] for row in scaled)
    fixed = "; ".join(
        f"{row['signal']} {row['in_the_crowd_%']:g} % at {row['replica_hours']:g} replica-hours"
        for row in rows
        if not row["target"]
    )
    late = max(row["late_%"] for row in rows)
    return (
        f"**The worst minute of the crowd** has {worst:g} to {most:g} % in time with any signal: metrics and pods take "
        f"that long. Without an autoscaler: {fixed}. What is not in time is refused at once, not late: at "
        f"most {late:g} % of a day's questions were late."
    )


def _affinity(rows: Rows, load: float) -> str:
    alike = [row for row in rows if row["load_%"] == round(100 * load) and row["trouble"] == "none"]
    mine = next(row for row in alike if row["policy"] == Policy.AFFINITY)
    other = max((row for row in alike if row is not mine), key=lambda row: (row["in_time_%"], -row["p99_ms"]))
    told = [
        f"{row['policy']}: hits {row['hit_ratio_%']:g} %, in time {row['in_time_%']:g} %, median {row['p50_ms']:g} ms, "
        f"p99 {row['p99_ms']:g} ms"
        for row in (mine, other)
    ]
    return f"**Routing at {100 * load:.0f} % load:** {told[0]}. Best of the others, {told[1]}."


def _trouble(rows: Rows, trouble: str) -> str:
    mine = [row for row in rows if row["trouble"] == trouble]
    told = "; ".join(f"{row['policy']} {row['in_time_%']:g} % (p99 {row['p99_ms']:g} ms)" for row in mine)
    return f"**Routing, {trouble}, {mine[0]['load_%']} % load:** in time {told}."


def _scale(rows: Rows) -> str:
    ordered = sorted(rows, key=lambda row: row["replicas"])
    same = [row for row in ordered if row["load_%"] == ordered[-1]["load_%"]]
    told = ", ".join(f"{row['replicas']:,}: {row['p99_ms']:g} ms" for row in same)
    apart = abs(same[-1]["p99_ms"] / same[-2]["p99_ms"] - 1)
    return (
        f"**Size:** p99 at {same[0]['load_%']} % load, by replicas: {told}. The last two are {100 * apart:.0f} % "
        "apart; power of two choices has a limit for infinitely many (Mitzenmacher, 2001), so larger fleets were not "
        "simulated: the queues are not what breaks there."
    )


def _rolling(rows: Rows) -> str:
    told = "; ".join(
        f"{row['policy']}, restart {row['restart']}: {row['hit_%_minute_before']:g} %, "
        f"{row['hit_%_worst_minute_after']:g} %, {row['hit_%_last_minute']:g} %"
        for row in rows
    )
    return f"**A rolling restart** empties the caches. Hits in the minute before, the worst after, the last: {told}."


def _cost(rows: Rows) -> list[str]:
    price = f"at_{PRICE_PER_VCPU_HOUR:g}_a_vcpu_hour"
    found = []
    for model in dict.fromkeys(row["model"] for row in rows):
        told = "; ".join(f"{row['questions']} {row[price]:.2f}" for row in rows if row["model"] == model)
        found.append(f"**A million questions, {model}, at {PRICE_PER_VCPU_HOUR:g} a vCPU-hour (assumed):** {told}.")
    return found


def _limits(tables: Mapping[str, Rows]) -> str:
    largest = {
        name: max(rows, key=lambda row: row["replicas"]) for name, rows in tables.items() if "replicas" in rows[0]
    }
    nic, router, running = largest["bandwidth"], largest["router"], largest["operations"]
    told = []
    if redis := largest.get("redis"):
        full = 100 / redis["of_its_one_thread_%"] * redis["replicas"]
        told.append(f"one Redis is full at {full:,.0f} replicas")
    full = NIC_GBIT / nic["Gbit_per_s"] * nic["replicas"]
    affinity = ", ".join(f"{row['affinity_hit_%']:g} % at {row['replicas']:,}" for row in tables["cache"])
    told += [
        f"{NIC_GBIT:g} Gbit/s into one gateway are full of pictures at {full:,.0f}",
        f"the affinity router takes {router['microseconds_a_question']:g} µs a question and {router['router_cores']:g} "
        f"cores at {router['replicas']:,}",
        f"memory caches hit {largest['cache']['no_affinity_hit_%']:g} % at any size without affinity, with it "
        f"{affinity}",
        f"{running['replicas']:,} replicas have {running['time_series']:,} time series and restart one by one in "
        f"{running['restart_one_by_one_minutes'] / 60:.0f} hours",
    ]
    return f"**Where it breaks as it grows:** {'; '.join(told)}."
