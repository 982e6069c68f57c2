"""Model folders: what a manifest may say, and how a fault in it is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from service.backends import ManifestError, list_models, load_manifest
from service.backends.digests import rewrite_digests, with_calibration

GOOD = """
[model]
name = "tiny"
kind = "classifier"
[source]
file = "model.onnx"
[processor]
file = "preprocessor_config.json"
[tokenizer]
file = "tokenizer.json"
max_tokens = 40
[labels]
file = "labels.json"
[scores]
kind = "sigmoid"
[files]
"""


def model(folder: Path, text: str = GOOD, name: str = "tiny") -> Path:
    (folder / name).mkdir()
    (folder / name / "model.toml").write_text(text)
    return folder


def test_a_manifest_without_calibration(tmp_path: Path) -> None:
    manifest = load_manifest(model(tmp_path), "tiny")
    assert manifest.calibration is None
    assert manifest.scores.kind == "sigmoid"
    assert manifest.model.demo is False


def test_precision_and_origin_of_a_graph(tmp_path: Path) -> None:
    """Absent, it is fp32 and trained here, as every manifest written before the fields were."""
    source = load_manifest(model(tmp_path), "tiny").source
    assert (source.precision, source.checkpoint, source.revision) == ("fp32", "", "")
    given = 'file = "model.onnx"\nprecision = "int8"\ncheckpoint = "owner/name"\nrevision = "0123"'
    folder = model(tmp_path, GOOD.replace('file = "model.onnx"', given).replace('"tiny"', '"other"'), "other")
    source = load_manifest(folder, "other").source
    assert (source.precision, source.checkpoint, source.revision) == ("int8", "owner/name", "0123")


def test_the_revision_is_the_manifests_digest(tmp_path: Path) -> None:
    first = load_manifest(model(tmp_path), "tiny").revision
    (tmp_path / "tiny" / "model.toml").write_text(GOOD + "# a word\n")
    assert load_manifest(tmp_path, "tiny").revision != first
    assert len(first) == 16


def test_files_without_a_digest_are_faults(tmp_path: Path) -> None:
    faults = load_manifest(model(tmp_path), "tiny").faults()
    assert [fault.partition(":")[0] for fault in faults] == [
        "model.onnx",
        "preprocessor_config.json",
        "tokenizer.json",
        "labels.json",
    ]


def test_missing_and_changed_files_are_faults(tmp_path: Path) -> None:
    digests = f'"model.onnx" = "{"0" * 64}"\n"labels.json" = "{"0" * 64}"\n'
    folder = model(tmp_path, GOOD + digests)
    (folder / "tiny" / "labels.json").write_text("[]")
    faults = "\n".join(load_manifest(folder, "tiny").faults())
    assert "model.onnx: missing" in faults
    assert "labels.json: SHA-256 is 4f53cda18c2b…" in faults


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("sigmoid", "argmax"), "scores.kind"),
        (("max_tokens = 40", "max_tokens = 2"), "tokenizer.max_tokens"),
        (('name = "tiny"', 'name = "../tiny"'), "model.name"),
        (('file = "model.onnx"', 'file = "../model.onnx"'), "source.file"),
        (('file = "model.onnx"', 'file = "/etc/passwd"'), "source.file"),
        (('file = "labels.json"', "file = 5"), "labels.file"),
        (("[scores]", "[score]"), "scores"),
        (('kind = "classifier"', 'kind = "oracle"'), "model.kind"),
        (('file = "model.onnx"', 'file = "model.onnx"\nprecision = "int4"'), "source.precision"),
        (("[files]", '[files]\n"model.onnx" = "abc"'), "files"),
        (("[model]", "[model"), "model.toml"),
    ],
)
def test_a_fault_names_its_place(tmp_path: Path, change: tuple[str, str], says: str) -> None:
    folder = model(tmp_path, GOOD.replace(*change))
    with pytest.raises(ManifestError, match=says):
        load_manifest(folder, "tiny")


@pytest.mark.parametrize("name", ["nope", "", "..", "../tiny", "tiny/../tiny", "/"])
def test_a_name_that_is_no_model(tmp_path: Path, name: str) -> None:
    with pytest.raises(ManifestError, match="tiny"):
        load_manifest(model(tmp_path), name)


def test_listing_leaves_out_what_is_no_model(tmp_path: Path) -> None:
    model(tmp_path)
    (tmp_path / "recipes").mkdir()
    (tmp_path / "notes.txt").write_text("x")
    assert [manifest.model.name for manifest in list_models(tmp_path)] == ["tiny"]
    with pytest.raises(ManifestError, match="does not exist"):
        list_models(tmp_path / "nowhere")


def whole(models: Path) -> Path:
    """A folder with every file that its manifest names; its digests are right."""
    folder = model(models) / "tiny"
    for name in ("model.onnx", "preprocessor_config.json", "tokenizer.json", "labels.json"):
        (folder / name).write_text("{}")
    rewrite_digests(folder)
    return folder


def test_rewriting_digests_keeps_all_else_wherever_it_stands(tmp_path: Path) -> None:
    """Also tables behind `[files]`, comments, and tables written in one line."""
    folder = whole(tmp_path)
    path = folder / "model.toml"
    before, _, rest = path.read_text().partition("[scores]")
    scores, _, digests = rest.partition("[files]")
    path.write_text(f"{before}[files]{digests}\n[scores] # behind{scores}")
    (folder / "labels.json").write_text('["yes"]')
    assert [fault.split(":")[0] for fault in load_manifest(tmp_path, "tiny").faults()] == ["labels.json"]
    manifest = rewrite_digests(folder)
    assert manifest == load_manifest(tmp_path, "tiny")
    assert manifest.faults() == []
    assert manifest.scores.kind == "sigmoid"
    assert "# behind" in path.read_text()


@pytest.mark.parametrize("old", ["", '\n[calibration] # the old one\nfile = "old.json"\n', "inline"])
def test_a_calibration_takes_the_place_of_another(tmp_path: Path, old: str) -> None:
    folder = whole(tmp_path)
    path = folder / "model.toml"
    (folder / "old.json").write_text("{}")
    text = path.read_text()
    path.write_text('calibration = {file = "old.json"}\n' + text if old == "inline" else text + old)
    assert rewrite_digests(folder).faults() == []
    manifest = with_calibration(load_manifest(tmp_path, "tiny"), "calibration.json", b"{}\n")
    assert manifest.calibration is not None
    assert manifest.calibration.file == "calibration.json"
    assert manifest.faults() == []
    assert "old.json" not in manifest.files


def test_a_damaged_folder_gets_no_calibration(tmp_path: Path) -> None:
    folder = whole(tmp_path)
    manifest = load_manifest(tmp_path, "tiny")
    before = (folder / "model.toml").read_bytes()
    (folder / "labels.json").write_text("[]")
    with pytest.raises(ManifestError, match=r"labels\.json"):
        with_calibration(manifest, "calibration.json", b"{}")
    assert (folder / "model.toml").read_bytes() == before
    assert not (folder / "calibration.json").exists()
