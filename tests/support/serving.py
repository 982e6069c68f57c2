"""A real HTTP server around a gateway, in a thread of the test's process."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import httpx
import uvicorn

from service.api import create_app
from service.api.protocol import BoundedProtocol
from service.backends import Backend
from service.gateway import Gateway
from service.gateway.build import build_gateway
from service.gateway.cache import MemoryCache
from service.scheduling import WorkerThreads
from service.settings import Settings, load_settings
from service.telemetry.metrics import Metrics

START_S = 60


@dataclass(frozen=True)
class Running:
    """A server that answers: its address, a client for it, and its parts."""

    url: str
    client: httpx.Client
    gateway: Gateway
    metrics: Metrics
    settings: Settings

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1])

    def metric(self, name: str, **labels: str) -> float:
        """A sample's value from `/metrics`, 0 where there is none."""
        wanted = {f'{key}="{value}"' for key, value in labels.items()}
        total = 0.0
        for line in self.client.get("/metrics").text.splitlines():
            series, _, value = line.rpartition(" ")
            found, _, rest = series.partition("{")
            if found == name and wanted <= set(rest.rstrip("}").split(",")):
                total += float(value)
        return total


@contextmanager
def serving(
    backends: Mapping[str, Backend] | None = None, *, wait_ready: bool = True, **flags: object
) -> Iterator[Running]:
    """Serve the embedded model, or the given backends, with the given settings."""
    settings = load_settings(**flags)
    metrics = Metrics()
    if backends is None:
        gateway = build_gateway(settings, metrics)
    else:
        gateway = Gateway(settings, backends, WorkerThreads(2), MemoryCache(settings.cache_bytes), metrics)
    failed = threading.Event()
    app = create_app(gateway, settings, metrics, on_start_failed=failed.set)
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, loop="uvloop", http=BoundedProtocol))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        with httpx.Client(base_url=url, timeout=30) as client:
            _await(lambda: server.started, "the server did not listen")
            if wait_ready:
                _await(lambda: failed.is_set() or client.get("/readyz").status_code == 200, "it did not become ready")
                assert not failed.is_set(), "no backend started; see the log"
            yield Running(url, client, gateway, metrics, settings)
    finally:
        server.should_exit = True
        thread.join(START_S)
        assert not thread.is_alive(), "the server did not stop"


def _await(condition, message: str) -> None:
    deadline = time.monotonic() + START_S
    while not condition():
        assert time.monotonic() < deadline, message
        time.sleep(0.02)
