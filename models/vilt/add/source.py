"""A SOURCE as a checkpoint that is here, whole as far as its files tell. Needs no torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from models.vilt.add.folder import Described, describe, digest, weight_files


@dataclass(frozen=True)
class Source:
    """A checkpoint folder.

    Attributes:
        described: all but the weights.
        weights: their files.
        revision: the commit of a hub's repository, or `sha256:` and a digest of the files.
    """

    described: Described
    weights: list[Path]
    revision: str

    @property
    def folder(self) -> Path:
        """Where it lies."""
        return self.described.folder


def local_source(folder: Path) -> Source:
    """A checkpoint folder of one's own.

    Raises:
        AddError: it cannot be used.
    """
    described = describe(folder)
    weights = weight_files(folder)
    return Source(described, weights, digest(folder, weights))


def hub_commit(name: str, revision: str, say: Callable[[str], None]) -> str | None:
    """The commit that a branch or tag of a hub's repository is at; None where the hub does not tell.

    Raises:
        AddError: it cannot be known.
    """
    from models.vilt.add.hub import Repository

    return Repository.find(name, revision, say).commit


def hub_source(name: str, revision: str | None, say: Callable[[str], None]) -> Source:
    """A hub's repository, downloaded: its description first, so that a wrong one is refused before its weights come.

    Raises:
        AddError: it cannot be had, or cannot be used.
        OSError: it cannot be written.
    """
    # Imported here: a folder needs nothing of it.
    from models.vilt.add.hub import Repository

    repository = Repository.find(name, revision, say)
    described = describe(repository.description())
    folder = repository.weights(say)
    return Source(described, weight_files(folder), folder.name)
