"""Logs on standard error, one line a record, for people or as JSON. They never hold a question, a picture or a key."""

from __future__ import annotations

import json
import logging
import sys
from contextvars import ContextVar
from datetime import UTC, datetime

# Set by the HTTP door for the time of a request, so that every record of it carries its id.
request_id: ContextVar[str] = ContextVar("request_id", default="-")

# A record is cut here whatever it holds: one odd exception text must not fill a disk.
MAX_RECORD_CHARS = 4096
_EXTRA = ("status", "seconds", "code", "traceparent")


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage()[:MAX_RECORD_CHARS],
            "request_id": request_id.get(),
        }
        line.update({name: getattr(record, name) for name in _EXTRA if getattr(record, name, None) is not None})
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)[-MAX_RECORD_CHARS:]
        return json.dumps(line, ensure_ascii=True)


class _TextFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).strftime("%H:%M:%S.%f")[:-3]
        extra = "".join(f" {n}={getattr(record, n)}" for n in _EXTRA if getattr(record, n, None) is not None)
        message = record.getMessage()[:MAX_RECORD_CHARS]
        text = f"{time} {record.levelname.lower():7} [{request_id.get()}] {message}{extra}"
        if record.exc_info:
            text += "\n" + self.formatException(record.exc_info)[-MAX_RECORD_CHARS:]
        return text.encode("utf-8", "backslashreplace").decode("utf-8")


def configure_logging(level: str, fmt: str) -> None:
    """Send all logs to standard error in the wanted form; uvicorn's own loggers join in."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonFormatter() if fmt == "json" else _TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
    # Every request is logged once, by our own middleware, with its id and its route.
    logging.getLogger("uvicorn.access").disabled = True
