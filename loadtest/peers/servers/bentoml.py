"""BentoML: a class with `@bentoml.service` and `@bentoml.api`, served by `bentoml serve`, as in its quick start.

Settings, and where they are documented (docs.bentoml.com):

- `workers=2`: "Parallelize requests handling"; a core each. `threads=1`: "Configurations"; those that run the method.
- The picture as the whole body: "Define input and output types", root input; the question is in the query, which
  `bentoml.Context` has.
- `traffic.timeout` (504 beyond) and `traffic.max_concurrency` (429 beyond): "Configurations", traffic; in `overload`
  the deadline and what fits into it.
- Metrics, access log and traces off: "Observability"; no usage reports: BENTOML_DO_NOT_TRACK ("Usage tracking").
- uvloop and httptools are in the environment: uvicorn, which BentoML runs on, takes them by itself.

Measured to choose: the raw body 6.5 ms, a form with a file
(`pathlib.Path`, which BentoML writes to the disk) 7.4, with a `PIL.Image` 7.4. No adaptive batching
(`servers/__init__.py`).
"""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import bentoml
from bentoml.validators import ContentType

from loadtest.peers.given import HOST, PATIENCE_S, Given

given = Given.read()
TRAFFIC: dict[str, Any] = {"timeout": given.deadline_s or PATIENCE_S}
if given.max_in_flight:
    TRAFFIC["max_concurrency"] = given.max_in_flight


@bentoml.service(
    workers=given.workers,
    threads=1,
    traffic=TRAFFIC,
    metrics={"enabled": False},
    logging={"access": {"enabled": False}},
    tracing={"sample_rate": 0.0},
)
class Answerer:
    """One question at a time in each worker."""

    def __init__(self) -> None:
        """The model, once a worker."""
        self.model = given.load()

    @bentoml.api
    def answer(self, image: Annotated[bytes, ContentType("image/jpeg")], /, ctx: bentoml.Context) -> dict[str, Any]:
        """A picture and a question to an answer."""
        return self.model.ask(image, ctx.request.query_params["question"]).json()


if __name__ == "__main__":
    command = [sys.executable, "-m", "bentoml", "serve", "loadtest.peers.servers.bentoml:Answerer"]
    os.execv(sys.executable, [*command, "--host", HOST, "--port", str(given.port)])
