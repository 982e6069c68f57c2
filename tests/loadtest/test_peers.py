"""The side-by-side measurement in miniature: real servers of this environment, and contestants that misbehave."""

from __future__ import annotations

import json
import math
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from loadtest.peers import protocols
from loadtest.peers.__main__ import MINIATURE, main
from loadtest.peers.answer import Answer
from loadtest.peers.bench import Bench, CannotResumeError
from loadtest.peers.contestants import OURS, PEERS, Contestant
from loadtest.peers.given import Given
from loadtest.peers.load import ONE, SCENARIOS, STEADY, Load, Sizes
from loadtest.peers.measuring import FIGURES
from loadtest.peers.rounds import INT8_TOLERANCE, Plan, Row, expected, fault, one_round, order
from loadtest.peers.running import RefusedError
from loadtest.peers.statistics import spread
from loadtest.peers.tables import TITLES, tables
from loadtest.peers.tree import Tree

needs_wrk = pytest.mark.skipif(shutil.which("wrk") is None, reason="wrk is missing (Debian package wrk)")
TOLD = ("start", *SCENARIOS)


@dataclass(frozen=True)
class Odd(Contestant):
    """A contestant whose server is `odd_server.py`."""

    def command(self, given: Given, environments: Path | None) -> list[str]:
        return [sys.executable, str(Path(__file__).with_name("odd_server.py"))]


def odd(mode: str) -> Odd:
    return Odd(mode, protocols.raw("/answer"), "", package="none", variables={"MODE": mode})


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Load:
    return Load(tmp_path_factory.mktemp("load"), Sizes(camera=8, photos=1, many=2))


@pytest.fixture(scope="module")
def plan() -> Plan:
    model = Path(__file__).resolve().parents[2] / "models" / "vilt-shapes"
    return Plan("same", model, None, MINIATURE, drawings=True, cores=2)


@pytest.fixture(scope="module")
def right(plan: Plan, load: Load) -> list[Answer]:
    return expected(plan, load)


def bench(folder: Path, *flags: str) -> Result:
    return CliRunner().invoke(main, ["--results", str(folder), *flags], catch_exceptions=False)


@needs_wrk
def test_the_bare_loop_this_service_and_plain_fastapi(tmp_path: Path) -> None:
    result = bench(tmp_path, "--quick")
    assert result.exit_code == 0, result.output
    data = json.loads((tmp_path / "peers-same-vilt-shapes.json").read_text())
    assert data["quick"] is True
    assert {"cores", "python", "client"} <= data["machine"].keys()
    assert data["versions"]["fastapi"].keys() >= {"fastapi", "uvicorn", "onnxruntime"}
    found = {(row["contestant"], row["scenario"]): row for row in data["rows"]}
    served = {(name, scenario) for name in ("ours", "fastapi") for scenario in TOLD}
    assert found.keys() == served | {("bare", scenario) for scenario in TOLD if scenario != "overload"}
    for (_, scenario), row in found.items():
        assert set(row) == {"round", "contestant", "scenario", "when", *FIGURES}
        if scenario == "start":
            assert row["note"].startswith("ready after")
            continue
        assert row["per_second"] > 0, row
        assert 0 < row["p50_ms"] <= (row["p99_ms"] or math.inf), row
        assert row["answered"] > 0, row
        if scenario != "overload":
            assert row["lost"] == 0, row
        if scenario == STEADY:
            assert row["cpu_ms_each"] > 0, row
            assert row["pss_mib"] > 20, row
    text = (tmp_path / "peers-same-vilt-shapes.md").read_text()
    assert "say nothing" in text
    assert "`python -m loadtest.peers" in text
    for title in TITLES.values():
        assert title in text
    again = bench(tmp_path, "--quick", "--resume")
    assert again.exit_code == 0, again.output
    assert json.loads((tmp_path / "peers-same-vilt-shapes.json").read_text())["rows"] == data["rows"]


@needs_wrk
def test_results_of_another_measurement_are_not_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "peers-same-vilt-shapes.json"
    path.write_text(json.dumps({"rows": [], "machine": {}, "plan": {"comparison": "same", "lengths": {"steady": 99}}}))
    before = path.read_text()
    result = CliRunner().invoke(main, ["--results", str(tmp_path), "--quick", "--resume"])
    assert result.exit_code == 1
    assert "another measurement" in result.output
    assert path.read_text() == before


@pytest.mark.parametrize(
    ("flags", "word"),
    [(["--only", "nobody"], "nobody"), (["--model", "/nowhere"], "/nowhere"), (["--rounds", "0"], "--rounds")],
)
def test_what_cannot_be_measured_is_told_at_once(tmp_path: Path, flags: list[str], word: str) -> None:
    result = CliRunner().invoke(main, ["--results", str(tmp_path), *flags])
    assert result.exit_code == 2
    assert word in result.output
    assert "Traceback" not in result.output
    assert list(tmp_path.iterdir()) == []


