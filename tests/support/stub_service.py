"""A server that says what a test wants, in the words of the service's contract."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Reply = tuple[int, dict[str, str], Any]
"""Status, headers and JSON body (bytes are sent as they are)."""

MODEL = {"id": "stub", "backend": "classifier", "revision": "1", "calibration": None, "demo": False, "state": "ready"}


def answered(answer: str) -> dict[str, Any]:
    """An item of `POST /answers` that is a result."""
    return {
        "result": {
            "id": "x",
            "answer": answer,
            "confidence": None,
            "calibrated": False,
            "answerable": None,
            "answerability": None,
            "abstained": False,
            "candidates": [{"answer": answer, "probability": 0.75}],
            "off_set": None,
            "raw_answer": answer,
            "answer_type": "other",
            "hints": [],
            "backend": "classifier",
            "route": {"policy": "auto", "reason": ""},
            "model": {"id": "stub", "revision": "1", "calibration": None},
            "image": {"sha256": "0", "width": 1, "height": 1},
            "cached": False,
            "warnings": [],
            "timings_ms": {"decode": 1.0, "queue": 0.0, "inference": 1.0, "total": 2.0},
        }
    }


def problem(status: int, code: str, **more: Any) -> dict[str, Any]:
    """A problem document."""
    return {
        "type": "",
        "title": "",
        "status": status,
        "detail": f"it is {code}",
        "code": code,
        "request_id": "x",
    } | more


class Stub:
    """The server's address, and the questions of each request that came."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.requests: list[list[str]] = []
        self.headers: list[dict[str, str]] = []


@contextmanager
def stub_service(reply: Callable[[int, list[str]], Reply | None], port: int = 0) -> Iterator[Stub]:
    """Serve; `reply` is told how many requests came before, and the questions of this one. None hangs up."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._send((200, {}, {"models": [MODEL]}))

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            found = re.search(rb'name="questions"\r\n\r\n(.*?)\r\n--', body, re.DOTALL)
            assert found, body[:500]
            questions = json.loads(found[1])
            number = len(stub.requests)
            stub.requests.append(questions)
            stub.headers.append(dict(self.headers))
            what = reply(number, questions)
            if what is None:
                self.close_connection = True
            else:
                self._send(what)

        def _send(self, what: Reply) -> None:
            status, headers, content = what
            data = content if isinstance(content, bytes) else json.dumps(content).encode()
            try:
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
            except OSError:
                self.close_connection = True

        def log_message(self, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        server.daemon_threads = True
        server.block_on_close = False
        stub = Stub(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield stub
        finally:
            server.shutdown()
            thread.join()
