"""How long work takes, learnt from the work that was done."""

from __future__ import annotations

# The weight of the newest measurement: after ten of them nine tenths of what is believed is new.
_WEIGHT = 0.2


class ServiceTime:
    """A running mean that follows the load: of seconds, or of a ratio of seconds.

    Args:
        first: what is believed before anything was measured.
    """

    def __init__(self, first: float) -> None:
        self.seconds = first

    def observe(self, seconds: float) -> None:
        """One more measurement. A single outlier moves the belief by no more than a factor of two."""
        self.seconds += _WEIGHT * (min(seconds, self.seconds * 6 + 1e-3) - self.seconds)
