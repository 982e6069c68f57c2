"""BentoML: a class with `@bentoml.service` and `@bentoml.api`, served by `bentoml serve`, as in its quick start."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import bentoml

from loadtest.peers.given import HOST, Given

given = Given.read()

traffic: dict[str, Any] = {"timeout": given.deadline_s or 60}
if given.most_inside:
    traffic["max_concurrency"] = given.most_inside


@bentoml.service(
    workers=given.workers,
    threads=1,
    traffic=traffic,
    metrics={"enabled": False},
    logging={"access": {"enabled": False}},
    tracing={"sample_rate": 0.0},
)
class Answerer:
    """One question a time."""

    def __init__(self) -> None:
        """The model, once a worker."""
        self.model = given.load()

    @bentoml.api
    def answer(self, image: Path, question: str) -> dict[str, Any]:
        """A picture and a question to an answer."""
        return self.model.ask(image.read_bytes(), question).json()


if __name__ == "__main__":
    os.execv(
        sys.executable,
        [sys.executable, "-m", "bentoml", "serve", "loadtest.peers.servers.bentoml:Answerer"]
        + ["--host", HOST, "--port", str(given.port)],
    )
