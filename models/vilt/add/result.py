"""What an added model's folder says of how it was made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from service.backends.manifest import read_manifest

PARITY = "parity.json"
QUANTISATION = "quantisation.json"


def summary(folder: Path) -> dict[str, Any]:
    """What `--json` prints, but for the time.

    Raises:
        ManifestError: it is no model folder.
    """
    manifest = read_manifest(folder)
    return {
        "name": manifest.model.name,
        "folder": str(folder),
        "revision": manifest.revision,
        "precision": manifest.source.precision,
        "checkpoint": manifest.source.checkpoint,
        "checkpoint_revision": manifest.source.revision,
        "parity": _report(folder / PARITY),
        "agreement": _report(folder / QUANTISATION),
        "megabytes": round(manifest.path(manifest.source.file).stat().st_size / 1e6, 1),
    }


def _report(path: Path) -> dict[str, Any] | None:
    return json.loads(path.read_text("utf-8")) if path.is_file() else None
