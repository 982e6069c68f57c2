"""`vqa score` as a command, in this process."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from service.cli.main import cli
from service.errors import DataError


@pytest.fixture
def score() -> Callable[..., dict[str, Any]]:
    """Runs `vqa score … --json --per-question` and gives what it printed; its errors come through."""

    def run(dataset: str, **files: Path | str) -> dict[str, Any]:
        arguments = ["score", "--dataset", dataset, "--json", "--per-question"]
        for name, value in files.items():
            arguments += [f"--{name.replace('_', '-')}", str(value)]
        result = CliRunner().invoke(cli, arguments)
        if isinstance(result.exception, DataError):
            raise result.exception
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    return run


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str, Any], Path]:
    """Writes a value as JSON under a name and gives the path."""

    def write(name: str, value: Any) -> Path:
        path = tmp_path / name
        path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
        return path

    return write
