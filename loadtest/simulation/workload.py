"""Who asks what, and when: questions drawn from a seed, as arrays in the order of their arrival.

Sessions begin as a Poisson process whose rate follows the day and a flash crowd (thinned: Lewis and Shedler, 1979). A
session is about one picture and asks a geometric number of questions. Some sessions are about a picture of everybody's,
chosen by Zipf's law, with a question that others ask as well; all other pictures and questions are asked once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from loadtest.simulation.measured import Measured

PIXELS = {"640x480": 640 * 480, "1600x1200": 1600 * 1200, "4032x3024": 4032 * 3024, "mixed": 500_000}
# A key is a picture and one of so many questions about it.
_QUESTIONS = 1 << 10


@dataclass(frozen=True)
class Crowd:
    """A flash crowd: `times` the usual rate between `start_s` and `start_s + seconds`, come and gone at once.

    Attributes:
        viral_share: of the sessions that come in addition, how many are about one and the same picture.
        size: of the additional sessions' pictures; None: as everybody's.
    """

    start_s: float
    seconds: float
    times: float
    viral_share: float = 0.0
    size: str | None = None


@dataclass(frozen=True)
class Workload:
    """What is asked.

    Attributes:
        per_s: mean number of questions a second, without the crowd.
        seconds: how long questions come.
        swing: of the day: the rate goes from `1 - swing` to `1 + swing` times the mean and back.
        day_s: how long a day is; it begins at its lowest.
        crowd: a flash crowd, if any.
        questions: mean number of questions a session, 1 or more.
        think_s: mean seconds between two questions of a session; 0: all at once, as `POST /answers` has them.
        popular_share: of the sessions, how many are about a picture of everybody's.
        pictures, exponent: number of everybody's pictures, and of Zipf's law.
        common: different questions that are asked about each of them.
        sizes: of pictures, by share.
        timeouts_s: deadlines after arrival, by share.
    """

    per_s: float
    seconds: float
    swing: float = 0.0
    day_s: float = 86_400.0
    crowd: Crowd | None = None
    questions: float = 1.0
    think_s: float = 20.0
    popular_share: float = 0.0
    pictures: int = 10_000
    exponent: float = 0.9
    common: int = 5
    sizes: Mapping[str, float] = field(default_factory=lambda: {"640x480": 0.6, "1600x1200": 0.3, "4032x3024": 0.1})
    timeouts_s: Mapping[float, float] = field(default_factory=lambda: {2.0: 0.8, 10.0: 0.2})

    def rate(self, at: float) -> float:
        """Questions a second that come at a moment, `at` seconds from the start."""
        usual = self.per_s * (1 - self.swing * math.cos(2 * math.pi * at / self.day_s))
        inside = self.crowd is not None and self.crowd.start_s <= at < self.crowd.start_s + self.crowd.seconds
        return usual * (self.crowd.times if self.crowd is not None and inside else 1.0)


@dataclass(frozen=True)
class Questions:
    """Questions in the order of their arrival; arrays of one length. Times in seconds.

    Attributes:
        at, due: arrival and deadline.
        picture, key: identities; a key is a picture with a question.
        pixels: of the picture.
        prepare_s, alone_s, busy_s: seconds that its stages will take (see `Measured`).
    """

    at: NDArray[np.float64]
    due: NDArray[np.float64]
    picture: NDArray[np.int64]
    key: NDArray[np.int64]
    pixels: NDArray[np.int64]
    prepare_s: NDArray[np.float64]
    alone_s: NDArray[np.float64]
    busy_s: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.at)


def zipf(pictures: int, exponent: float) -> NDArray[np.float64]:
    """Zipf's law: the share of requests for each picture, the most popular first."""
    weights = np.arange(1, pictures + 1, dtype=np.float64) ** -exponent
    shares: NDArray[np.float64] = weights / weights.sum()
    return shares


