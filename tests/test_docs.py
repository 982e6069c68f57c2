"""The README is true: its commands, settings, links and its example."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from loadtest.peers.digest import digest
from service.cli.main import cli
from service.settings import Settings
from tests.support.serving import Running


@pytest.fixture(scope="module")
def readme(root: Path) -> str:
    return (root / "README.md").read_text("utf-8")


def test_every_make_target_it_names_exists(readme: str, root: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (root / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"(?:`|^)make ([a-z-]+)", readme, re.MULTILINE))
    assert {"serve", "test"} <= named
    assert named <= targets


def test_it_names_every_command_and_no_other(readme: str) -> None:
    assert set(re.findall(r"vqa ([a-z]+)", readme)) == set(cli.commands)


def test_every_setting_it_names_exists(readme: str) -> None:
    named = set(re.findall(r"VQA_([A-Z_]+)", readme))
    assert named
    assert {name.lower() for name in named} <= set(Settings.model_fields)


def test_links_lead_somewhere(readme: str, root: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)\)", readme)
    assert links
    for link in links:
        assert (root / link).exists(), link


def test_the_example_gives_the_printed_reply(readme: str, root: Path, served: Running) -> None:
    """The curl command's own picture and question, sent to a server; what varies from run to run is left out."""
    path = re.search(r"image=@(\S+)", readme)[1]
    question = re.search(r"question='([^']+)'", readme)[1]
    printed = json.loads(re.search(r"```json\n(.*?)```", readme, re.DOTALL)[1])
    reply = served.client.post(
        "/answer", files={"image": (root / path).read_bytes()}, data={"question": question}
    ).json()
    for varying in ("id", "timings_ms"):
        assert isinstance(reply.pop(varying), type(printed.pop(varying)))
    assert same(printed, reply), reply


def same(printed: object, real: object) -> bool:
    """Equal, but for what another processor's arithmetic may do to the last digits of a number."""
    if isinstance(printed, dict) and isinstance(real, dict):
        return printed.keys() == real.keys() and all(same(value, real[key]) for key, value in printed.items())
    if isinstance(printed, list) and isinstance(real, list):
        return len(printed) == len(real) and all(map(same, printed, real))
    if isinstance(printed, float) and isinstance(real, float):
        return printed == pytest.approx(real, abs=1e-3)
    return printed == real


def test_the_tables_beside_peers_are_those_that_were_measured(readme: str, root: Path) -> None:
    pages = re.findall(r"\]\((loadtest/results/peers-\S+)\.md\)", readme)
    assert pages
    for page in pages:
        assert digest(json.loads((root / f"{page}.json").read_text("utf-8"))) in readme, page


def test_the_limits_it_states_are_the_defaults(readme: str) -> None:
    defaults = {name: field.default for name, field in Settings.model_fields.items()}
    assert f"above {defaults['max_image_pixels']:,} pixels or {defaults['max_image_bytes'] // 2**20} MiB" in readme
    assert f"up to {defaults['max_question_chars']:,} characters" in readme
    assert f"(up to {defaults['max_questions']};" in readme
    assert f"deadline ({defaults['default_timeout_ms']:,})" in readme
