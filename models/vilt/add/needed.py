"""What to say where an interpreter cannot add a model; imports nothing that may be missing."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def advice(missing: Sequence[str]) -> str:
    """Which packages this interpreter lacks, and what to do."""
    return f"{sys.executable} has no {', '.join(missing)}; make the export environment: make install-export"