def generate(workload: Workload, measured: Measured, seed: int) -> Questions:
    """Draw the questions of a workload with the stage times of a measured model.

    Raises:
        ValueError: a mean number of questions below 1.
    """
    if workload.questions < 1:
        raise ValueError(f"a session has at least one question, not {workload.questions:g} on average")
    rng = np.random.default_rng(seed)
    begun, extra = _sessions(workload, rng)
    popular = rng.random(len(begun)) < workload.popular_share
    picture = np.arange(workload.pictures, workload.pictures + len(begun), dtype=np.int64)
    cumulated = np.cumsum(zipf(workload.pictures, workload.exponent))
    picture[popular] = np.minimum(np.searchsorted(cumulated, rng.random(popular.sum())), workload.pictures - 1)
    viral = extra & (rng.random(len(begun)) < (workload.crowd.viral_share if workload.crowd else 0.0))
    picture[viral], popular = workload.pictures + len(begun), popular | viral
    # A popular picture has one size; 2654435761 is Knuth's multiplier for hashing, 2^32 over the golden ratio.
    draw = ((picture * 2_654_435_761) % (1 << 32)) / (1 << 32)
    names, shares = list(workload.sizes), np.cumsum(list(workload.sizes.values()))
    size = np.minimum(np.searchsorted(shares / shares[-1], draw, side="right"), len(names) - 1)
    if workload.crowd is not None and workload.crowd.size is not None:
        names.append(workload.crowd.size)
        size = np.where(extra, len(names) - 1, size)

    count = rng.geometric(1 / workload.questions, len(begun))
    session = np.repeat(np.arange(len(begun)), count)
    first = np.repeat(np.cumsum(count) - count, count)
    turn = np.arange(len(session)) - first
    pauses = np.where(turn == 0, 0.0, rng.exponential(max(workload.think_s, 1e-12), len(session)))
    since = np.cumsum(pauses)
    at = begun[session] + (since - since[first] if workload.think_s else 0.0)
    ask = np.where(popular[session], rng.integers(workload.common, size=len(session)), turn % _QUESTIONS)
    order = np.argsort(at, kind="stable")
    # What a session asks after the end is not asked, or the load would fade away.
    order = order[at[order] <= workload.seconds]
    session, at, ask = session[order], at[order], ask[order]
    timeouts = rng.choice(list(workload.timeouts_s), size=len(at), p=_normed(list(workload.timeouts_s.values())))
    prepare = np.zeros(len(at))
    for number, name in enumerate(names):
        mine = size[session] == number
        prepare[mine] = rng.choice(measured.prepare_s[name], mine.sum())
    which = rng.random(len(at))
    return Questions(
        at=at,
        due=at + timeouts,
        picture=picture[session],
        key=picture[session] * _QUESTIONS + ask,
        pixels=np.array([PIXELS[name] for name in names])[size[session]],
        prepare_s=prepare,
        # One draw for both: an inference that is long alone is long among others.
        alone_s=np.quantile(measured.alone_s, which, method="inverted_cdf"),
        busy_s=np.quantile(measured.busy_s, which, method="inverted_cdf"),
    )


def _sessions(workload: Workload, rng: np.random.Generator) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """When sessions begin, and which of them are the crowd's."""
    sessions_per_s = workload.per_s / workload.questions
    most = sessions_per_s * (1 + workload.swing) * (max(workload.crowd.times, 1.0) if workload.crowd else 1.0)
    at = np.sort(rng.random(rng.poisson(most * workload.seconds))) * workload.seconds
    usual = sessions_per_s * (1 - workload.swing * np.cos(2 * np.pi * at / workload.day_s))
    now = usual.copy()
    if (crowd := workload.crowd) is not None:
        now[(at >= crowd.start_s) & (at < crowd.start_s + crowd.seconds)] *= crowd.times
    place = rng.random(len(at)) * most
    kept = place < now
    return at[kept], (place >= usual)[kept]


def _normed(shares: list[float]) -> NDArray[np.float64]:
    return np.array(shares) / sum(shares)
