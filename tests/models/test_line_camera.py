"""The made-up line camera: its pictures show what its CSV says."""

from __future__ import annotations

import csv
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

ROOT = Path(__file__).parents[2]
COUNT = 120
# Square pixels of the ring between the lid (radius 34) and the seal's edge (radius 45).
RING = np.pi * (45**2 - 34**2)


def _drawn(folder: Path, seed: int = 0, count: int = COUNT) -> Path:
    command = [sys.executable, "-m", "models.line_camera", "--out", folder, "--count", str(count), "--seed", str(seed)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def jars(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, dict[str, str]]:
    """Each picture's answers by question."""
    folder = _drawn(tmp_path_factory.mktemp("seal"))
    found: dict[Path, dict[str, str]] = defaultdict(dict)
    with (folder / "seal.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            found[folder / row["picture"]][row["question"]] = row["answer"]
    return found


def _pixels(path: Path) -> np.ndarray:
    return np.asarray(Image.open(path).convert("RGB")).astype(float)


def _sealed(pixels: np.ndarray) -> float:
    """The share of the ring that is yellow: far more red than blue, and not so much more red than green."""
    red, green, blue = np.moveaxis(pixels, 2, 0)
    yellow = (red - blue > 0.28 * red) & (red - green < 0.35 * red) & (red > 60)
    return float(yellow.sum() / RING)


def test_every_picture_is_asked_about_three_times(jars: dict[Path, dict[str, str]]) -> None:
    assert len(jars) == COUNT
    for path, answers in jars.items():
        assert path.is_file()
        assert Image.open(path).size == (160, 120)
        assert set(answers) == {"Is the seal intact?", "What is wrong with the seal?", "What color is the lid?"}
        assert (answers["Is the seal intact?"] == "yes") == (answers["What is wrong with the seal?"] == "nothing")
    states = [answers["What is wrong with the seal?"] for answers in jars.values()]
    for state, share in (("nothing", 0.5), ("broken", 0.3), ("missing", 0.2)):
        assert states.count(state) / COUNT == pytest.approx(share, abs=4 * (share * (1 - share) / COUNT) ** 0.5)


def test_the_ring_shows_the_state_of_the_seal(jars: dict[Path, dict[str, str]]) -> None:
    """Whole, or without a piece of 30 to 70 degrees, or not there.

    How far the lid's own colour bleeds into the ring (JPEG halves the resolution of colours) depends on the lid alone.
    """
    sealed: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for path, answers in jars.items():
        sealed[answers["What color is the lid?"]][answers["What is wrong with the seal?"]].append(
            _sealed(_pixels(path))
        )
    for lid, states in sealed.items():
        whole = np.array(states["nothing"])
        assert whole.mean() == pytest.approx(1, abs=0.1), lid
        assert (np.abs(whole / whole.mean() - 1) < 0.06).all(), lid
        broken = np.array(states["broken"]) / whole.mean()
        assert ((broken > 1 - 70 / 360 - 0.03) & (broken < 1 - 30 / 360 + 0.03)).all(), lid
        assert max(states["missing"]) < 0.05, lid


def test_the_middle_shows_the_colour_of_the_lid(jars: dict[Path, dict[str, str]]) -> None:
    """By the names' own meaning; the middle of the picture is on the lid, which is at most 12 pixels beside it."""
    found = set()
    for path, answers in jars.items():
        red, green, blue = _pixels(path)[50:70, 70:90].mean(axis=(0, 1))
        color = answers["What color is the lid?"]
        found.add(color)
        assert {
            "red": red > 2 * max(green, blue),
            "blue": blue > 1.5 * max(red, green),
            "white": min(red, green, blue) > 130,
            "black": max(red, green, blue) < 70,
        }[color], path
    assert len(found) == 4


def test_the_same_seed_draws_the_same_jars(tmp_path: Path) -> None:
    folders = [_drawn(tmp_path / name, seed, 6) for name, seed in (("a", 3), ("b", 3), ("c", 4))]
    contents = [
        {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for folder in folders
    ]
    assert contents[0] == contents[1]
    assert contents[0] != contents[2]
    assert len(contents[0]) == 7
