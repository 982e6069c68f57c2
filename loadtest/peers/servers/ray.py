"""Ray Serve: a class with `@serve.deployment`, as in its quick start.

Settings, and where they are documented (docs.ray.io/en/master/serve):

- `num_replicas=2`, `num_cpus=1`: "Configure Ray Serve deployments"; a core each.
- RAY_SERVE_ENABLE_HA_PROXY=1, RAY_SERVE_THROUGHPUT_OPTIMIZED=1: "Enable High Throughput on Ray Serve" and "Performance
  Tuning". HAProxy, which comes with the package, takes the place of the proxy in Python.
- An `async` method: "Performance Tuning", using async methods; it hands the model to a thread of its own, so that the
  replica reads, and refuses, other requests meanwhile.
- `max_queued_requests` (503 beyond) and `request_timeout_s`: "Configure Ray Serve deployments" and "HTTP"; in
  `overload` what fits into the deadline, and the deadline.
- No dashboard, no usage reports (RAY_USAGE_STATS_ENABLED=0), logs of requests off ("Logging": `enable_access_log`).

Measured to choose, CPU a question: HAProxy and THROUGHPUT_OPTIMIZED 5.8 ms, HAProxy alone 6.0; without HAProxy 10.5
and 11.4 ms, and two thirds of the throughput. With the model in a thread or in the method itself 5.2 ms; but then
overload ends in time-outs and not in 503s, with a goodput of 98 of 236 where the thread has 179 of 201. No
`@serve.batch` (`servers/__init__.py`).

The questions' port is on the loopback; Ray's own daemons listen on all interfaces, which it has no setting for.
"""

from __future__ import annotations

import asyncio
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from loadtest.peers.given import HOST, PATIENCE_S, Given

# A folder of this run's own, and short: the path of a socket below it has 107 characters at most.
FOLDER = Path.cwd()
# Ray reads these when it is imported.
os.environ.update(
    RAY_SERVE_ENABLE_HA_PROXY="1",
    RAY_SERVE_THROUGHPUT_OPTIMIZED="1",
    RAY_SERVE_HAPROXY_CONFIG_FILE_LOC=str(FOLDER / "haproxy.cfg"),
    RAY_SERVE_HAPROXY_SOCKET_PATH=str(FOLDER / "s"),
    RAY_SERVE_HAPROXY_SERVER_STATE_BASE=str(FOLDER),
    RAY_SERVE_HAPROXY_SERVER_STATE_FILE=str(FOLDER / "server-state"),
)

import ray  # noqa: E402
from ray import serve  # noqa: E402
from ray.serve.config import HTTPOptions  # noqa: E402
from ray.serve.schema import LoggingConfig  # noqa: E402
from starlette.requests import Request  # noqa: E402

given = Given.read()
STORE_BYTES = 100 * 1024 * 1024
# So many are at a replica at once; it has the next body when it is done with one. Behind HAProxy the limit of what is
# queued is a replica's own, too.
ONGOING = 8


class Answerer:
    """One question at a time in each replica."""

    def __init__(self) -> None:
        """The model, once a replica."""
        self.model = given.load()
        self.thread = ThreadPoolExecutor(1)

    async def __call__(self, request: Request) -> dict[str, Any]:
        """A picture and a question to an answer."""
        picture, question = await request.body(), request.query_params["question"]
        answer = await asyncio.get_running_loop().run_in_executor(self.thread, self.model.ask, picture, question)
        return answer.json()


def main() -> None:
    """Start Ray and the application, and wait."""
    ray.init(
        num_cpus=given.workers,
        include_dashboard=False,
        log_to_driver=False,
        object_store_memory=STORE_BYTES,
        _node_ip_address=HOST,
        _temp_dir=str(FOLDER / "ray"),
    )
    patience = given.deadline_s or PATIENCE_S
    ongoing, queued = ONGOING, -1
    if given.max_in_flight is not None:
        ongoing = min(ONGOING, max(1, given.max_in_flight // given.workers))
        queued = max(1, given.max_in_flight // given.workers - ongoing)
    serve.start(http_options=HTTPOptions(host=HOST, port=given.port, request_timeout_s=patience))
    deployment = serve.deployment(
        num_replicas=given.workers,
        max_ongoing_requests=ongoing,
        max_queued_requests=queued,
        ray_actor_options={"num_cpus": 1},
        logging_config=LoggingConfig(enable_access_log=False),
    )(Answerer)
    serve.run(deployment.bind(), route_prefix="/answer")
    signal.pause()


if __name__ == "__main__":
    main()