@needs_wrk
def test_who_answers_wrongly_is_a_row_and_no_figure(plan: Plan, load: Load, right: list[Answer]) -> None:
    [row] = one_round(odd("lying"), plan, load, right, SCENARIOS, 1)
    assert (row["scenario"], row["per_second"]) == ("start", None)
    assert row["note"].startswith(f"refused: answers 'unanswerable' (0.50000) to check 1, not {right[0].text!r}")
    [line] = tables([row, {**row, "scenario": STEADY}], [odd("lying")])[TITLES[STEADY]]
    assert "refused: answers" in line["notes"]
    assert line["rounds"] == 0


def test_who_does_not_start_is_a_row(plan: Plan, load: Load, right: list[Answer]) -> None:
    [row] = one_round(odd("silent"), plan, load, right, SCENARIOS, 1)
    assert row["note"].startswith("refused: did not start")
    assert "this one never starts" in row["note"]


def test_who_has_no_environment_is_a_row(plan: Plan, load: Load, right: list[Answer], tmp_path: Path) -> None:
    elsewhere = replace(plan, environments=tmp_path)
    [row] = one_round(PEERS[0], elsewhere, load, right, SCENARIOS, 1)
    assert "no environment" in row["note"]
    assert PEERS[0].versions(PEERS[0].given("same", plan.model, 0, cores=2), tmp_path) == {}


@needs_wrk
def test_lost_requests_are_counted(plan: Plan, load: Load, right: list[Answer]) -> None:
    rows = list(one_round(odd("refusing"), plan, load, right, (STEADY,), 1))
    [steady] = [row for row in rows if row["scenario"] == STEADY]
    assert steady["lost"] > 0
    assert steady["answered"] > 0
    assert f"not_200 {steady['lost']}" in steady["note"]
    [line] = tables(rows, [odd("refusing")])[TITLES[STEADY]]
    assert line["notes"] == f"lost {steady['lost']} of {steady['lost'] + steady['answered']}"


def test_the_check_tells_answers_apart(right: list[Answer]) -> None:
    assert fault(right, right) is None
    nearly = [replace(right[0], score=right[0].score + 1e-6), *right[1:]]
    assert fault(nearly, right) is None
    other = [replace(right[0], score=right[0].score + 1e-3), *right[1:]]
    assert "check 1" in str(fault(other, right))
    assert fault(other, right, INT8_TOLERANCE) is None
    wrong = [right[0], replace(right[1], text="x"), *right[2:]]
    assert "check 2" in str(fault(wrong, right, INT8_TOLERANCE))
    assert "4 answers to 5" in str(fault(right[1:], right))


def test_a_check_without_power_is_refused(plan: Plan, tmp_path: Path) -> None:
    """Of camera pictures the embedded model says nearly the same each time; of one picture, exactly."""

    class Same(Load):
        def checks(self, drawings: bool) -> list[tuple[bytes, list[str]]]:
            return super().checks(drawings)[:1] * 2

    with pytest.raises(RefusedError, match="no power"):
        expected(plan, Same(tmp_path, Sizes(1, 1, 1)))


def test_the_median_of_few_rounds_lies_between_order_statistics() -> None:
    """Levels by hand: 1 - 2 (C(n,0) + … + C(n,k-1)) / 2^n."""
    seven = spread([7, 1, 6, 2, 5, 3, 4])
    assert (seven.median, seven.low, seven.high, seven.level) == (4, 1, 7, 1 - 2 / 128)
    nine = spread(range(1, 10))
    assert (nine.low, nine.high, nine.level) == (2, 8, 1 - 2 * (1 + 9) / 512)
    four = spread([4, 1, 3, 2])
    assert (four.median, four.low, four.high, four.level) == (2.5, 1, 4, 0.875)
    assert spread([]).rounds == 0


def rows(**per_second: list[float]) -> list[Row]:
    return [
        dict.fromkeys(FIGURES) | {"round": k, "contestant": name, "scenario": scenario, key: value, "lost": 0}
        for name, values in per_second.items()
        for k, value in enumerate(values, 1)
        for scenario, key in ((STEADY, "per_second"), (ONE, "p50_ms"))
    ]


def test_ratios_are_paired_by_round() -> None:
    """A peer that is a tenth quicker in each round is ahead, although its figures overlap with ours."""
    ours = [100.0, 200.0, 150.0, 120.0, 180.0, 110.0, 190.0]
    people = [replace(PEERS[0], name=name, package=None) for name in (OURS, "quicker", "mixed")]
    measured = rows(ours=ours, quicker=[1.1 * x for x in ours], mixed=[2 * ours[0], *(0.5 * x for x in ours[1:])])
    found = tables(measured, people)
    steady = {line["contestant"]: line for line in found[TITLES[STEADY]]}
    one = {line["contestant"]: line for line in found[TITLES[ONE]]}
    assert steady["quicker"]["times ours"] == pytest.approx(1.1)
    assert (steady["quicker"]["against ours"], one["quicker"]["against ours"]) == ("ahead", "behind")
    assert (steady["mixed"]["against ours"], one["mixed"]["against ours"]) == ("no difference shown",) * 2
    assert steady[OURS]["questions/s"] == 150
    assert steady[OURS]["times ours"] is None


