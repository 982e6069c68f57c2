"""`vqa serve`: the HTTP service."""

from __future__ import annotations

import logging
import sys
from typing import Any

import click

from service.api.server import serve as serve_http
from service.api.workers import serve_with_workers
from service.cli.options import settings_options
from service.gateway.build import build_gateway
from service.settings import load_settings
from service.telemetry.logs import configure_logging
from service.telemetry.metrics import Metrics

log = logging.getLogger("service")


@click.command(epilog="Example: vqa serve --port 8000 --classifier vilt-shapes")
@settings_options()
def serve(**flags: Any) -> None:
    """Serve `POST /answer` over HTTP until SIGTERM.

    Every option is also a variable in the environment; the option wins. Logs go to standard error.
    """
    settings = load_settings(**flags)
    configure_logging(settings.log_level, settings.log_format)
    metrics = Metrics()
    # With several workers this one is never started: it is built to refuse here what all of them would refuse.
    gateway = build_gateway(settings, metrics)
    log.info("serving %s from %s", settings.classifier, settings.models_dir)
    try:
        started = serve_http(gateway, settings, metrics) if settings.workers == 1 else serve_with_workers(settings)
    except OSError as error:
        raise click.ClickException(f"cannot listen on {settings.host}:{settings.port}: {error.strerror}") from error
    sys.exit(0 if started else 1)
