"""Every measured command in miniature, with the embedded model in a real server: figures are there, none is judged."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from loadtest.layouts import parse_variant
from loadtest.report import _command
from loadtest.server import parse_settings, running


def quick(name: str, folder: Path, *flags: str) -> dict[str, Any]:
    """Run a command; returns what it wrote."""
    command = importlib.import_module(f"loadtest.{name}").main
    result = CliRunner().invoke(command, ["--quick", "--results", str(folder), *flags], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    [label] = [f"-{flags[i + 1]}" for i, flag in enumerate(flags) if flag == "--label"] or [""]
    text = (folder / f"{name}{label}-vilt-shapes.md").read_text()
    assert "say nothing" in text
    assert "onnxruntime" in text
    data = json.loads((folder / f"{name}{label}-vilt-shapes.json").read_text())
    assert data["quick"] is True
    assert data["rows"]
    assert {"cores", "python", "onnxruntime", "cores_used_by_others"} <= data["machine"].keys()
    return data


def test_leavers(tmp_path: Path) -> None:
    data = quick("leavers", tmp_path, "--label", "beside")
    assert data["summary"]["after_all_answered"] is True
    assert data["summary"]["ratio_median"] > 0
    assert 0 < data["summary"]["idle_median_ms"] < 10_000


def test_a_folder_that_cannot_be_is_told_before_anything_is_measured(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    command = importlib.import_module("loadtest.leavers").main
    result = CliRunner().invoke(command, ["--results", str(tmp_path / "file" / "below")])
    assert result.exit_code == 2
    assert "--results" in result.output


def test_decoding(tmp_path: Path) -> None:
    """The ways that need no other library; in full, the service's pixels are the usual ones to the last bit."""
    main = importlib.import_module("loadtest.decoding").main
    result = CliRunner().invoke(main, ["--quick", "--results", str(tmp_path)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    data = json.loads((tmp_path / "decoding-vilt-b32.json").read_text())
    rows = {row["way"]: row for row in data["rows"] if row["picture"] == "640x480"}
    assert {"pillow, all pixels", "service, all pixels", "service"} <= rows.keys()
    assert all(row["median_ms"] > 0 for row in rows.values())
    assert rows["service, all pixels"]["max_levels"] == 0


def test_overload(tmp_path: Path) -> None:
    summary = quick("overload", tmp_path)["summary"]
    assert summary["capacity_per_s"] > 0
    assert 0 <= summary["goodput_of_capacity"] < 3
    assert summary["accepted"] == sum(summary[f"accepted_{kind}"] for kind in ("kept", "late_200", "504"))
    assert summary["accepted"] > 0
    assert summary["livez_ms"]["n"] > 0
    assert sum(summary["statuses"].values()) == summary["accepted"] + summary["refused"] + summary["other"]


def test_one_client(tmp_path: Path) -> None:
    summary = quick("one_client", tmp_path)["summary"]
    assert 0 < summary["bare_median_ms"] < 10_000
    assert 0 < summary["http_median_ms"] < 10_000
    assert 0 <= summary["queue_median_ms"] <= summary["queue_max_ms"]


def test_memory(tmp_path: Path) -> None:
    data = quick("memory", tmp_path, "--requests", "150", "--warm-up", "50")
    assert data["summary"]["statuses"] == {"200": 150}
    assert 50 < data["summary"]["rss_first_mib"] <= data["summary"]["rss_max_mib"] < 4000
    assert [row["requests"] for row in data["rows"]] == [0, 100, 150]


def test_identical(tmp_path: Path) -> None:
    summary = quick("identical", tmp_path)["summary"]
    assert summary["all_answered"] is True
    assert 1 <= summary["inferences_max"] <= summary["questions"]


def test_layouts(tmp_path: Path) -> None:
    data = quick("layouts", tmp_path, "--variant", "a", "--variant", "b:VQA_THREADS=1,VQA_MAX_BATCH_SIZE=2")
    assert data["summary"].keys() == {"a x1", "b x1", "a x4", "b x4"}
    assert all(row["per_second"] > 0 for row in data["rows"])


def test_settings_are_checked() -> None:
    assert parse_variant("two:VQA_THREADS=2,VQA_POLICY=auto") == ("two", {"VQA_THREADS": "2", "VQA_POLICY": "auto"})
    assert parse_variant("plain") == ("plain", {})
    with pytest.raises(click.BadParameter):
        parse_settings(("threads=2",))


def test_a_server_that_does_not_start_says_why() -> None:
    with pytest.raises(click.ClickException, match="max_batch_size"), running(settings={"VQA_MAX_BATCH_SIZE": "none"}):
        pass


def test_no_path_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["x", "--model", "/somewhere/big-model", "--results", "/elsewhere", "--quick"])
    assert _command("overload") == "python -m loadtest.overload --model big-model --quick"


def test_every_command_is_in_the_readme_and_the_makefile(root: Path) -> None:
    readme = (root / "loadtest" / "README.md").read_text()
    makefile = (root / "Makefile").read_text()
    scenarios = re.search(r"^SCENARIOS := (.*)$", makefile, re.MULTILINE)[1].split()
    assert set(scenarios) == {"leavers", "overload", "one_client", "memory", "identical", "layouts"}
    for name in scenarios:
        assert f"loadtest.{name}" in readme


def test_scoring_beside_a_straight_loop() -> None:
    """The command itself refuses where the two differ."""
    command = importlib.import_module("loadtest.scoring").main
    result = CliRunner().invoke(command, ["--answers", "1500", "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout)
    assert figures["answers"] == 1500
    assert 0 < figures["accuracy"] < 100
    assert figures["straight_loop_s"] > 0
