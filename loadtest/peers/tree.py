"""A contestant's processes, all of them: found by a mark in their environment, measured through /proc, stopped by pid.

A server's workers need not be its children: Ray's daemons leave the process that started them. What a process starts
inherits its environment, so the mark finds them.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import psutil

MARK = "PEERS_MARK"
# Behind the load generator, which shares the cores: on a machine of its own it would never have to wait for a server.
# In the same session as that: between sessions the kernel shares the cores evenly, whatever the niceness (autogroup).
NICE = 5
# Seconds that the first process gets for a clean end after SIGTERM, and then the others.
PATIENCE_S = 8.0
OTHERS_S = 1.0


class Tree:
    """A process that was started with a mark, and all that came of it.

    Args:
        command: to run.
        environment: all of its variables; the mark is added.
        folder: to run in.
        pipes: whether to talk to it by its standard input and output.
    """

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], folder: Path, *, pipes: bool = False
    ) -> None:
        self._entry = f"{MARK}={uuid.uuid4().hex}".encode()
        name, _, value = self._entry.decode().partition("=")
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed in `stop`
        self.process: subprocess.Popen[bytes] = subprocess.Popen(
            ["nice", "-n", str(NICE), *command],
            env={**environment, name: value},
            cwd=folder,
            stdin=subprocess.PIPE if pipes else subprocess.DEVNULL,
            stdout=subprocess.PIPE if pipes else self._log,
            stderr=self._log,
            process_group=0,
        )

    @property
    def ended(self) -> bool:
        """Whether the process that was started has ended."""
        return self.process.poll() is not None

    def log(self, most: int = 1500) -> str:
        """The end of what its processes wrote."""
        self._log.flush()
        size = os.fstat(self._log.fileno()).st_size
        return os.pread(self._log.fileno(), most, max(0, size - most)).decode(errors="replace")

    def members(self) -> list[psutil.Process]:
        """All living processes with the mark."""
        found = []
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit():
                with suppress(OSError, psutil.NoSuchProcess):
                    if self._entry in (folder / "environ").read_bytes().split(b"\0"):
                        found.append(psutil.Process(int(folder.name)))
        return found

    def cpu(self) -> dict[int, float]:
        """CPU seconds so far, user and system, of each living process."""
        seconds = {}
        for member in self.members():
            with suppress(psutil.NoSuchProcess):
                times: Any = member.cpu_times()
                seconds[member.pid] = times.user + times.system
        return seconds

    def pss_mib(self) -> float:
        """Proportional set size of all, in MiB: a page that several share is counted once in the sum."""
        total = 0
        for member in self.members():
            with suppress(OSError):
                for line in Path(f"/proc/{member.pid}/smaps_rollup").read_text().splitlines():
                    if line.startswith("Pss:"):
                        total += int(line.split()[1])
        return total / 1024

    def stop(self) -> None:
        """End all: SIGTERM to the first, which may tell the others; then to all; then SIGKILL. None is left then."""
        if self.process.stdin is not None:
            with suppress(OSError):
                self.process.stdin.close()
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(PATIENCE_S)
        self._until_gone(OTHERS_S)
        for number, seconds in ((signal.SIGTERM, OTHERS_S), (signal.SIGKILL, 30.0)):
            for member in self.members():
                with suppress(psutil.NoSuchProcess):
                    member.send_signal(number)
            self._until_gone(seconds)
        self.process.wait(30)
        if self.process.stdout is not None:
            self.process.stdout.close()
        self._log.close()

    def _until_gone(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.process.poll()  # else it stays as a zombie
            if not self.members():
                return
            time.sleep(0.05)


def spent(before: Mapping[int, float], after: Mapping[int, float]) -> float:
    """CPU seconds between two readings, of those that still live."""
    return sum(seconds - before.get(pid, 0.0) for pid, seconds in after.items())
