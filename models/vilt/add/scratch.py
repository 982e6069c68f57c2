"""Where a model is made, beside its place; what a killed run left there is removed by the next one."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PREFIX = ".adding-"


@contextmanager
def scratch(models_dir: Path) -> Iterator[Path]:
    """An empty folder for the time of a block, and the place of all temporary files meanwhile.

    It is locked, and a lock ends with its process: one without a lock is what a killed run left.

    Raises:
        OSError: it cannot be made.
    """
    models_dir.mkdir(parents=True, exist_ok=True)
    for left in models_dir.glob(f"{PREFIX}*"):
        _remove_unless_locked(left)
    folder, lock = _locked_folder(models_dir)
    before = tempfile.tempdir
    tempfile.tempdir = str(folder)
    try:
        yield folder
    finally:
        tempfile.tempdir = before
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _locked_folder(parent: Path) -> tuple[Path, int]:
    while True:
        folder = Path(tempfile.mkdtemp(dir=parent, prefix=PREFIX))
        descriptor = os.open(folder, os.O_RDONLY)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if folder.is_dir():
            return folder, descriptor
        # Another run took it for a leftover before it was locked.
        os.close(descriptor)


def _remove_unless_locked(folder: Path) -> None:
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except (FileNotFoundError, PermissionError):
        return  # gone meanwhile, or somebody else's
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    else:
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(descriptor)
