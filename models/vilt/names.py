"""Where a model folder may be made: `python -m models.vilt.names models/NAME` says why not, before any training."""

from __future__ import annotations

import re
import sys
from pathlib import Path

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
EMBEDDED = "vilt-shapes"


def check_place(out: Path) -> None:
    """Whether a model folder may be made here: nothing is there, or an older model folder.

    Raises ValueError where there is something else, or where the folder's name cannot be a model's.
    """
    name = out.resolve().name
    if not NAME.fullmatch(out.name) or name != out.name:
        raise ValueError(f"{out.name!r} cannot be a model's name: letters, digits, dots and dashes can, a letter first")
    if out.exists() and not (out / "model.toml").is_file():
        raise ValueError(f"{out} is there already and no model folder; choose another name")


def main() -> None:
    out = Path(sys.argv[1])
    try:
        check_place(out)
        if out.name == EMBEDDED:
            raise ValueError(f"{EMBEDDED} is the embedded model; choose another name")
    except ValueError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
