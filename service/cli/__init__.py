"""The door for people: the command `vqa`, and how it fails: one line on standard error, never a traceback."""

from __future__ import annotations

import sys

# What a shell reports for a command that Ctrl-C ended.
INTERRUPTED = 130


def main() -> None:
    """Run the command line."""
    try:
        # Imported here, so that Ctrl-C while libraries load is no traceback either.
        from service.cli.main import run

        run()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
