"""Writing a model folder's manifest: the digests of its files, and a calibration fitted later."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from service.backends.manifest import MANIFEST_FILE, ModelManifest, file_digest, read_manifest
from service.files import write_whole

_FILES_TABLE = "[files]"
_CALIBRATION_TABLE = re.compile(r"\n\[calibration\]\n(?:(?!\[).*\n?)*")


def rewrite_digests(folder: Path) -> ModelManifest:
    """Compute the digests anew and rewrite the table `[files]` at the end of model.toml; all else stays as written.

    Raises:
        ManifestError: the folder cannot be used once that is done.
        FileNotFoundError: a file that the manifest names is not there.
        DataError: the manifest cannot be written.
    """
    text = (folder / MANIFEST_FILE).read_text("utf-8")
    return _rewritten(folder, text)


def with_calibration(manifest: ModelManifest, name: str, data: bytes) -> ModelManifest:
    """Put a calibration into a model folder, in the place of the one that it had.

    The calibration is written under its name first, the manifest last: a server that starts in between refuses the
    folder rather than use a file that the manifest does not vouch for.

    Raises:
        DataError: a file cannot be written.
    """
    folder = manifest.folder
    text = (folder / MANIFEST_FILE).read_text("utf-8")
    kept, _, _ = text.partition(f"\n{_FILES_TABLE}")
    kept = _CALIBRATION_TABLE.sub("\n", kept + "\n").rstrip()
    write_whole(folder / name, data)
    return _rewritten(folder, f'{kept}\n\n[calibration]\nfile = "{name}"\n')


def _rewritten(folder: Path, text: str) -> ModelManifest:
    kept = text.partition(f"\n{_FILES_TABLE}")[0].rstrip()
    digests = [f'"{name}" = "{file_digest(folder / name)}"' for name in _served_files(tomllib.loads(kept))]
    write_whole(folder / MANIFEST_FILE, ("\n".join([kept, "", _FILES_TABLE, *digests]) + "\n").encode())
    return read_manifest(folder)


def _served_files(manifest: dict[str, Any]) -> list[str]:
    """Names of the files that serving reads: every table's `file`."""
    return sorted({table["file"] for table in manifest.values() if isinstance(table, dict) and "file" in table})
