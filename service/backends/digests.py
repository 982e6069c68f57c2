"""Writing a model folder's manifest: the digests of its files, and a calibration fitted later."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import tomlkit
from tomlkit.exceptions import TOMLKitError

from service.backends.manifest import (
    MANIFEST_FILE,
    ManifestError,
    ModelManifest,
    Precision,
    file_digest,
    parse_manifest,
)
from service.files import write_whole


def rewrite_digests(folder: Path, name: str | None = None, precision: Precision | None = None) -> ModelManifest:
    """Compute the digests of the files that serving reads anew, and put them into `[files]`; all else stays as written.

    Args:
        folder: the model's.
        name: another name for the model; None keeps its own.
        precision: another precision of its graph; None keeps its own.

    Raises:
        ManifestError: the manifest cannot be used, or a file that it names is not there.
        DataError: the manifest cannot be written.
    """
    document = _read(folder)
    if name is not None:
        document["model"]["name"] = name
    if precision is not None:
        document["source"]["precision"] = precision
    return _write(folder, document, {})


def with_calibration(manifest: ModelManifest, name: str, data: bytes) -> ModelManifest:
    """Put a calibration into a model folder, in the place of the one that it had.

    The calibration is written under its name first, the manifest last: a server that starts in between refuses the
    folder rather than use a file that the manifest does not vouch for.

    Raises:
        ManifestError: another file of the folder is not what the manifest says; nothing is written.
        DataError: a file cannot be written.
    """
    check_all_but_calibration(manifest)
    document = _read(manifest.folder)
    document["calibration"] = {"file": name}
    return _write(manifest.folder, document, {name: data})


def check_all_but_calibration(manifest: ModelManifest) -> None:
    """Whether every file but the calibration, which can be fitted anew, is what the manifest says.

    Raises:
        ManifestError: one is not.
    """
    old = manifest.calibration.file if manifest.calibration else None
    if faults := [fault for fault in manifest.faults() if old is None or not fault.startswith(f"{old}:")]:
        raise ManifestError(f"{manifest.folder}: " + "; ".join(faults))


def _read(folder: Path) -> tomlkit.TOMLDocument:
    try:
        return tomlkit.parse((folder / MANIFEST_FILE).read_text("utf-8"))
    except (OSError, UnicodeDecodeError, TOMLKitError) as error:
        raise ManifestError(f"{folder / MANIFEST_FILE}: {error}") from error


def _write(folder: Path, document: tomlkit.TOMLDocument, new: Mapping[str, bytes]) -> ModelManifest:
    """Write new files and then the manifest, once it is known that it can be used."""
    names = sorted({table["file"] for table in document.values() if isinstance(table, Mapping) and "file" in table})
    files = tomlkit.table()
    for name in names:
        try:
            digest = hashlib.sha256(new[name]).hexdigest() if name in new else file_digest(folder / name)
        except OSError as error:
            raise ManifestError(f"{folder}: {name}: {error.strerror}") from error
        files.add(name, digest)
    document.pop("files", None)
    document["files"] = files
    text = tomlkit.dumps(document)
    manifest = parse_manifest(folder, text.encode())
    for name, data in new.items():
        write_whole(folder / name, data)
    write_whole(folder / MANIFEST_FILE, text.encode())
    return manifest
