"""The supervisor's decisions about workers that die; with real processes: `tests/e2e/test_workers.py`."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator

import pytest

from service.api import workers
from service.settings import load_settings


class FakeProcess:
    def __init__(self) -> None:
        self.alive = True
        self.exitcode: int | None = None

    def is_alive(self) -> bool:
        return self.alive

    def start(self) -> None:
        pass

    def kill(self) -> None:
        if self.alive:
            self.end(-signal.SIGKILL)

    def join(self, timeout: float | None = None) -> None:
        pass

    def end(self, code: int) -> None:
        self.alive, self.exitcode = False, code

    pid = 1


@pytest.fixture
def supervisor(monkeypatch: pytest.MonkeyPatch) -> Iterator[workers._Supervisor]:
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr("uvicorn.supervisors.multiprocess.get_subprocess", lambda *_: FakeProcess())
    with socket.socket() as listener:
        made = workers._Supervisor(load_settings(), 2, listener)
        made.init_processes()
        yield made


def reply(worker: workers._Worker, ready: bool) -> None:
    worker.child_conn.recv()
    worker.child_conn.send(ready)


def test_a_worker_that_was_ready_is_replaced_for_ever(supervisor: workers._Supervisor) -> None:
    for _ in range(3 * workers.MOST_STILLBORN):
        worker = supervisor.processes[0]
        supervisor.keep_subprocess_alive()
        reply(worker, ready=True)
        supervisor.keep_subprocess_alive()
        worker.process.end(-signal.SIGSEGV)
        supervisor.keep_subprocess_alive()
        assert supervisor.processes[0] is not worker
    assert not supervisor.failed
    assert not supervisor.should_exit.is_set()


def test_workers_that_die_before_they_are_ready_end_the_service(supervisor: workers._Supervisor) -> None:
    """A crash in a native library leaves no exit code of ours."""
    for _ in range(workers.MOST_STILLBORN):
        supervisor.processes[1].process.end(-signal.SIGSEGV)
        supervisor.keep_subprocess_alive()
        assert not supervisor.failed
    supervisor.processes[1].process.end(-signal.SIGSEGV)
    supervisor.keep_subprocess_alive()
    assert supervisor.failed
    assert supervisor.should_exit.is_set()


def test_a_worker_that_gives_up_ends_the_service(supervisor: workers._Supervisor) -> None:
    first = supervisor.processes[0]
    first.process.end(3)
    supervisor.keep_subprocess_alive()
    assert supervisor.failed
    assert supervisor.processes[0] is first


def test_a_silent_worker_is_replaced(supervisor: workers._Supervisor, caplog: pytest.LogCaptureFixture) -> None:
    silent, talking = supervisor.processes
    supervisor.keep_subprocess_alive()
    silent._asked -= workers.SILENCE_S / 2
    talking._asked -= 2 * workers.SILENCE_S
    reply(talking, ready=True)
    supervisor.keep_subprocess_alive()
    assert supervisor.processes == [silent, talking], "loading may take long"
    silent._asked -= workers.SILENCE_S
    supervisor.keep_subprocess_alive()
    assert silent.process.exitcode == -signal.SIGKILL
    assert supervisor.processes[0] is not silent
    assert supervisor.processes[1] is talking
    assert "said nothing for 120 s" in caplog.text
