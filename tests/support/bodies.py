"""JSON bodies with one thing changed, to see what a reader says of it."""

from __future__ import annotations

import copy
from typing import Any


def changed(body: Any, path: str, value: object) -> Any:
    """A copy of a body with the entry at a dotted path replaced; None takes it out."""
    body = copy.deepcopy(body)
    *parents, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    at = body
    for parent in parents:
        at = at[parent]
    if value is None:
        del at[last]
    else:
        at[last] = value
    return body
