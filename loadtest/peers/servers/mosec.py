"""mosec: a `Worker` behind its Rust server, with msgpack bodies, as in its examples of pictures.

Settings, and where they are documented (mosecorg.github.io: "Interface", "Arguments", "Multi-Process"):

- `append_worker(num=2)`: processes of a stage; a core each. One stage: a second one for decoding would only move
  work between processes that share the cores.
- `MsgpackMixin`: binary bodies, so no base64.
- `--timeout` in milliseconds (408 beyond; 3 s by default) and `--capacity` of the queue (429 beyond; 1,024 by
  default): in `overload` the deadline and what fits into it; else out of the way.
- `--max-request-size`: 10 MiB by default; `--log-level warning`.

`max_batch_size` stays 1 (`servers/__init__.py`); a batch would also wait 10 ms for company.
"""

from __future__ import annotations

import sys
from typing import Any

from mosec import Server, Worker
from mosec.mixin import MsgpackMixin

from loadtest.peers.given import HOST, PATIENCE_S, Given

given = Given.read()
LARGEST_BYTES = 32 * 1024 * 1024


class Answerer(MsgpackMixin, Worker):
    """One question at a time in each process."""

    def __init__(self) -> None:
        """The model, once a process."""
        super().__init__()
        self.model = given.load()

    def forward(self, data: dict[str, Any]) -> dict[str, object]:
        """A picture and a question to an answer."""
        return self.model.ask(data["image"], data["question"]).json()


if __name__ == "__main__":
    sys.argv += ["--address", HOST, "--port", str(given.port), "--log-level", "warning"]
    sys.argv += ["--timeout", str(round(1000 * (given.deadline_s or PATIENCE_S)))]
    sys.argv += ["--max-request-size", str(LARGEST_BYTES)]
    if given.max_in_flight:
        sys.argv += ["--capacity", str(given.max_in_flight)]
    server = Server()
    server.append_worker(Answerer, num=given.workers)
    server.run()
