"""Where a model folder is made, and putting it there: `python -m models.vilt.place NAME [--take FOLDER]`.

Says why a model of that name cannot be made, before any training; with `--take`, moves a finished folder to its place.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from service.backends.manifest import MANIFEST_FILE, MODEL_NAME

EMBEDDED = "vilt-shapes"
# Written by hand, or made later; kept when a folder is made anew.
KEPT = ("MODEL_CARD.md", "examples")


def check_place(out: Path) -> None:
    """Whether a model folder may be made here: nothing is there, or an older model folder.

    Raises ValueError where there is something else, or where the folder's name cannot be a model's.
    """
    check_name(out.name)
    if out.resolve().name != out.name:
        raise ValueError(f"{out} is a link to {out.resolve()}; choose another name")
    if out.exists() and not (out / MANIFEST_FILE).is_file():
        raise ValueError(f"{out} is there already and no model folder; choose another name")


def check_name(name: str) -> None:
    """Whether a model can be called so; raises ValueError."""
    if not re.fullmatch(MODEL_NAME, name):
        raise ValueError(
            f"{name!r} cannot be a model's name: up to 100 letters, digits, dots, dashes and underscores can, a letter "
            "or digit first"
        )


def check_not_embedded(name: str) -> None:
    """Whether this is another name than the embedded model's; raises ValueError."""
    if name == EMBEDDED:
        raise ValueError(f"{EMBEDDED} is the embedded model; choose another name")


def put_in_place(made: Path, out: Path, kept: Sequence[str] = KEPT, wanted: Callable[[], bool] = lambda: True) -> None:
    """Move a folder to its place; what an older one has that is written by hand (`kept`) is copied into it first.

    The older one is kept beside it until the new one is there, and comes back where that fails. One folder at a time
    is moved, whoever moves it; `wanted` is asked once nobody else can move any, and leaves what is there by False.
    """
    with _alone(out.parent):
        if wanted():
            _exchange(made, out, kept)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """The time of a block without another process's such block on the same folder."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _exchange(made: Path, out: Path, kept: Sequence[str]) -> None:
    old, new = (out.with_name(f".{state}-{out.name}") for state in ("old", "new"))
    if old.exists() and not out.exists():  # killed in between
        old.rename(out)
    for name in kept:
        if (out / name).is_dir():
            shutil.copytree(out / name, made / name, dirs_exist_ok=True)
        elif (out / name).is_file():
            shutil.copyfile(out / name, made / name)
    shutil.rmtree(new, ignore_errors=True)
    shutil.move(made, new)  # which copies, where it must: what may take long or fail happens beside the place
    if out.exists():
        shutil.rmtree(old, ignore_errors=True)
        out.rename(old)
    try:
        new.rename(out)
    except BaseException:
        # Also where it is interrupted: a model folder that was there is there again, whatever happened.
        if old.exists():
            old.rename(out)
        raise
    shutil.rmtree(old, ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="the model's")
    parser.add_argument("--models-dir", type=Path, default=Path("models"), help="folder of models; default models")
    parser.add_argument("--take", type=Path, metavar="FOLDER", help="a finished model folder to move there")
    given = parser.parse_args()
    out: Path = given.models_dir / given.name
    try:
        check_name(given.name)
        check_place(out)
        check_not_embedded(given.name)
        if given.take is not None and not (given.take / MANIFEST_FILE).is_file():
            raise ValueError(f"{given.take} is no model folder: it has no {MANIFEST_FILE}")
    except ValueError as error:
        sys.exit(str(error))
    if given.take is not None:
        put_in_place(given.take, out)


if __name__ == "__main__":
    main()
