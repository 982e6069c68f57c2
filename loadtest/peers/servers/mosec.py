"""mosec: a `Worker` behind its Rust server, with msgpack bodies, as in its examples of pictures."""

from __future__ import annotations

import sys
from typing import Any

from mosec import Server, Worker
from mosec.mixin import MsgpackMixin

from loadtest.peers.given import HOST, Given

given = Given.read()


class Answerer(MsgpackMixin, Worker):
    """One question a time, picture as bytes in msgpack."""

    def __init__(self) -> None:
        """The model, once a process."""
        super().__init__()
        self.model = given.load()

    def forward(self, data: dict[str, Any]) -> dict[str, object]:
        """A picture and a question to an answer."""
        return self.model.ask(data["image"], data["question"]).json()


if __name__ == "__main__":
    sys.argv += ["--address", HOST, "--port", str(given.port), "--log-level", "warning"]
    sys.argv += ["--max-request-size", str(32 * 1024 * 1024)]
    sys.argv += ["--timeout", str(round(1000 * (given.deadline_s or 60)))]
    if given.most_inside:
        sys.argv += ["--capacity", str(given.most_inside)]
    server = Server()
    server.append_worker(Answerer, num=given.workers)
    server.run()
