"""`python -m models.vilt.add`; see `command.py`."""

from __future__ import annotations

import signal
import sys

from models.vilt.add.needed import READING, lacking


def main() -> int:
    """Run the command line; the exit code."""
    # As long as nothing is half made Ctrl-C may simply end it, also while a library loads or downloads.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if missing := lacking(READING):
        print(f"vqa: {missing}", file=sys.stderr)
        return 1
    from models.vilt.add.command import command

    return command()


if __name__ == "__main__":
    sys.exit(main())
