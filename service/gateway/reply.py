"""What the gateway gives back for one question, before any door shapes it, and how its numbers are told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from service.answers import DIGITS, Verdict
from service.backends import ModelInfo, Notice


@dataclass(frozen=True, slots=True)
class Route:
    """Which way a question went, and why."""

    policy: str
    backend: str
    reason: str


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """A picture's identity (SHA-256 of its encoded bytes, hexadecimal) and its upright size in pixels.

    `statistics` are those of `service.images.statistics`; None where no model that was asked looks at them.
    """

    sha256: str
    width: int
    height: int
    statistics: Mapping[str, float] | None = None


@dataclass(frozen=True, slots=True)
class StageTimes:
    """Seconds of one question's stages; 0 where the cache answered.

    `decode` and what waited for it are shared by all questions of a picture.
    """

    decode_queue: float
    decode: float
    queue: float
    inference: float
    total: float


OUTSIDE_MODEL_DOMAIN: Final = Notice(
    "outside_model_domain",
    "This picture is not of the kind that the model knows, so its answer is held back.",
)


@dataclass(frozen=True, slots=True)
class Reply:
    """One answered question; `cached` where its posterior was computed before."""

    verdict: Verdict
    route: Route
    model: ModelInfo
    image: ImageFacts
    cached: bool
    warnings: tuple[Notice, ...]
    times: StageTimes

    @property
    def hints(self) -> tuple[Notice, ...]:
        """What the person who took the picture should know, in words that can be spoken."""
        return (OUTSIDE_MODEL_DOMAIN,) if self.verdict.outside_domain else ()


_Share = TypeVar("_Share", float, float | None)


def told_share(share: _Share) -> _Share:
    """A probability or share, 0 to 1, with as many digits as it is told."""
    return share if share is None else round(share, DIGITS)


def told_ms(seconds: float) -> float:
    """Seconds as milliseconds, with as many digits as they are told."""
    return round(seconds * 1000, 3)
