"""One question on its way, and how it ends."""

from __future__ import annotations

from enum import IntEnum

from service.scheduling import Urgency


class Outcome(IntEnum):
    """How a question ends; each ends as exactly one."""

    ANSWERED = 0
    LATE = 1
    REFUSED = 2
    LOST = 3


class Question:
    """One question on its way; see `workload.Questions`."""

    __slots__ = (
        "alone_s",
        "at",
        "busy_s",
        "cached",
        "due",
        "key",
        "picture",
        "pixels",
        "prepare_s",
        "tries",
        "urgency",
        "where",
    )

    def __init__(
        self,
        at: float,
        due: float,
        picture: int,
        key: int,
        pixels: int,
        prepare_s: float,
        alone_s: float,
        busy_s: float,
    ) -> None:
        self.at, self.due, self.picture, self.key, self.pixels = at, due, picture, key, pixels
        self.prepare_s, self.alone_s, self.busy_s = prepare_s, alone_s, busy_s
        self.urgency: Urgency | None = None
        self.tries = 0
        self.where = -1
        self.cached = False
