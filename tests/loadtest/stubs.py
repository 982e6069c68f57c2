"""`stub.py` as a context."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

STUB = Path(__file__).with_name("stub.py")


@contextmanager
def stub(status: int = 200, milliseconds: float = 1) -> Iterator[tuple[str, int]]:
    """Its address and its process id."""
    command = [sys.executable, str(STUB), str(status), str(milliseconds)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}", process.pid
    finally:
        process.kill()
        process.wait(10)
        process.stdout.close()
