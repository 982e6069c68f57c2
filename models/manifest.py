"""The manifest of a model folder, `model.toml`: its [files] table holds the SHA-256 of what serving reads.

`python -m models.manifest MODEL_DIR` computes the digests anew and rewrites that table; all else stays as written.
"""

from __future__ import annotations

import argparse
import hashlib
import tomllib
from pathlib import Path

FILES_TABLE = "[files]"


def digest(path: Path) -> str:
    """SHA-256 of a file, as lower-case hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def served_files(manifest: dict) -> list[str]:
    """Names of the files that serving reads: every table's `file`."""
    return sorted({table["file"] for table in manifest.values() if isinstance(table, dict) and "file" in table})


def rewrite_digests(folder: Path) -> dict[str, str]:
    """Rewrite the [files] table at the end of model.toml; returns the digest of each file.

    Raises FileNotFoundError for a file that the manifest names and the folder lacks.
    """
    path = folder / "model.toml"
    text = path.read_text()
    digests = {name: digest(folder / name) for name in served_files(tomllib.loads(text))}
    kept = text.partition(f"\n{FILES_TABLE}")[0].rstrip()
    lines = [f'"{name}" = "{value}"' for name, value in digests.items()]
    path.write_text("\n".join([kept, "", FILES_TABLE, *lines]) + "\n")
    return digests


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="model folder with a model.toml")
    for name, value in rewrite_digests(parser.parse_args().folder).items():
        print(f"{value}  {name}")


if __name__ == "__main__":
    main()
