"""The commands: what was measured is read and written, and a miniature of everything runs."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from loadtest.simulation import measure, redis_limit
from loadtest.simulation.__main__ import main
from loadtest.simulation.findings import best
from loadtest.simulation.measured import FILE, SIZES, MeasuredError, measured, read, shared_cache
from loadtest.simulation.page import ORDER, TEXTS
from loadtest.simulation.plan import all_jobs
from loadtest.simulation.validation import measured_overload, simulated_overload


def test_what_was_measured_can_be_read() -> None:
    data = read()
    for name in data["models"]:
        found = measured(data, name)
        assert set(found.prepare_s) == set(SIZES)
        assert found.prepare_s["640x480"].mean() < found.prepare_s["4032x3024"].mean()
        assert 0 < found.front_s < 0.1
    assert (shared := shared_cache(data)) is None or shared.gets_per_s > 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[models", "measure` writes it"),
        ("[models.a]\ncores = 2", "models.a: 'prepare_ms'; measure it again"),
        ("[models.b]", "nothing was measured of 'a' \\(known: b\\)"),
    ],
)
def test_a_file_that_cannot_be_used_says_why(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "measured.toml"
    path.write_text(text)
    with pytest.raises(MeasuredError, match=message):
        measured(read(path), "a")


def test_times_that_are_none_are_refused() -> None:
    data = read()
    name = next(iter(data["models"]))
    data["models"][name]["inference_busy_ms"] = [1.0, -1.0]
    with pytest.raises(MeasuredError, match="inference_busy_ms must be a list of positive milliseconds"):
        measured(data, name)


def test_the_command_says_what_is_missing(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["--model", "unknown", "--results", str(tmp_path)])
    assert result.exit_code == 1
    assert "nothing was measured of 'unknown'" in result.output
    assert "Traceback" not in result.output


def test_the_cost_of_a_refusal_by_hand(tmp_path: Path) -> None:
    """1.8 cores less 100 answers of 10 ms leave 0.8 s a second for 400 refusals."""
    summary = {
        "goodput_per_s": 100.0,
        "capacity_server_cores": 2.0,
        "capacity_per_s": 200.0,
        "refused": 4_000,
        "seconds": 10.0,
        "server_cores": 1.8,
    }
    path = tmp_path / "overload.json"
    path.write_text(json.dumps({"summary": summary}))
    assert measure.refusal_ms(path) == pytest.approx(2.0)


def test_measuring_writes_what_the_simulation_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The embedded model, its real server and a real Redis, in miniature; other models' sections stay."""
    for name, few in (("SAMPLES", 2), ("PICTURES", 1), ("HITS", 40)):
        monkeypatch.setattr(measure, name, few)
    monkeypatch.setattr(redis_limit, "REQUESTS", 500)
    path = tmp_path / "measured.toml"
    path.write_text('[models.other]\nwhen = "before"\n')
    result = CliRunner().invoke(measure.main, ["--model", "vilt-shapes", "--out", str(path)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    data = tomllib.loads(path.read_text())
    assert data["models"]["other"] == {"when": "before"}
    found = measured(data, "vilt-shapes")
    assert found.entry_bytes > found.shared_bytes > 0
    assert found.start_s > 0
    assert found.series > 50


def test_a_model_that_is_not_there_is_told(tmp_path: Path) -> None:
    result = CliRunner().invoke(measure.main, ["--model", "nothing", "--out", str(tmp_path / "out.toml")])
    assert result.exit_code == 2
    assert "--model" in result.output
    assert not (tmp_path / "out.toml").exists()


def test_the_overload_is_simulated_like_the_real_one(root: Path) -> None:
    """The large model's: what is accepted is kept, nearly all that the cores can do is done, the rest refused."""
    simulated = simulated_overload(measured(read(), "vilt-b32-random"))
    real = measured_overload(root / "loadtest" / "results" / "overload-vilt-b32-random.json")
    assert simulated.keys() == real.keys()
    assert simulated["accepted_kept_share"] == real["accepted_kept_share"] == 1.0
    assert simulated["goodput_of_capacity"] == pytest.approx(real["goodput_of_capacity"], abs=0.1)
    assert simulated["refused_share"] == pytest.approx(real["refused_share"], abs=0.05)
    for quantile in ("accepted_p50_ms", "accepted_p99_ms"):
        assert simulated[quantile] == pytest.approx(real[quantile], rel=0.1)


def test_the_cheapest_of_those_that_are_as_good() -> None:
    rows = [
        {"x": 90.0, "replica_hours": 1.0},
        {"x": 99.6, "replica_hours": 5.0},
        {"x": 99.9, "replica_hours": 9.0},
    ]
    assert best(rows, "x") is rows[1]


def test_every_table_has_its_text() -> None:
    assert TEXTS.keys() == ORDER.keys()


def test_the_command_in_miniature(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["--quick", "--results", str(tmp_path)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    data = json.loads((tmp_path / "simulation.json").read_text())
    text = (tmp_path / "simulation.md").read_text()
    assert data["quick"] is True
    assert "say nothing" in text
    assert data["findings"]
    for finding in data["findings"]:
        assert finding in text
    tables = data["tables"]
    assert set(tables) >= set(ORDER) - {"Shared Redis"}
    jobs = all_jobs(measured(read(FILE), "vilt-b32-random-int8"), True, 0)
    simulated = ("Autoscaling", "Size", "Routing", "Rolling restart")
    assert sum(len(tables[title]["rows"]) for title in simulated) == len(jobs)
    for row in tables["Routing"]["rows"]:
        ended = sum(row[f"{outcome}_%"] for outcome in ("in_time", "refused", "late", "lost"))
        assert ended == pytest.approx(100, abs=0.03)
