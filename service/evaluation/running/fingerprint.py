"""What the answers of a run depend on: the data set, the pictures, the models, and what was chosen."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from service.errors import DataError
from service.evaluation.running.asker import TOP_K
from service.evaluation.running.datasets import DataSet


@dataclass(frozen=True)
class Choices:
    """What whoever starts a run chooses, as far as answers depend on it.

    Attributes:
        policy: the routing policy; None leaves it to the server.
        model: the model that a server is asked for; None leaves it to the server, or the model is loaded here.
        only, limit: which questions (`select`).
        seed: of the blind views.
    """

    policy: str | None = None
    model: str | None = None
    only: Sequence[str] = ()
    limit: int | None = None
    seed: int = 0


def fingerprint(data: DataSet, choices: Choices, models: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """All that the answers depend on, as JSON values: two runs may share a folder where this is equal.

    Raises:
        DataError: a file cannot be read.
    """
    return {
        "dataset": data.name,
        "files": {name: digest(path) for name, path in data.sources.files.items()},
        "models": list(models),
        "top_k": TOP_K,
        **asdict(choices),
        "only": list(choices.only),
        "pictures": _pictures(example.image for example in data.examples),
    }


def digest(path: Path) -> str | dict[str, str]:
    """The SHA-256 of a file, hexadecimal, or of each file in a folder (GQA comes in chunks).

    Raises:
        DataError: it cannot be read.
    """
    try:
        if path.is_dir():
            return {part.name: _digest(part) for part in sorted(path.iterdir()) if part.is_file()}
        return _digest(path)
    except OSError as error:
        raise DataError(path, f"it cannot be read: {error.strerror}") from error


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _pictures(paths: Iterable[Path]) -> str:
    """A digest of the pictures' names and sizes, which finds most exchanges without reading them all."""
    listing = hashlib.sha256()
    for path in dict.fromkeys(paths):
        try:
            size = path.stat().st_size
        except OSError as error:
            raise DataError(path, f"it cannot be read: {error.strerror}") from error
        listing.update(f"{path.name}\0{size}\n".encode("utf-8", "surrogateescape"))
    return listing.hexdigest()
