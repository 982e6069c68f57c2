"""What a million questions cost: arithmetic over measured times, a price and a load that the deadlines allow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from loadtest.simulation.measured import Measured
from loadtest.simulation.workload import Workload

# An assumption, about what large clouds ask for a vCPU on demand, memory included; the table has half and double.
PRICE_PER_VCPU_HOUR = 0.04
MILLION = 1_000_000


def core_s_a_question(
    measured: Measured, workload: Workload, *, hit_ratio: float = 0.0, a_picture: float = 1.0, together: bool = False
) -> float:
    """Seconds of a core for a question.

    Args:
        measured: the model.
        workload: its sizes of pictures.
        hit_ratio: of the answer cache; what it answers costs the front alone.
        a_picture: questions about each picture.
        together: asked at once (`POST /answers`): the picture is decoded once for all.
    """
    shares = sum(workload.sizes.values())
    prepare = sum(share / shares * float(measured.prepare_s[size].mean()) for size, share in workload.sizes.items())
    if together:
        prepare /= a_picture
    front = measured.front_s / a_picture if together else measured.front_s
    return front + (1 - hit_ratio) * (prepare + float(measured.busy_s.mean()))


def dollars(core_s: float, load: float, price: float) -> float:
    """Of a million questions of so many core seconds each, on cores that are busy for `load` of the time."""
    return MILLION * core_s / load / 3600 * price


def rows(models: Sequence[Measured], hit_ratio: float, load: float) -> list[dict[str, Any]]:
    """The table.

    Args:
        models: one after the other.
        hit_ratio: of the cache, where there is one.
        load: of the cores, at which deadlines hold.
    """
    usual = Workload(1.0, 1.0)
    camera = Workload(1.0, 1.0, sizes={"4032x3024": 1.0})
    cases: list[tuple[str, Workload, dict[str, Any]]] = [
        ("1 question a picture, no cache", usual, {}),
        (f"1 question a picture, {hit_ratio:.0%} from the cache", usual, {"hit_ratio": hit_ratio}),
        ("10 questions a picture, one by one", usual, {"a_picture": 10.0}),
        ("10 questions a picture, together", usual, {"a_picture": 10.0, "together": True}),
        ("12 megapixels, 1 question", camera, {}),
        ("12 megapixels, 10 questions together", camera, {"a_picture": 10.0, "together": True}),
    ]
    found = []
    for measured in models:
        for name, workload, changes in cases:
            core_s = core_s_a_question(measured, workload, **changes)
            found.append(
                {
                    "model": measured.model,
                    "questions": name,
                    "core_ms": round(core_s * 1000, 1),
                    "vcpu_hours_a_million": round(MILLION * core_s / load / 3600, 1),
                }
                | {
                    f"at_{price:g}_a_vcpu_hour": round(dollars(core_s, load, price), 2)
                    for price in (PRICE_PER_VCPU_HOUR / 2, PRICE_PER_VCPU_HOUR, 2 * PRICE_PER_VCPU_HOUR)
                }
            )
    return found
