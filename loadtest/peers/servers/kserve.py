"""KServe's Python server: a `kserve.Model` behind its `ModelServer`, as in its guide to custom predictors."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any
from urllib.parse import unquote

import uvicorn

from loadtest.peers.given import HOST, Given

# KServe reads its arguments when it is imported.
given = Given.read()

import kserve.protocol.rest.server  # noqa: E402
from kserve import Model, ModelServer  # noqa: E402

class OnLoopback(uvicorn.Config):
    """KServe listens on every interface and has no setting for it, nor one for uvicorn's access log."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **(settings | {"host": HOST, "access_log": False}))


kserve.protocol.rest.server.uvicorn.Config = OnLoopback


class Answerer(Model):
    """One question a time."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        """In a worker, which gets the object from the first process: each has a model of its own."""
        self.__dict__.update(state)
        self.model = given.load()

    def predict(self, payload: bytes, headers: dict[str, str] | None = None) -> dict[str, object]:
        """A picture and a question to an answer."""
        return self.model.ask(payload, unquote((headers or {})["x-question"])).json()


if __name__ == "__main__":
    answerer = Answerer("answer")
    answerer.load()
    ModelServer(
        http_port=given.port, workers=given.workers, enable_grpc=False, enable_latency_logging=False
    ).start([answerer])
