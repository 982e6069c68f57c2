"""`vqa serve` as a real process, with its log."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil

from tests.support.pictures import drawn_circle

VQA = str(Path(sys.executable).with_name("vqa"))
START_S = 60


class Served:
    """A server process and its log."""

    def __init__(self, process: subprocess.Popen[str], url: str, log: list[str]) -> None:
        self.process = process
        self.client = httpx.Client(base_url=url, timeout=30)
        self.url = url
        self.log = log

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1])

    def ask(self, question: str = "what color is the circle?") -> httpx.Response:
        return self.client.post("/answer", files={"image": drawn_circle()}, data={"question": question})

    def logged(self, ending: str) -> int:
        """How many lines of the log end so."""
        return sum(line.rstrip().endswith(ending) for line in self.log)


@contextmanager
def vqa_serve(
    *flags: str,
    cwd: Path | None = None,
    ready: bool = True,
    command: Sequence[str] = (VQA, "serve", "--port", "0"),
    start_s: float = START_S,
    **environment: str,
) -> Iterator[Served]:
    process = subprocess.Popen(
        [*command, *flags],
        cwd=cwd,
        env={name: value for name, value in (os.environ | environment).items() if value},
        stderr=subprocess.PIPE,
        text=True,
    )
    log: list[str] = []
    listening = threading.Event()

    def read() -> None:
        assert process.stderr is not None
        for line in process.stderr:
            log.append(line)
            if "listening on" in line:
                listening.set()

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        assert listening.wait(start_s), log
        url = next(m[0] for line in log if (m := re.search(r"http://[\d.]+:\d+", line)))
        served = Served(process, url, log)
        if ready:
            wait_until(lambda: served.client.get("/readyz").status_code == 200, served)
        yield served
    finally:
        if process.poll() is None:
            family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
            for member in family:
                member.kill()
        process.wait(10)
        reader.join(10)


def wait_until(condition: Callable[[], object], served: Served, seconds: float = START_S) -> None:
    """Wait for the condition while the server lives."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert served.process.poll() is None, served.log
        assert time.monotonic() < deadline, served.log
        time.sleep(0.05)


def raw_question() -> tuple[bytes, bytes]:
    """A `POST /answer` as bytes, head and body, for a client that sends it piece by piece."""
    boundary = "cut-here"
    body = (
        (
            f'--{boundary}\r\nContent-Disposition: form-data; name="question"\r\n\r\nwhat color is it?\r\n'
            f'--{boundary}\r\nContent-Disposition: form-data; name="image"; filename="a.png"\r\n\r\n'
        ).encode()
        + drawn_circle()
        + f"\r\n--{boundary}--\r\n".encode()
    )
    head = (
        f"POST /answer HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary={boundary}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode()
    return head, body
