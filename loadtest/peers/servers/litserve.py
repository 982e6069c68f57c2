"""LitServe: `LitAPI` with setup, decode_request, predict and encode_response, as in its quick start."""

# No `from __future__ import annotations`: LitServe looks at the type of `decode_request`'s argument, and a string is none.

from collections.abc import Mapping
from typing import Any

import litserve as ls
from fastapi import Request

from loadtest.peers.answer import Answer, Model
from loadtest.peers.given import HOST, Given

given = Given.read()


class Answerer(ls.LitAPI):
    """One question a time; decoding runs in the worker, too, so both cores decode and infer."""

    def setup(self, device: str) -> None:  # noqa: ARG002 - LitServe's signature
        """The model, once a worker."""
        self.model: Model = given.load()

    def decode_request(self, request: Request) -> Any:
        """The form's picture and question."""
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
        timeout=given.deadline_s or 30,
        disable_openapi_url=True,
    )
    server.run(
        host=HOST,
        port=given.port,
        num_api_servers=1,
        generate_client_file=False,
        log_level="warning",
        access_log=False,
        loop="uvloop",
        http="httptools",
        limit_concurrency=given.most_inside,
    )
