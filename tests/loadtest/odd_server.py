"""A contestant for tests that is not what it should be: MODE is `lying`, `refusing` or `silent`."""

from __future__ import annotations

import itertools
import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

from loadtest.peers.given import HOST, Given

given = Given.read()
mode = os.environ["MODE"]
model = given.load()
numbers = itertools.count()


class Odd(BaseHTTPRequestHandler):
    """Takes a picture with the question in the query."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        picture = self.rfile.read(int(self.headers["Content-Length"]))
        refused = mode == "refusing" and next(numbers) >= 20 and next(numbers) % 5 == 0
        if mode == "lying":
            body = {"answer": "unanswerable", "score": 0.5}
        else:
            body = model.ask(picture, unquote(self.path.partition("question=")[2])).json()
        data = json.dumps(body).encode()
        self.send_response(503 if refused else 200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Nothing."""


if mode == "silent":
    sys.exit("this one never starts")
ThreadingHTTPServer((HOST, given.port), Odd).serve_forever()