def test_the_order_changes_from_round_to_round() -> None:
    """Each contestant comes first, and each follows each other one, in some of few rounds; of two, too."""
    for names, rounds in (("ab", 7), ("abc", 14)):
        people = [replace(PEERS[0], name=name) for name in names]
        orders = ["".join(one.name for one in order(people, number)) for number in range(1, rounds + 1)]
        assert {"".join(sorted(each)) for each in orders} == {names}
        assert {each[0] for each in orders} == set(names)
        assert {each[k : k + 2] for each in orders for k in range(len(names) - 1)} == {
            a + b for a in names for b in names if a != b
        }
        assert orders == ["".join(one.name for one in order(people, number)) for number in range(1, rounds + 1)]


def test_few_rounds_bear_no_verdict() -> None:
    people = [replace(PEERS[0], name=name, package=None) for name in (OURS, "quicker")]
    for rounds, verdict in ((5, "too few rounds"), (6, "ahead")):
        measured = rows(ours=[100.0] * rounds, quicker=[110.0] * rounds)
        line = tables(measured, people)[TITLES[STEADY]][1]
        assert (line["times ours"], line["against ours"]) == (pytest.approx(1.1), verdict)


def test_an_interrupted_turn_is_measured_again(plan: Plan, tmp_path: Path) -> None:
    people = [replace(PEERS[0], name=name, package=None) for name in (OURS, "other")]
    begun = Bench(plan, people, people, (STEADY, ONE), tmp_path, quick=True, machine={})
    whole, half = rows(ours=[1.0]), rows(other=[1.0])[:1]
    begun.rows = [*whole, *half]
    begun.save()
    later = Bench(plan, people, people, (STEADY, ONE), tmp_path, quick=True, machine={})
    later.resume()
    assert later.missing(1) == [(1, people[1])]
    assert later.rows == whole


def test_other_versions_code_or_cores_are_another_measurement(plan: Plan, tmp_path: Path) -> None:
    people = [replace(PEERS[0], name=OURS, package=None)]

    def begun(plan: Plan = plan, code: str = "abc", version: str = "1.0") -> Bench:
        bench = Bench(plan, people, people, (STEADY,), tmp_path, quick=True, machine={}, code=code)
        bench.versions = {OURS: {"numpy": version}}
        return bench

    first = begun()
    first.rows = rows(ours=[1.0])[:1]
    first.save()
    begun().resume()
    for other in (begun(replace(plan, cores=3)), begun(code="abd"), begun(version="2.0")):
        with pytest.raises(CannotResumeError, match="move it away"):
            other.resume()


def test_a_refusal_is_tried_again(plan: Plan, tmp_path: Path) -> None:
    people = [replace(PEERS[0], name="other", package=None)]
    bench = Bench(plan, people, people, (STEADY,), tmp_path, quick=True, machine={})
    [row, _] = rows(other=[1.0])
    bench.rows = [row | {"note": "refused: wrk: no reply"}]
    assert bench.missing(1) == [(1, people[0])]


@needs_wrk
def test_finished_results_are_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "peers-same-vilt-shapes.json"
    path.write_text("{}")
    result = bench(tmp_path, "--quick")
    assert result.exit_code == 1
    assert "--resume" in result.output
    assert path.read_text() == "{}"


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Tree]:
    """A process whose child has left it, as Ray's do."""
    leave = "import os, time\nif not os.fork():\n os.setsid()\n if os.fork(): os._exit(0)\n sum(range(3_000_000))\n"
    tree = Tree([sys.executable, "-c", leave + "time.sleep(60)"], {"PATH": "/usr/bin"}, tmp_path)
    yield tree
    tree.stop()


def test_processes_that_left_are_found_and_stopped(daemon: Tree) -> None:
    def pids() -> set[int]:
        return {member.pid for member in daemon.members()}

    deadline = time.monotonic() + 30
    while not (len(pids()) == 2 and sum(daemon.cpu().values()) > 0.02) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert len(pids()) == 2
    assert daemon.process.pid in pids()
    assert sum(daemon.cpu().values()) > 0
    assert daemon.pss_mib() > 1
    daemon.stop()
    assert pids() == set()


def test_every_peer_is_pinned_and_told(root: Path) -> None:
    readme = (root / "loadtest" / "README.md").read_text()
    makefile = (root / "Makefile").read_text()
    folder = root / "loadtest" / "peers"
    for peer in PEERS:
        pins = (folder / "requirements" / f"{peer.package}.txt").read_text()
        for line in pins.splitlines():
            assert line.startswith("#") or "==" in line, line
        assert f"{peer.package}==" in pins.lower().replace("ray[serve]", "ray"), peer.name
        assert (folder / "servers" / f"{peer.package}.py").is_file()
        assert peer.name in readme
        assert f" {peer.package} " in makefile
