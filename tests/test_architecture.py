"""The house's rules, held by tests: imports point down, modules stay small, the core stays light."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

MOST_LINES = 310
HEAVY = ("torch", "transformers", "optimum", "sklearn", "scipy", "pandas", "vllm")


def test_imports_point_down_only(root: Path) -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    result = subprocess.run(command, cwd=root, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout


def test_the_layers_name_every_room(root: Path) -> None:
    """A room that the contract does not name would be checked by nobody."""
    text = (root / "pyproject.toml").read_text()
    rooms = {path.name for path in (root / "service").iterdir() if path.is_dir() and (path / "__init__.py").exists()}
    assert rooms
    for room in rooms:
        assert f'"service.{room}"' in text, room


def modules(root: Path) -> list[Path]:
    return sorted(path for folder in ("service", "models", "loadtest") for path in (root / folder).rglob("*.py"))


def test_modules_stay_small(root: Path) -> None:
    long = {
        str(path.relative_to(root)): n for path in modules(root) if (n := path.read_text().count("\n")) > MOST_LINES
    }
    assert long == {}


def test_the_core_imports_no_heavy_library() -> None:
    code = f"import sys, service.cli.main; print([m for m in {HEAVY} if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_no_middleware_that_hides_disconnects(root: Path) -> None:
    for path in (root / "service").rglob("*.py"):
        names = {node.id for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Name)}
        assert "BaseHTTPMiddleware" not in names, path


@pytest.mark.parametrize("room", ["service"])
def test_public_things_have_docstrings(root: Path, room: str) -> None:
    bare = []
    for path in (root / room).rglob("*.py"):
        tree = ast.parse(path.read_text())
        nodes = [tree, *(n for n in tree.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef))]
        for node in nodes:
            name = getattr(node, "name", path.name)
            if not name.startswith("_") and not ast.get_docstring(node):
                bare.append(f"{path.relative_to(root)}:{name}")
    assert bare == []
