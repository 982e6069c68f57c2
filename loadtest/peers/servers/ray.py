"""Ray Serve: a class with `@serve.deployment`, as in its quick start."""

from __future__ import annotations

import os
import signal
import tempfile
from typing import Any

from loadtest.peers.given import HOST, Given

given = Given.read()
os.environ.update(
    {
        "RAY_SERVE_THROUGHPUT_OPTIMIZED": os.environ.get("TO", "0"),
        "RAY_SERVE_ENABLE_HA_PROXY": os.environ.get("HA", "0"),
    }
)

import ray  # noqa: E402
from ray import serve  # noqa: E402
from ray.serve.config import HTTPOptions  # noqa: E402
from starlette.requests import Request  # noqa: E402


@serve.deployment(num_replicas=given.workers, max_ongoing_requests=16, ray_actor_options={"num_cpus": 1})
class Answerer:
    """One question a time."""

    def __init__(self) -> None:
        """The model, once a replica."""
        self.model = given.load()

    async def __call__(self, request: Request) -> dict[str, Any]:
        """A picture and a question to an answer."""
        return self.model.ask(await request.body(), request.query_params["question"]).json()


if __name__ == "__main__":
    ray.init(
        num_cpus=given.workers,
        include_dashboard=False,
        log_to_driver=False,
        _node_ip_address=HOST,
        object_store_memory=100 * 2**20,
        _temp_dir=tempfile.mkdtemp(prefix="ray-"),
    )
    serve.start(http_options=HTTPOptions(host=HOST, port=given.port))
    serve.run(Answerer.bind(), route_prefix="/answer")
    signal.pause()
