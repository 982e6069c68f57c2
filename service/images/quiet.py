"""Keeps libtiff from writing to standard error.

It reports each damaged row of a hostile file there, in thousands of lines, in the middle of the service's log. Pillow
has no switch for it, so the library that Pillow has loaded is asked directly. Where it cannot be found (another
system, another build) the lines stay, and nothing else changes.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

from PIL import _imaging

_MAPS = Path("/proc/self/maps")


def silence_libtiff() -> bool:
    """Switch off libtiff's error and warning lines for this process; False where its library was not found."""
    assert _imaging  # it is Pillow's core that loads libtiff
    try:
        lines = _MAPS.read_text(encoding="utf-8").splitlines()
    except OSError:
        return False
    paths = {line.split(maxsplit=5)[5] for line in lines if "/libtiff" in line}
    found = False
    for path in paths:
        try:
            library = ctypes.CDLL(path)
            for name in ("TIFFSetErrorHandler", "TIFFSetWarningHandler"):
                setter = getattr(library, name)
                setter.argtypes, setter.restype = [ctypes.c_void_p], ctypes.c_void_p
                setter(None)
        except (OSError, AttributeError):
            continue
        found = True
    return found
