"""What confidence and answerability are judged by: a few numbers of a posterior, and statistics of the picture.

They are defined over the most probable answers and what is left beside them, so that a reply's list of candidates, from
which a calibration is fitted, and a posterior in memory, to which it is applied, give the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from service.answers.answer_sets import CHOICES, NAMED_SETS
from service.answers.posterior import Posterior

LISTED: Final = 10
"""So many of the most probable answers are looked at."""

DIGITS: Final = 6
"""Masses are looked at with as many decimals as replies tell them."""

FLOOR: Final = 1e-4
"""Features keep masses this far from 0 and 1: what is less likely was not among the listed answers anyway."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A question's posterior and picture, as far as calibration looks at them.

    Attributes:
        masses: absolute masses of the most probable members, largest first, at most `LISTED`; "unanswerable" may be
            among them.
        top: mass of the best answerable member; 0 where there is none.
        second: mass of what comes next: the next best answerable member, or all that is not listed where that is more,
            since a caller's choices may leave out what the model believes; 0 where there is nothing.
        unanswerable: mass of "unanswerable".
        statistics: of the picture, by name (`service.images.statistics`); empty where it was not looked at.
        distribution: whether the masses are parts of one whole, as those of a sigmoid head are not.
        narrowed: whether the caller narrowed the answers down (choices, a named set). All but `top` and `unanswerable`
            then say less than they do over all that the model would answer, which is what calibrations are fitted on.
    """

    masses: tuple[float, ...]
    top: float
    second: float
    unanswerable: float
    statistics: Mapping[str, float] = field(default_factory=dict)
    distribution: bool = True
    narrowed: bool = False

    @property
    def answerable(self) -> float:
        """The mass that is not "unanswerable"."""
        return 1.0 - self.unanswerable

    @property
    def rest(self) -> float:
        """The mass beside the listed members; 0 where they are no distribution, and where it may come of rounding."""
        rest = 1.0 - math.fsum(self.masses)
        return rest if self.distribution and rest > _ROUNDED else 0.0

    @property
    def entropy(self) -> float:
        """Shannon entropy in nats over the listed members and the rest as one more; 0 for a certain answer."""
        total = math.fsum((*self.masses, self.rest))
        if total <= 0:
            return 0.0
        shares = (p / total for p in (*self.masses, self.rest))
        return max(0.0, -math.fsum(share * math.log(share) for share in shares if share > 0))

    def at_temperature(self, temperature: float) -> float:
        """The top mass once the logits are divided by a temperature (Guo et al. 2017), the rest taken as one answer."""
        if self.top <= 0:
            return 0.0
        # Relative to the largest, so that no power underflows.
        largest = math.log(max(self.masses[0], self.rest))
        powers = [math.exp((math.log(p) - largest) / temperature) for p in (*self.masses, self.rest) if p > 0]
        return math.exp((math.log(self.top) - largest) / temperature) / math.fsum(powers)

    def feature(self, name: str) -> float:
        """One of `FEATURES`, or a statistic of the picture.

        Raises:
            KeyError: there is no such number; also for a picture that was not looked at.
        """
        if name in _OF_MASSES:
            return _floored_logit(getattr(self, _OF_MASSES[name]))
        return self.entropy if name == "entropy" else self.statistics[name]


_NARROW: Final = frozenset((CHOICES, *NAMED_SETS))
_ROUNDED: Final = 1e-5  # ten masses, each half a digit off, and some
_OF_MASSES: Final = {"top_logit": "top", "second_logit": "second", "unanswerable_logit": "unanswerable"}
FEATURES: Final = (*_OF_MASSES, "entropy")
"""Features of the posterior; statistics of the picture are features, too."""


def evidence_of(posterior: Posterior, statistics: Mapping[str, float] | None) -> Evidence:
    """The evidence in a posterior, and in the statistics of its picture where there are any."""
    nothing = posterior.answer_set.unanswerable
    order = posterior.descending(LISTED + 2)
    listed = [_told(posterior.mass(member)) for member in order]
    masses = tuple(listed[:LISTED])
    top, second, *_ = (*(mass for member, mass in zip(order, listed, strict=True) if member != nothing), 0.0, 0.0)
    unanswerable = 0.0 if nothing is None else _told(posterior.mass(nothing))
    if unanswerable < masses[-1]:
        unanswerable = 0.0  # not among those listed
    narrowed = posterior.answer_set.name in _NARROW
    return _evidence(masses, top, second, unanswerable, statistics, posterior.off_set is not None, narrowed)


def evidence_of_candidates(
    candidates: Sequence[tuple[bool, float]],
    off_set: float | None,
    statistics: Mapping[str, float] | None,
) -> Evidence:
    """The same from a reply's candidates.

    Args:
        candidates: most probable first, at least `LISTED` unless there are fewer answers; whether each says
            "unanswerable", and its probability.
        off_set: as the reply has it.
        statistics: of the picture.
    """
    scale = 1.0 if off_set is None else 1.0 - off_set
    listed = [(says_nothing, _told(p * scale)) for says_nothing, p in candidates[:LISTED]]
    answerable = [mass for says_nothing, mass in listed if not says_nothing]
    top, second, *_ = (*answerable, 0.0, 0.0)
    unanswerable = math.fsum(mass for says_nothing, mass in listed if says_nothing)
    masses = tuple(mass for _, mass in listed)
    return _evidence(masses, top, second, unanswerable, statistics, off_set is not None)


def _evidence(
    masses: tuple[float, ...],
    top: float,
    second: float,
    unanswerable: float,
    statistics: Mapping[str, float] | None,
    distribution: bool,
    narrowed: bool = False,
) -> Evidence:
    found = Evidence(masses, top, second, unanswerable, statistics or {}, distribution, narrowed)
    return found if found.rest <= second else replace(found, second=found.rest)


def _told(mass: float) -> float:
    return round(mass, DIGITS)


def _floored_logit(mass: float) -> float:
    mass = min(max(mass, FLOOR), 1.0 - FLOOR)
    return math.log(mass) - math.log1p(-mass)
