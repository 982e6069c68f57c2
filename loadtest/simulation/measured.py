"""Measured service times: the input of a simulation, read from a file that `loadtest.simulation.measure` writes."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FILE = Path(__file__).with_name("measured.toml")
# What `measure` writes; sizes of pictures by name.
SIZES = ("640x480", "1600x1200", "4032x3024", "mixed")

Sample = NDArray[np.float64]


class MeasuredError(ValueError):
    """The file lacks something; the message says what, and which command writes it."""


@dataclass(frozen=True)
class Measured:
    """What one model costs on one machine.

    Attributes:
        model: its name.
        cores: of the machine.
        prepare_s: seconds of one core to decode and prepare a picture, a sample for each size.
        alone_s: seconds of an inference that has all cores, a sample.
        busy_s: seconds of one core for an inference while each core does one, a sample.
        picture_bytes: the mean size of a picture's file, by size.
        front_s: seconds of a core for all else that an answered question costs: HTTP, digest, look-up, reply.
        refusal_s: seconds of a core that a refused question costs.
        start_s: seconds from the start of the process until it is ready.
        entry_bytes: of an answer in the memory cache.
        shared_bytes: of the same answer in the shared cache.
        series: time series that a replica's `/metrics` shows.
    """

    model: str
    cores: int
    prepare_s: Mapping[str, Sample]
    alone_s: Sample
    busy_s: Sample
    picture_bytes: Mapping[str, float]
    front_s: float
    refusal_s: float
    start_s: float
    entry_bytes: int
    shared_bytes: int
    series: int


@dataclass(frozen=True)
class SharedCache:
    """What one Redis does a second with values of an answer's size."""

    value_bytes: int
    gets_per_s: float
    sets_per_s: float


def read(path: Path = FILE) -> dict[str, Any]:
    """The file's contents.

    Raises:
        MeasuredError: it cannot be read, or is not TOML.
    """
    try:
        return tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise MeasuredError(f"{path}: {error}; `python -m loadtest.simulation.measure` writes it") from None


def measured(data: Mapping[str, Any], model: str) -> Measured:
    """One model's section.

    Raises:
        MeasuredError: it is not there, or incomplete, or holds times that are none.
    """
    try:
        section = data["models"][model]
    except KeyError:
        known = ", ".join(data.get("models", {})) or "none"
        raise MeasuredError(
            f"nothing was measured of {model!r} (known: {known}); "
            "`python -m loadtest.simulation.measure --model FOLDER` does it"
        ) from None
    try:
        return Measured(
            model=model,
            cores=int(section["cores"]),
            prepare_s={size: _seconds(section["prepare_ms"][size], f"prepare_ms.{size}") for size in SIZES},
            alone_s=_seconds(section["inference_alone_ms"], "inference_alone_ms"),
            busy_s=_seconds(section["inference_busy_ms"], "inference_busy_ms"),
            picture_bytes={size: float(section["picture_bytes"][size]) for size in SIZES},
            front_s=float(section["front_ms"]) / 1000,
            refusal_s=float(section["refusal_ms"]) / 1000,
            start_s=float(section["start_s"]),
            entry_bytes=int(section["entry_bytes"]),
            shared_bytes=int(section["shared_bytes"]),
            series=int(section["series"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise MeasuredError(f"models.{model}: {error}; measure it again") from None


def shared_cache(data: Mapping[str, Any]) -> SharedCache | None:
    """What was measured of Redis; None where there was none to measure."""
    found = data.get("redis")
    return SharedCache(found["value_bytes"], found["gets_per_s"], found["sets_per_s"]) if found else None


def _seconds(milliseconds: Any, name: str) -> Sample:
    sample = np.asarray(milliseconds, dtype=np.float64) / 1000
    if sample.ndim != 1 or not sample.size or not (np.isfinite(sample) & (sample > 0)).all():
        raise ValueError(f"{name} must be a list of positive milliseconds")
    return sample
