"""A model's folder and its manifest, `model.toml`: what the model is made of, with a digest for each file.

A folder is an immutable revision: `revision` is the digest of the manifest, and the manifest holds the digest of every
file that serving reads, so equal revisions mean equal answers.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from pathlib import Path, PurePosixPath
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError

MANIFEST_FILE = "model.toml"


def _stays_inside(name: str) -> str:
    """A file name, or a path below the folder, that can never leave it."""
    path = PurePosixPath(name)
    if not name or path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name:
        raise ValueError("must be the name of a file inside the model's folder")
    return name


FileName = Annotated[str, AfterValidator(_stays_inside)]
MODEL_NAME: Final = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
Precision = Literal["fp32", "int8"]
ModelName = Annotated[str, StringConstraints(pattern=MODEL_NAME)]
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class ManifestError(ValueError):
    """A model folder that cannot be used; the message names the folder and says what is wrong."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Model(_Strict):
    name: ModelName
    kind: Literal["classifier", "generator"]
    task: Literal["visual-question-answering"] = "visual-question-answering"
    description: str = ""
    license: str = ""
    demo: bool = False


class _Source(_Strict):
    file: FileName
    precision: Precision = Field(
        "fp32", description="int8: activations are scaled over the whole batch, so that a question is asked alone."
    )
    checkpoint: str = Field("", description="Where the weights came from: a hub id, or a folder's name.")
    revision: str = Field("", description="The commit of the hub's repository, or `sha256:` and a folder's digest.")


class _File(_Strict):
    file: FileName


class _Tokenizer(_File):
    max_tokens: int = Field(gt=2, description="Longest encoded question, the marks [CLS] and [SEP] included.")


class _Scores(_Strict):
    kind: Literal["softmax", "sigmoid"]


class ModelManifest(_Strict):
    """A classifier's manifest, as read from `model.toml`, with the folder it was found in."""

    folder: Path
    revision: str
    model: _Model
    source: _Source
    processor: _File
    tokenizer: _Tokenizer
    labels: _File
    scores: _Scores
    calibration: _File | None = None
    files: dict[FileName, Digest]

    def path(self, name: str) -> Path:
        """Where one of the folder's files lies."""
        return self.folder / name

    @property
    def batches(self) -> bool:
        """Whether questions may share an inference: whether an answer is the same whoever shares it."""
        return self.source.precision != "int8"

    def needed_files(self) -> list[str]:
        """The files that serving reads, each of which must have a digest."""
        names = [self.source.file, self.processor.file, self.tokenizer.file, self.labels.file]
        return names + ([self.calibration.file] if self.calibration else [])

    def faults(self) -> list[str]:
        """What is wrong with the files on disk (missing, no digest, another digest); empty when all is well."""
        found = [f"{name}: no digest in [files]" for name in self.needed_files() if name not in self.files]
        for name, digest in self.files.items():
            path = self.path(name)
            if not path.is_file():
                found.append(f"{name}: missing")
            elif (actual := file_digest(path)) != digest:
                found.append(f"{name}: SHA-256 is {actual[:12]}…, the manifest says {digest[:12]}…")
        return found


def file_digest(path: Path) -> str:
    """SHA-256 of a file, in lower-case hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def read_labels(manifest: ModelManifest) -> list[str]:
    """The model's labels, in the order of its scores.

    Raises:
        ManifestError: the file cannot be read or is no list of strings.
    """
    path = manifest.path(manifest.labels.file)
    try:
        labels = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ManifestError(f"{path}: {error}") from error
    if not isinstance(labels, list) or not labels or not all(isinstance(label, str) for label in labels):
        raise ManifestError(f"{path}: must be a list of strings, one a label")
    return labels


def load_manifest(models_dir: Path, name: str) -> ModelManifest:
    """The manifest of the model `name` below `models_dir`.

    Raises:
        ManifestError: no such model, or its manifest cannot be used.
    """
    folder = models_dir / name
    if Path(name).name != name or not (folder / MANIFEST_FILE).is_file():
        known = ", ".join(sorted(path.name for path in _folders(models_dir))) or "none"
        raise ManifestError(f"no model named {name!r} in {models_dir} (there: {known})")
    return read_manifest(folder)


def read_manifest(folder: Path) -> ModelManifest:
    """The manifest in `folder`.

    Raises:
        ManifestError: it cannot be read, or names something that is not allowed.
    """
    try:
        raw = (folder / MANIFEST_FILE).read_bytes()
    except OSError as error:
        raise ManifestError(f"{folder / MANIFEST_FILE}: {error}") from error
    return parse_manifest(folder, raw)


def parse_manifest(folder: Path, raw: bytes) -> ModelManifest:
    """The manifest of `folder`, from the bytes of its file.

    Raises:
        ManifestError: it is no TOML, or names something that is not allowed.
    """
    try:
        data = tomllib.loads(raw.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ManifestError(f"{folder / MANIFEST_FILE}: {error}") from error
    try:
        return ModelManifest(**{**data, "folder": folder, "revision": hashlib.sha256(raw).hexdigest()[:16]})
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ManifestError(f"{folder / MANIFEST_FILE}: {place}: {first['msg']}") from error


def list_models(models_dir: Path) -> list[ModelManifest]:
    """Every model below `models_dir`, by name.

    Raises:
        ManifestError: one of the manifests cannot be used.
    """
    return [read_manifest(folder) for folder in sorted(_folders(models_dir))]


def _folders(models_dir: Path) -> list[Path]:
    if not models_dir.is_dir():
        raise ManifestError(f"the models folder {models_dir} does not exist")
    # A name with a dot in front is that of a folder which is on its way to its place, or out of it.
    return [path for path in models_dir.iterdir() if path.name[0] != "." and (path / MANIFEST_FILE).is_file()]
