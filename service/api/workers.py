"""Several processes behind one listening socket: uvicorn's supervisor, with workers that build everything themselves.

A worker is a new interpreter, never a fork, and makes its own gateway and session: neither survives a fork. Cache,
readiness and the limits' parts are a worker's own; what is counted is summed over all (`telemetry.multiprocess`).
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import uvicorn
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors.multiprocess import Multiprocess, Process

from service.api.server import listen, make_server
from service.backends import ManifestError
from service.backends.cpus import available_cpus
from service.errors import SettingsError
from service.gateway import Gateway
from service.gateway.build import build_gateway
from service.settings import Settings
from service.telemetry import multiprocess
from service.telemetry.logs import configure_logging
from service.telemetry.metrics import Metrics

log = logging.getLogger(__name__)

# A worker that says nothing for so long hangs. Importing and loading a large model from a slow disk must fit in: before
# and meanwhile the thread that replies may not get a turn.
SILENCE_S = 120.0
# Seconds that a worker gets, beyond those of its requests, to put things away.
STOPPING_S = 10.0
# So many workers in a row that died before they were ever ready, and the next one will, too.
MOST_STILLBORN = 3


def serve_with_workers(settings: Settings) -> bool:
    """Serve with `settings.workers` processes until SIGTERM or SIGINT; all drain as a single one does.

    Returns:
        Whether the workers could serve; where they could not, all have been stopped.

    Raises:
        SettingsError: the settings cannot be divided, or the metrics' folder cannot be used.
        OSError: the address cannot be listened on.
    """
    part = settings.per_worker(available_cpus())
    # The folder is there before the port, since what is wrong with it is no fault of the address.
    with _metrics_folder(settings.metrics_dir) as folder, listen(settings) as listener:
        # The workers' prometheus_client looks here when it is imported.
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(folder)
        part = part.model_copy(update={"metrics_dir": folder})
        supervisor = _Supervisor(part, settings.workers, listener)
        supervisor.run()
    return not supervisor.failed


@contextmanager
def _metrics_folder(wanted: Path | None) -> Iterator[Path]:
    """The workers' common folder, without what an earlier run has left in it."""
    with ExitStack() as until_the_end:
        try:
            if wanted is None:
                made = tempfile.TemporaryDirectory(prefix="vqa-metrics-", ignore_cleanup_errors=True)
                folder = Path(until_the_end.enter_context(made))
            else:
                folder = wanted.absolute()
                folder.mkdir(parents=True, exist_ok=True)
                multiprocess.empty(folder)
                with tempfile.TemporaryFile(dir=folder):
                    pass
        except OSError as error:
            where = wanted or "no temporary folder"
            raise SettingsError(f"setting metrics_dir (VQA_METRICS_DIR): {where}: {error.strerror}") from error
        yield folder


class _Worker(Process):
    """One process. Made in the parent and pickled into the child, which runs `target`."""

    def __init__(
        self, config: uvicorn.Config, listener: socket.socket, settings: Settings, *, replacement: bool
    ) -> None:
        self._settings = settings
        self._replacement = replacement
        self._gateway: Gateway | None = None
        self._asked: float | None = None
        self.was_ready = False
        """Whether it has ever been ready, as far as the parent knows."""
        super().__init__(config, [listener])

    def target(self, sockets: list[socket.socket] | None = None) -> None:
        """The child's life."""
        settings = self._settings
        configure_logging(settings.log_level, settings.log_format)
        threading.Thread(target=_end_with_parent, daemon=True).start()
        metrics = Metrics(settings.metrics_dir)
        try:
            self._gateway = build_gateway(settings, metrics)
        except (ManifestError, SettingsError) as error:
            log.error("%s", error)
            sys.exit(STARTUP_FAILURE)
        threading.Thread(target=self.always_pong, daemon=True).start()
        # The first ones listen at once, as a single process does. Whoever takes a place lets the others answer until it
        # is ready: it would refuse, and who is quickest to reply gets the most.
        server = make_server(self._gateway, settings, metrics, ready_first=self._replacement)
        server.run(sockets)
        if server.failed:
            sys.exit(STARTUP_FAILURE)

    def pong(self) -> None:
        """In the child: answer one question of the parent."""
        self.child_conn.recv()
        self.child_conn.send(self._gateway is not None and self._gateway.ready())

    def is_alive(self, timeout: float = SILENCE_S) -> bool:
        """In the parent: whether it runs and is not silent for too long. Unlike uvicorn's, this never waits.

        A wait for one worker would hold up the signals and the other workers.
        """
        if not self.process.is_alive():
            return False
        now = time.monotonic()
        try:
            if self._asked is not None and self.parent_conn.poll():
                self.was_ready |= self.parent_conn.recv()
                self._asked = None
            if self._asked is None:
                self.parent_conn.send(b"ping")
                self._asked = now
        except (OSError, EOFError):
            return False
        return now - self._asked < timeout


