"""KServe's Python server: a `kserve.Model` behind its `ModelServer`, as in its guide to custom predictors.

Settings, and where they are documented (kserve.github.io: "Python Runtime SDK API", `ModelServer`, and its `--help`):

- `workers=2`: "The number of uvicorn workers for multi-processing"; a core each. They get the object by pickling,
  so each makes its own ONNX Runtime session or torch model when it has arrived.
- The picture as the body: a body that is not JSON reaches `predict` as it is (`DataPlane.decode`); the question is
  in a header. V2 with binary tensors is no faster way: the server turns them into lists, and refuses bytes that are
  no text.
- No gRPC, no latency log; `--log_config_file`: no access log, warnings only; `event_loop="uvloop"`.
- There is no limit of what is under way, and no timeout; `overload` meets it as it is.

KServe batches in a sidecar of its cluster, not in this server. Measured to choose: an `async` method with a thread
of its own 212 questions/s and 5.1 ms of CPU each, a plain one 127 and 5.2.
"""

from __future__ import annotations

import asyncio
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import uvicorn

from loadtest.peers.given import HOST, Given

given = Given.read()
LOGGING = Path.cwd() / "logging.json"

if __name__ == "__main__":
    LOGGING.write_text(json.dumps({"version": 1, "disable_existing_loggers": True, "root": {"level": "WARNING"}}))
# KServe reads its arguments when it is imported.
sys.argv += ["--log_config_file", str(LOGGING)]

import kserve.protocol.rest.server  # noqa: E402
from kserve import Model, ModelServer  # noqa: E402


class OnLoopback(uvicorn.Config):
    """KServe listens on every interface, and has no setting for it."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **(settings | {"host": HOST}))


kserve.protocol.rest.server.uvicorn.Config = OnLoopback


class Answerer(Model):
    """One question at a time in each worker."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        """In a worker: a model of its own."""
        self.__dict__.update(state)
        self.model = given.load()
        self.thread = ThreadPoolExecutor(1)

    async def predict(self, payload: bytes, headers: dict[str, str] | None = None) -> dict[str, object]:
        """A picture and a question to an answer; the event loop reads the next bodies meanwhile."""
        question = unquote((headers or {})["x-question"])
        answer = await asyncio.get_running_loop().run_in_executor(self.thread, self.model.ask, payload, question)
        return answer.json()


if __name__ == "__main__":
    answerer = Answerer("answer")
    answerer.load()
    server = ModelServer(
        http_port=given.port,
        workers=given.workers,
        enable_grpc=False,
        enable_latency_logging=False,
        event_loop="uvloop",
    )
    server.start([answerer])
