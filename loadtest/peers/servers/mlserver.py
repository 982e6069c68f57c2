"""MLServer: an `MLModel` with a custom endpoint, served by `mlserver start`, as in its guide to custom runtimes.

Settings, and where they are documented (docs.seldon.ai/mlserver: "MLServer Settings", "Parallel Inference", "Custom
Inference Runtimes"):

- `parallel_workers=2`: processes that infer; a core each, beside the one that speaks HTTP.
- `@custom_handler` with the picture as the body: V2 over REST has JSON alone, so a picture would be base64.
- `debug=false` (no access log), no metrics endpoint, no gzip; uvloop, which MLServer installs where it is there (0.21:
  with 0.23 its workers end at their start), and httptools, which uvicorn takes by itself.
- There is no limit of what is under way, and no timeout; `overload` meets it as it is.

No adaptive batching (`servers/__init__.py`).
"""

# No `from __future__ import annotations`: MLServer wraps the endpoint in a module that knows none of the names here.

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any

from fastapi import Body
from mlserver import MLModel
from mlserver.handlers.custom import custom_handler

from loadtest.peers.answer import Model
from loadtest.peers.given import HOST, Given


class Answerer(MLModel):
    """One question a time; each of the workers has a model of its own."""

    async def load(self) -> bool:
        """The model, once a worker."""
        self.model: Model = Given.read().load()
        return True

    @custom_handler(rest_path="/answer")
    async def ask(self, image: Annotated[bytes, Body(media_type="image/jpeg")], question: str) -> dict[str, Any]:
        """A picture and a question to an answer."""
        return self.model.ask(image, question).json()


def main() -> None:
    """Write the two files of settings that MLServer reads, and become it."""
    given = Given.read()
    folder = Path.cwd() / "answer"
    folder.mkdir()
    settings = {
        "host": HOST,
        "http_port": given.port,
        "grpc_port": given.port + 1,
        "metrics_port": given.port + 2,
        "parallel_workers": given.workers,
        "debug": False,
        "metrics_endpoint": None,
        "gzip_enabled": False,
    }
    model = {"name": "answer", "implementation": "loadtest.peers.servers.mlserver.Answerer"}
    (folder / "settings.json").write_text(json.dumps(settings))
    (folder / "model-settings.json").write_text(json.dumps(model))
    program = str(Path(sys.executable).with_name("mlserver"))
    os.execv(program, [program, "start", str(folder)])


if __name__ == "__main__":
    main()
