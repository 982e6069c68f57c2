"""A stand-in of the hub's HTTP interface on the loopback: the files of folders, with ranges, and its refusals.

What it replies is what the hub replies: https://huggingface.co/docs/hub/api and the headers that huggingface_hub reads.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

COMMIT = "0123456789abcdef0123456789abcdef01234567"
_ERRORS = {"RepoNotFound": 404, "RevisionNotFound": 404, "EntryNotFound": 404, "GatedRepo": 403}


@dataclass
class Hub:
    """What it has and what was asked of it.

    Attributes:
        repositories: their folders by name.
        gated: those that it gives to nobody.
        cut: bytes after which a file's body breaks off, once, by the file's name.
        stalled: a file whose body never ends; `stalling` is set once it has begun.
        got: the files that were asked for, with the first byte that was wanted.
    """

    url: str
    repositories: dict[str, Path] = field(default_factory=dict)
    gated: set[str] = field(default_factory=set)
    cut: dict[str, int] = field(default_factory=dict)
    stalled: str | None = None
    stalling: threading.Event = field(default_factory=threading.Event)
    over: threading.Event = field(default_factory=threading.Event)
    got: list[tuple[str, int]] = field(default_factory=list)
    requests: int = 0

    @property
    def files(self) -> set[str]:
        """The names of the files that were asked for."""
        return {name for name, _ in self.got}


@contextmanager
def hub_server() -> Iterator[Hub]:
    """A hub for the time of a block; its address is for HF_ENDPOINT."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Nothing."""

        def do_HEAD(self) -> None:
            self._reply(body=False)

        def do_GET(self) -> None:
            self._reply(body=True)

        def _reply(self, body: bool) -> None:
            hub.requests += 1
            path = self.path.partition("?")[0]
            if found := re.fullmatch(r"/api/models/([^/]+/[^/]+)/revision/(.+)", path):
                self._describe(*found.groups())
            elif found := re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
                self._file(*found.groups(), body)
            else:
                self._refuse("EntryNotFound")

        def _describe(self, name: str, revision: str) -> None:
            if name in hub.gated:
                return self._refuse("GatedRepo")
            if name not in hub.repositories:
                return self._refuse("RepoNotFound")
            if revision not in ("main", COMMIT):
                return self._refuse("RevisionNotFound")
            files = sorted(path for path in hub.repositories[name].iterdir())
            siblings = [{"rfilename": path.name, "size": path.stat().st_size} for path in files]
            self._send(200, json.dumps({"id": name, "sha": COMMIT, "siblings": siblings, "tags": []}).encode())
            return None

        def _file(self, name: str, revision: str, file: str, body: bool) -> None:
            path = hub.repositories[name] / file
            if revision != COMMIT or not path.is_file():
                return self._refuse("EntryNotFound")
            data = path.read_bytes()
            first = int(found[1]) if (found := re.match(r"bytes=(\d+)-", self.headers.get("Range", ""))) else 0
            headers = {"ETag": f'"{hashlib.sha256(data).hexdigest()}"', "X-Repo-Commit": COMMIT}
            if first:
                headers["Content-Range"] = f"bytes {first}-{len(data) - 1}/{len(data)}"
            if not body:
                return self._send(200, b"", headers, len(data))
            hub.got.append((file, first))
            part = data[first:]
            if file in hub.cut:
                self.close_connection = True
                return self._send(206 if first else 200, part[: hub.cut.pop(file)], headers, len(part))
            if file == hub.stalled:
                self._send(200, part[:1000], headers, len(part))
                hub.stalling.set()
                hub.over.wait(60)
                return None
            return self._send(206 if first else 200, part, headers, len(part))

        def _refuse(self, code: str) -> None:
            self._send(_ERRORS[code], b"{}", {"X-Error-Code": code, "X-Error-Message": code})

        def _send(
            self, status: int, data: bytes, headers: dict[str, str] | None = None, length: int | None = None
        ) -> None:
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data) if length is None else length))
            self.end_headers()
            self.wfile.write(data)
            self.wfile.flush()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    hub = Hub(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        hub.over.set()
        server.shutdown()
        server.server_close()
        thread.join(10)
