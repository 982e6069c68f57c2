"""LitServe: `LitAPI` with setup, decode_request, predict and encode_response, as in its quick start.

Settings, and where they are documented (lightning.ai/docs/litserve, and the docstrings of `LitServer` and `run`):

- `workers_per_device=2`: "For CPU, set to the number of cores available on the machine".
- `fast_queue=True`: ZeroMQ, for "over 100 requests a second".
- `num_api_servers=1`: HTTP servers; here they share the two cores with the workers.
- A form with the picture as a file: "Requests"; `decode_request` runs in the worker, so both cores decode.
- `timeout`: a request that waited longer in the queue gets 504 and costs nothing more; in `overload` the deadline.
- `limit_concurrency`: handed on to uvicorn, as `run(**kwargs)` says ("See uvicorn documentation for full list"); 503.
- No access log, uvloop, httptools: uvicorn's settings, likewise.

Measured to choose: fast_queue with one HTTP server 5.86 ms, with
two 5.92; the default queue 5.78 and 6.7, at a tenth less throughput. `max_batch_size` stays 1 (`servers/__init__.py`).
"""

# No `from __future__ import annotations`: LitServe looks at the type of `decode_request`'s argument, not at its name.

from collections.abc import Mapping
from typing import Any

import litserve as ls
from fastapi import Request

from loadtest.peers.answer import Answer, Model
from loadtest.peers.given import HOST, PATIENCE_S, Given

given = Given.read()


class Answerer(ls.LitAPI):
    """One question at a time in each worker."""

    def setup(self, device: str) -> None:  # noqa: ARG002 - LitServe's signature
        """The model, once a worker."""
        self.model: Model = given.load()

    def decode_request(self, request: Request) -> Any:
        """The form's picture and question, ready for the model."""
        form: Mapping[str, Any] = request
        return self.model.prepare(form["image"].file.read(), form["question"])

    def predict(self, x: Any) -> Answer:
        """One inference."""
        return self.model.answer([x])[0]

    def encode_response(self, output: Answer) -> dict[str, object]:
        """JSON."""
        return output.json()


if __name__ == "__main__":
    server = ls.LitServer(
        Answerer(),
        accelerator="cpu",
        workers_per_device=given.workers,
        fast_queue=True,
        timeout=given.deadline_s or PATIENCE_S,
        disable_openapi_url=True,
    )
    server.run(
        host=HOST,
        port=given.port,
        num_api_servers=1,
        generate_client_file=False,
        log_level="error",
        access_log=False,
        loop="uvloop",
        http="httptools",
        limit_concurrency=given.max_in_flight and given.max_in_flight + 1,
    )
