"""A real `vqa serve` process of our own on the loopback: started, watched through /proc and /metrics, stopped."""

from __future__ import annotations

import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click
import httpx

ROOT = Path(__file__).resolve().parent.parent
EMBEDDED = "vilt-shapes"
START_S = 120
STOP_S = 30
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Server:
    """A server that is ready; figures are of its process and all its children."""

    url: str
    pid: int

    @property
    def host(self) -> str:
        """`address:port`."""
        return self.url.removeprefix("http://")

    def pids(self) -> list[int]:
        """The process and its descendants."""
        found = [self.pid]
        for pid in found:  # grows while it is read
            for children in Path(f"/proc/{pid}/task").glob("*/children"):
                found += [int(child) for child in children.read_text().split()]
        return found

    def rss_mib(self) -> float:
        """Resident memory now, in MiB."""
        return sum(_kib(pid, "VmRSS") for pid in self.pids()) / 1024

    def peak_rss_mib(self) -> float:
        """The most memory that was ever resident, in MiB."""
        return sum(_kib(pid, "VmHWM") for pid in self.pids()) / 1024

    def cpu_s(self) -> float:
        """CPU time so far, user and system, in seconds."""
        return sum(_cpu_s(pid) for pid in self.pids())

    def metric(self, name: str, **labels: str) -> float:
        """The sum of all samples of a name that have the labels; 0 where there is none."""
        wanted = {f'{key}="{value}"' for key, value in labels.items()}
        total = 0.0
        for line in httpx.get(f"{self.url}/metrics", timeout=30).text.splitlines():
            series, _, value = line.rpartition(" ")
            found, _, rest = series.partition("{")
            if found == name and wanted <= set(rest.rstrip("}").split(",")):
                total += float(value)
        return total

    def wait_idle(self, seconds: float = 60) -> None:
        """Return when no question is under way and the process burns no CPU.

        Raises:
            click.ClickException: it does not come to rest.
        """
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            before = self.cpu_s()
            time.sleep(0.1)
            if self.cpu_s() - before <= 0.02 and not self.metric("vqa_questions_in_flight"):
                return
        raise click.ClickException(f"the server did not come to rest in {seconds:g} s")


@contextmanager
def running(model: str = EMBEDDED, settings: Mapping[str, object] | None = None) -> Iterator[Server]:
    """Serve a model with the given settings until the block ends.

    Args:
        model: the name of an embedded model, or a model's folder.
        settings: `VQA_*` variables. The server sees no others, so that a caller's shell changes no figures.

    Raises:
        click.ClickException: it does not become ready.
    """
    _allow_many_sockets()
    folder = Path(model)
    found = {"VQA_MODELS_DIR": str(folder.resolve().parent)} if folder.is_dir() else {}
    port = free_port()
    given = {name: str(value) for name, value in (settings or {}).items()}
    environment = {name: value for name, value in os.environ.items() if not name.startswith("VQA_")}
    environment |= {"PYTHONPATH": str(ROOT), "VQA_LOG_LEVEL": "warning", "VQA_CLASSIFIER": folder.name} | found | given
    command = [str(Path(sys.executable).with_name("vqa")), "serve", "--host", "127.0.0.1", "--port", str(port)]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, env=environment, stderr=log)
        try:
            url = f"http://127.0.0.1:{port}"
            deadline = time.monotonic() + START_S
            while not _ready(url):
                if process.poll() is not None or time.monotonic() > deadline:
                    log.seek(0)
                    raise click.ClickException(
                        f"the server did not become ready:\n{log.read()[-2000:].decode(errors='replace')}"
                    )
                time.sleep(0.05)
            yield Server(url, process.pid)
        finally:
            _stop(process)


def model_folder(model: str) -> Path:
    """The folder of a model that is given by its folder, or by the name of an embedded one."""
    return Path(model) if Path(model).is_dir() else ROOT / "models" / model


def parse_settings(pairs: tuple[str, ...]) -> dict[str, object]:
    """`VQA_X=1` each, as a mapping.

    Raises:
        click.BadParameter: one is something else.
    """
    settings: dict[str, object] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.startswith("VQA_"):
            raise click.BadParameter(f"{pair!r} is not VQA_NAME=VALUE")
        settings[name] = value
    return settings


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz", timeout=10).status_code == httpx.codes.OK
    except httpx.TransportError:
        return False


def free_port() -> int:
    """A port of the loopback that nobody listens on now."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _allow_many_sockets() -> None:
    """A thousand connections at once are more than the usual soft limit of open files."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _kib(pid: int, name: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    return 0


def _cpu_s(pid: int) -> float:
    # Fields 14 and 15; the name, field 2, may hold spaces and ends with the last bracket.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS
