"""How much memory a process has taken at its peak."""

from __future__ import annotations

import re
from pathlib import Path


def peak_mib() -> float:
    """The largest resident size of this process so far, in MiB.

    Not `ru_maxrss`: a new process takes that over from the one that started it, and a large parent then hides
    whatever the child takes.
    """
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text("ascii"))
    assert found is not None
    return int(found[1]) / 1024
