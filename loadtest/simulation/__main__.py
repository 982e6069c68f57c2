"""Simulate the service at any size, and write down what that shows.

    python -m loadtest.simulation [--model vilt-b32-random-int8] [--measured FILE] [--quick]

Writes `loadtest/results/simulation.json` and `.md`. Same inputs and seed, same figures, but for the microseconds of the
router, which are measured in the run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from loadtest import report
from loadtest.server import ROOT
from loadtest.simulation import cost, limits, page, plan
from loadtest.simulation.findings import findings
from loadtest.simulation.measured import FILE, Measured, MeasuredError, measured, read, shared_cache
from loadtest.simulation.routing import Policy
from loadtest.simulation.validation import measured_overload, simulated_overload

# Shares of the cores that may be busy are those of the table of sizes at which this many percent are in time.
ENOUGH = 99.9
COST_REPLICAS = 100


def overload_rows(models: list[Measured]) -> list[dict[str, Any]]:
    """Simulated beside measured, for the models whose overload was measured."""
    rows = []
    for each in models:
        path = ROOT / report.RESULTS / f"overload-{each.model}.json"
        if path.exists():
            simulated, real = simulated_overload(each), measured_overload(path)
            pairs = {f"{k}_{of}": v[k] for k in real for of, v in (("simulated", simulated), ("real", real))}
            rows.append({"model": each.model} | pairs)
    return rows


@click.command()
@click.option("--model", default="vilt-b32-random-int8", show_default=True, help="The model that is simulated.")
@click.option("--beside", default="vilt-b32-random", show_default=True, help="Another one, for the costs.")
@click.option(
    "--measured",
    "path",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    default=FILE,
    help="What was measured; default measured.toml, which loadtest.simulation.measure writes.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of all that is drawn.")
@report.quick_option
@report.results_option
def main(model: str, beside: str, path: Path, seed: int, quick: bool, results: Path) -> None:
    """Simulate replicas, routing, autoscaling, costs and limits."""
    machine = report.Machine()
    try:
        data = read(path)
        mine, other = measured(data, model), measured(data, beside)
        known = [measured(data, name) for name in data["models"]]
    except MeasuredError as error:
        raise click.ClickException(str(error)) from None
    tables: dict[str, Any] = plan.run(plan.all_jobs(mine, quick, seed), quick)
    simulated_questions = sum(row.get("questions", 0) for rows in tables.values() for row in rows)
    tables["overload"] = overload_rows(known)
    loads = [
        row["load_%"] / 100
        for row in tables["scale"]
        if row["replicas"] == COST_REPLICAS and row["in_time_%"] >= ENOUGH
    ]
    load = max(loads, default=0.9)
    affinity = next(row for row in tables["routing"] if row["policy"] == Policy.AFFINITY)
    tables["cost"] = cost.rows([other, mine], affinity["hit_ratio_%"] / 100, load)
    for name in ("bandwidth", "cache", "router", "operations"):
        tables[name] = getattr(limits, name)(mine)
    if (shared := shared_cache(data)) is not None:
        tables["redis"] = limits.redis(mine, shared)
    section = data["models"][model]
    summary = {
        "model": model,
        "measured": f"{section['when']}, {section['machine']}, {section['cores_used_by_others']:g} used by others",
        "cores_a_replica": mine.cores,
        "inference_busy_ms": round(1000 * float(mine.busy_s.mean()), 1),
        "inference_alone_ms": round(1000 * float(mine.alone_s.mean()), 1),
        "prepare_ms": {size: round(1000 * float(sample.mean()), 1) for size, sample in mine.prepare_s.items()},
        "front_ms": round(1000 * mine.front_s, 3),
        "refusal_ms": round(1000 * mine.refusal_s, 3),
        "start_s": mine.start_s,
        "answer_kB": round(mine.entry_bytes / 1000, 1),
        "load_of_the_costs": load,
        "questions_simulated": simulated_questions,
        "seed": seed,
    }
    report.write_page(
        "simulation",
        results,
        machine=machine,
        summary=summary,
        findings=findings(tables),
        tables=page.tables(tables),
        quick=quick,
    )


if __name__ == "__main__":
    main()
