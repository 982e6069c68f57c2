"""When to leave something that fails alone, and when to try it again."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

log = logging.getLogger(__name__)

FIRST_S: Final = 1.0
LONGEST_S: Final = 30.0


class Breaker:
    """Lets calls through while they succeed; after a failure one at a time, ever more rarely.

    A failure shuts it for a second, each further one for twice as long, up to half a minute; then one call, the probe,
    is let through and decides. Said in the log is only what changes.

    Args:
        what: what is called, for the log.
        clock: seconds, on a clock that never goes back.
    """

    def __init__(self, what: str, clock: Callable[[], float]) -> None:
        self._what = what
        self._clock = clock
        self._told: str | None = None
        self._delay_s = 0.0
        self._shut_until = 0.0
        self._probing = False
        # Counts the changes of state. A call that began before the last one decides nothing: sixteen that hang together
        # are one failure.
        self._era = 0

    def enter(self) -> int | None:
        """Ask to make a call.

        Returns:
            A ticket for `succeeded`, `failed` or `left`, of which one must follow; None: do not call.
        """
        if self._told is not None:
            if self._probing or self._clock() < self._shut_until:
                return None
            self._probing = True
            self._era += 1
        return self._era

    def succeeded(self, ticket: int) -> None:
        """The call went well."""
        if ticket != self._era or self._told is None:
            return
        log.info("%s works again", self._what)
        self._told, self._delay_s, self._probing = None, 0.0, False
        self._era += 1

    def failed(self, ticket: int, why: str) -> None:
        """The call failed; `why` is for the log and holds nothing of a caller."""
        if ticket != self._era:
            return
        if why != self._told:
            log.warning("%s cannot be used and is left out: %s", self._what, why)
        self._told, self._probing = why, False
        self._delay_s = min(max(2 * self._delay_s, FIRST_S), LONGEST_S)
        self._shut_until = self._clock() + self._delay_s
        self._era += 1

    def left(self, ticket: int) -> None:
        """The call was given up and tells nothing; the next one probes in its place."""
        if ticket == self._era:
            self._probing = False
