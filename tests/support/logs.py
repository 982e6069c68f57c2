"""What the service logs, as `vqa serve --log-format json` writes it."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager

from service.telemetry.logs import configure_logging


@contextmanager
def json_log() -> Iterator[io.StringIO]:
    """All records of the block, a JSON line each."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    configure_logging("debug", "json")
    stream = io.StringIO()
    root.handlers[0].setStream(stream)
    # The test's own HTTP client logs in this process too.
    root.handlers[0].addFilter(lambda record: not record.name.startswith(("httpx", "httpcore")))
    try:
        yield stream
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
