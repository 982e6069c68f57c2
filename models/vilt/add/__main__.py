"""`python -m models.vilt.add`; see `command.py`."""

from __future__ import annotations

import signal
import sys

from models.vilt.add.needed import advice


def main() -> int:
    """Run the command line; the exit code."""
    # As long as nothing is half made Ctrl-C may simply end it, also while a library loads or downloads.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        from models.vilt.add.command import command
    except ModuleNotFoundError as error:
        print(f"vqa: {advice([str(error.name)])}", file=sys.stderr)
        return 1
    return command()


if __name__ == "__main__":
    sys.exit(main())
