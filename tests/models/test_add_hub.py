"""`vqa models add owner/name` against a stand-in of the hub on the loopback; huggingface_hub itself talks to it."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from service.backends import load_manifest
from tests.support.checkpoints import add, environment, export_python, make_checkpoint, needs_export
from tests.support.hub import COMMIT, Hub, hub_server
from tests.support.process import VQA

pytestmark = [pytest.mark.export, needs_export]

NAME = "acme/tiny-vqa"
NEEDED = {
    "config.json", "preprocessor_config.json", "tokenizer.json", "tokenizer_config.json", "vocab.txt",
    "special_tokens_map.json", "README.md",
}  # fmt: skip


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository as the hub has them: weights in two formats, and files that no model is made of."""
    folder = make_checkpoint(tmp_path_factory.mktemp("repositories") / "tiny-vqa")
    (folder / "pytorch_model.bin").write_bytes(b"the same weights in another format")
    (folder / "training.log").write_text("long ago")
    return folder


@pytest.fixture
def hub(repository: Path) -> Iterator[Hub]:
    with hub_server() as hub:
        hub.repositories[NAME] = repository
        yield hub


def test_a_repository_becomes_a_model_and_only_what_is_needed_is_downloaded(hub: Hub, tmp_path: Path) -> None:
    models, home = tmp_path / "models", {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "cache")}
    done = add(NAME, "--models-dir", models, "--json", **home)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert (said["name"], said["checkpoint"], said["checkpoint_revision"]) == ("tiny-vqa", NAME, COMMIT)
    assert hub.files == NEEDED | {"model.safetensors"}
    manifest = load_manifest(models, "tiny-vqa")
    assert (manifest.source.checkpoint, manifest.source.revision) == (NAME, COMMIT)
    assert manifest.model.license == "cc-by-4.0"
    assert f"{NAME}, commit `{COMMIT}`" in (models / "tiny-vqa" / "MODEL_CARD.md").read_text()

    asked = hub.requests
    kept = add(NAME, "--models-dir", models, "--keep", **home)
    assert kept.returncode == 0, kept.stderr
    assert hub.requests == asked, "a model that is there needs no hub"
    named = add(NAME, "--models-dir", models, "--keep", "--revision", "main", **home)
    assert named.returncode == 0, named.stderr
    assert "is there already, of the same source" in named.stderr
    asked = hub.requests
    other = add(NAME, "--models-dir", models, "--keep", "--revision", "f" * 40, **home)
    assert other.returncode == 1
    assert f"was made of {NAME} {COMMIT}" in other.stderr

    # Offline, and with no hub to be reached, the cache has all of it.
    offline = add(NAME, "--models-dir", models, "--name", "offline", HF_HUB_OFFLINE="1", **home)
    assert offline.returncode == 0, offline.stderr
    assert hub.requests == asked
    assert "HF_HUB_OFFLINE is set; taking the copy in its cache" in offline.stderr
    assert load_manifest(models, "offline").source.revision == COMMIT
    gone = add(NAME, "--models-dir", models, "--name", "gone", **(home | {"HF_ENDPOINT": "http://127.0.0.1:9"}))
    assert gone.returncode == 0, gone.stderr
    assert "http://127.0.0.1:9 cannot be reached; taking the copy in its cache" in gone.stderr


@pytest.mark.parametrize(
    ("source", "flags", "settings", "says"),
    [
        ("acme/nothing", (), {}, "there is no repository acme/nothing at {url}, nor a folder of this name here"),
        (NAME, ("--revision", "v9"), {}, f"{NAME} has no revision 'v9'"),
        ("acme/gated", (), {}, "acme/gated is gated: accept its terms at {url}/acme/gated"),
        ("acme/a--b", (), {}, "no repository can have this name"),
        (NAME, (), {"HF_ENDPOINT": "http://127.0.0.1:9"}, "http://127.0.0.1:9 cannot be reached"),
        (NAME, (), {"HF_HUB_OFFLINE": "1"}, "HF_HUB_OFFLINE is set, and there is no whole copy in its cache"),
        ("acme/blip", (), {}, "architecture is BlipForQuestionAnswering"),
        ("acme/bare", (), {}, "acme/bare has no weights"),
    ],
)
def test_what_cannot_be_had(
    source: str, flags: tuple[str, ...], settings: dict[str, str], says: str, hub: Hub, tmp_path: Path
) -> None:
    hub.gated.add("acme/gated")
    for name in ("blip", "bare"):
        hub.repositories[f"acme/{name}"] = folder = tmp_path / name
        shutil.copytree(hub.repositories[NAME], folder)
    (tmp_path / "blip" / "config.json").write_text('{"architectures": ["BlipForQuestionAnswering"]}')
    for name in ("model.safetensors", "pytorch_model.bin"):
        (tmp_path / "bare" / name).unlink()
    given = {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "cache")} | settings
    done = add(source, "--models-dir", tmp_path / "models", *flags, **given)
    assert done.returncode == 1
    assert says.format(url=hub.url) in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert "model.safetensors" not in hub.files
    if settings:
        assert f"`hf download {NAME} --local-dir FOLDER`" in done.stderr
    assert not (tmp_path / "models").exists()


def test_a_connection_cut_in_the_weights_is_gone_on_with(hub: Hub, repository: Path, tmp_path: Path) -> None:
    """huggingface_hub writes pieces of 10 MiB, so the weights are made larger by some that no model reads."""
    hub.repositories[NAME] = tmp_path / "large"
    shutil.copytree(repository, tmp_path / "large")
    weights = tmp_path / "large" / "model.safetensors"
    script = """
import sys, torch
from safetensors.torch import load_file, save_file
save_file(load_file(sys.argv[1]) | {"unused": torch.zeros(6_000_000)}, sys.argv[1], metadata={"format": "pt"})
"""
    export_python("-c", script, weights)
    models, home = tmp_path / "models", {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "cache")}
    hub.cut["model.safetensors"] = 15_000_000
    done = add(NAME, "--models-dir", models, **home)
    assert done.returncode == 1
    assert "the download broke off" in done.stderr.splitlines()[-1]
    assert "The same command again goes on from there" in done.stderr
    assert "Traceback" not in done.stderr
    assert not models.exists()

    offline = add(NAME, "--models-dir", models, HF_HUB_OFFLINE="1", **home)
    assert offline.returncode == 1
    assert "there is no whole copy in its cache" in offline.stderr

    hub.got.clear()
    again = add(NAME, "--models-dir", models, **home)
    assert again.returncode == 0, again.stderr
    assert hub.got == [("model.safetensors", 10 * 2**20)]
    [downloaded] = (tmp_path / "cache").rglob("snapshots/*/model.safetensors")
    assert downloaded.read_bytes() == weights.read_bytes()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopped_in_the_download_it_ends_at_once(hub: Hub, tmp_path: Path, number: signal.Signals) -> None:
    hub.stalled = "model.safetensors"
    settings = environment(HF_ENDPOINT=hub.url, HF_HOME=str(tmp_path / "cache"), HF_HUB_DOWNLOAD_TIMEOUT="50")
    command = [VQA, "models", "add", NAME, "--models-dir", str(tmp_path / "models")]
    with subprocess.Popen(command, env=settings, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert hub.stalling.wait(60)
            process.send_signal(number)
            assert process.wait(20) == -number
            assert process.stderr is not None
            assert "Traceback" not in process.stderr.read()
        finally:
            process.kill()
    assert not (tmp_path / "models").exists()
