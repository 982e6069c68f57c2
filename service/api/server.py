"""The HTTP server: uvicorn, listening before the model is loaded, draining on SIGTERM."""

from __future__ import annotations

import errno
import logging
import math
import socket
import sys
from types import FrameType

import uvicorn

from service.api.app import create_app
from service.api.protocol import BoundedProtocol
from service.gateway import Gateway
from service.settings import Settings
from service.telemetry.metrics import Metrics

log = logging.getLogger(__name__)

BACKLOG = 2048
_SWITCH_S = 0.0005


class Server(uvicorn.Server):
    """Tells the gateway at once that it drains: readiness goes off, and requests on open connections get 503."""

    def __init__(self, config: uvicorn.Config, gateway: Gateway) -> None:
        super().__init__(config)
        self._gateway = gateway
        self.failed = False

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._gateway.drain()
        super().handle_exit(sig, frame)

    def fail(self) -> None:
        """Stop, since there is nothing to serve."""
        self.failed = self.should_exit = True


def serve(gateway: Gateway, settings: Settings, metrics: Metrics) -> bool:
    """Serve until SIGTERM or SIGINT; accepted questions then get `drain_timeout_s` to finish.

    Returns:
        Whether a backend came up; where none did, the server has stopped by itself.

    Raises:
        OSError: the address cannot be listened on.
    """
    listener = listen(settings)
    server = make_server(gateway, settings, metrics)
    server.run(sockets=[listener])
    return not server.failed


def make_server(gateway: Gateway, settings: Settings, metrics: Metrics, *, ready_first: bool = False) -> Server:
    """The server of one process, not started yet; `ready_first` as `create_app` has it."""
    app = create_app(gateway, settings, metrics, on_start_failed=lambda: server.fail(), ready_first=ready_first)
    config = uvicorn.Config(
        app,
        backlog=BACKLOG,
        log_config=None,
        access_log=False,
        loop="uvloop",
        http=BoundedProtocol,
        server_header=False,
        # Idle connections between requests; the first head is timed by the protocol, the body by the routes.
        timeout_keep_alive=30,
        timeout_graceful_shutdown=math.ceil(settings.drain_timeout_s),
    )
    # A thread that decodes keeps the interpreter from the event loop for so long at most; Python's 5 ms are as much as
    # a whole answer takes.
    sys.setswitchinterval(_SWITCH_S)
    server = Server(config, gateway)
    return server


def listen(settings: Settings) -> socket.socket:
    """A listening socket, made here so that a taken port is an error before anything is loaded.

    Raises:
        OSError: the address cannot be listened on.
    """
    host, port = settings.host, settings.port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    except (TypeError, ValueError) as error:
        # What is no name of a host at all fails before it is looked up.
        listener.close()
        raise OSError(errno.EINVAL, "this is no address") from error
    shown = f"[{host}]" if ":" in host else host
    log.info("listening on http://%s:%d", shown, listener.getsockname()[1])
    return listener
