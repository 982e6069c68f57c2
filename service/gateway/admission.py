"""How many questions may be under way: one permit a question, whether it came alone or with others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from service.errors import Code, VQAError


class Admission:
    """A counter of questions under way, with a bound.

    Args:
        limit: most questions at once.
        observe: told the number after each change.
    """

    def __init__(self, limit: int, observe: Callable[[int], None] = lambda _: None) -> None:
        self._limit = limit
        self._observe = observe
        self.in_flight = 0

    @contextmanager
    def permits(self, count: int) -> Iterator[None]:
        """Hold `count` permits for the time of the block.

        Raises:
            VQAError: `saturated`, at once, when they are not to be had.
        """
        if self.in_flight + count > self._limit:
            raise VQAError(
                Code.SATURATED,
                f"{self.in_flight} questions are under way and the limit is {self._limit}. Try again shortly.",
                retry_after_s=1,
            )
        self._change(count)
        try:
            yield
        finally:
            self._change(-count)

    def _change(self, by: int) -> None:
        self.in_flight += by
        self._observe(self.in_flight)