class _Supervisor(Multiprocess):
    """Starts the workers, replaces those that die, and ends all together."""

    def __init__(self, settings: Settings, workers: int, listener: socket.socket) -> None:
        # The application is made in each worker; the rest of this configuration concerns the supervisor alone.
        config = uvicorn.Config("", workers=workers, log_config=None, access_log=False)
        super().__init__(config, [listener])
        self._settings = settings
        self._listener = listener
        self._stillborn = 0
        self.failed = False

    def _start(self, *, replacement: bool = False) -> _Worker:
        worker = _Worker(self.config, self._listener, self._settings, replacement=replacement)
        worker.start()
        return worker

    def init_processes(self) -> None:
        """Start all workers."""
        self.processes = [self._start() for _ in range(self.processes_num)]

    def keep_subprocess_alive(self) -> None:
        """Replace the workers that have died; stop where a new one would die as well."""
        for index, worker in enumerate(self.processes):
            if self.should_exit.is_set():
                return
            assert isinstance(worker, _Worker)
            if worker.is_alive():
                continue
            hung = worker.process.is_alive()
            worker.kill()
            worker.process.join()
            code = worker.exitcode or 0
            how = f"said nothing for {SILENCE_S:g} s" if hung else f"ended with {_named(code)}"
            self._stillborn = 0 if worker.was_ready else self._stillborn + 1
            # A worker that a signal ended may be replaced; one that gave up by itself has said why.
            if code > 0 or self._stillborn > MOST_STILLBORN:
                log.error("worker %s %s; the service stops", worker.pid, how)
                self.failed = True
                self.should_exit.set()
                return
            self.processes[index] = new = self._start(replacement=True)
            log.warning("worker %s %s; worker %s takes its place", worker.pid, how, new.pid)

    def terminate_all(self) -> None:
        """Have all workers drain; this process lets go of the port, too, so that nobody waits there in vain."""
        self._listener.close()
        super().terminate_all()

    def join_all(self) -> None:
        """Wait until the workers have drained, but not for ever for one that hangs."""
        deadline = time.monotonic() + self._settings.drain_timeout_s + STOPPING_S
        for worker in self.processes:
            worker.process.join(max(0.0, deadline - time.monotonic()))
            if worker.process.is_alive():
                log.error("worker %s did not stop in time", worker.pid)
                worker.process.kill()
                worker.process.join()

    def handle_hup(self) -> None:
        """The terminal has gone; a single process ends of it as well."""
        self.handle_term()

    def handle_ttin(self) -> None:
        """Not one worker more: each has its part of the limits."""

    def handle_ttou(self) -> None:
        """Not one worker less."""


def _end_with_parent() -> None:
    """Drain when the parent has died: nobody else would ever stop this worker, and it would hold the port."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        log.error("the parent process has died")
        os.kill(os.getpid(), signal.SIGTERM)


def _named(code: int) -> str:
    """An exit code in words."""
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"exit code {code}"
