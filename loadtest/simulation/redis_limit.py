"""What one Redis, which serves all commands in one thread, does a second with values of an answer's size."""

from __future__ import annotations

import csv
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

REQUESTS, CLIENTS = 30_000, 50
START_S = 10.0


def measure(value_bytes: int) -> dict[str, Any] | None:
    """GET and SET a second of a Redis of our own on a Unix socket; None where Redis is not installed.

    Client and server share the machine, and a socket of the kernel is quicker than a network: it is an upper bound.

    Raises:
        subprocess.CalledProcessError: the benchmark failed.
    """
    server, benchmark = shutil.which("redis-server"), shutil.which("redis-benchmark")
    if server is None or benchmark is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "redis.sock"
        command = [server, "--port", "0", "--unixsocket", str(path), "--save", "", "--appendonly", "no"]
        process = subprocess.Popen([*command, "--dir", folder], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + START_S
            while not path.exists() and process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.05)
            run = [benchmark, "-s", str(path), "-t", "set,get", "-d", str(value_bytes), "-r", "1000", "--csv"]
            run += ["-n", str(REQUESTS), "-c", str(CLIENTS)]
            output = subprocess.run(run, capture_output=True, text=True, check=True).stdout
        finally:
            process.terminate()
            process.wait()
    rates = {
        row[0].lower(): float(row[1]) for row in csv.reader(output.splitlines()) if row and row[0] in ("SET", "GET")
    }
    version = subprocess.run([server, "--version"], capture_output=True, text=True, check=True).stdout.split()
    return {
        "source": f"redis-benchmark, {CLIENTS} clients on a Unix socket, no pipelining; Redis {version[2][2:]}",
        "value_bytes": value_bytes,
        "gets_per_s": rates["get"],
        "sets_per_s": rates["set"],
    }
