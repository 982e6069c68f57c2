"""Fuzz the picture decoder: `python -m tests.fuzz.decoder --count 20000 --seed 1`.

Mutated files are decoded in a worker process with bounds on time and memory. A finding is an exception other than
`ImageError`, another fate at a reduced scale than at full size, a file that takes longer than 5 seconds, memory over
the bound, or the death of the process. Each file is drawn from the seed and its own number, so `--only NUMBER` (with
`--save FILE` to keep it) shows a finding again.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import select
import struct
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

SECONDS_PER_FILE = 5.0
# Small, so that honest work stays far below the memory bound: at most 16 bytes a pixel, 64 MiB in all.
MAX_PIXELS = 4 * 2**20
GROWTH_MIB = 256
ADDRESS_SPACE_BYTES = 4 * 2**30
ROOT = Path(__file__).parents[2]


@dataclass
class Report:
    """What a run has found."""

    findings: list[str] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    slowest_s: float = 0.0
    growth_mib: float = 0.0
    seconds: float = 0.0

    @property
    def closing_line(self) -> str:
        files = sum(self.outcomes.values())
        outcomes = ", ".join(f"{name} {count}" for name, count in self.outcomes.most_common())
        return (
            f"fuzz: {files} files in {self.seconds:.0f} s, {len(self.findings)} findings; slowest file "
            f"{self.slowest_s:.2f} s, most memory {self.growth_mib:.0f} MiB above the start; {outcomes}"
        )


class Worker:
    """The process that decodes; it is replaced when it dies or hangs."""

    def __init__(self) -> None:
        environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.fuzz.decoder", "--worker"],
            cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        # Starting takes its own time, which is no file's.
        if _pipe(self._process.stdout).readline() != b"ready\n":
            raise RuntimeError(f"the worker did not start; it ended with {self._process.wait()}")

    def decode(self, data: bytes) -> dict[str, Any]:
        """What became of the file: {"outcome": …} or {"finding": …}."""
        stdin, stdout = _pipe(self._process.stdin), _pipe(self._process.stdout)
        try:
            stdin.write(struct.pack("<I", len(data)) + data)
            stdin.flush()
        except BrokenPipeError:
            return {"finding": f"the process died with {self._process.wait()} before the file"}
        if not select.select([stdout], [], [], SECONDS_PER_FILE)[0]:
            self.stop()
            return {"finding": f"it took longer than {SECONDS_PER_FILE} s"}
        line = stdout.readline()
        if not line:
            return {"finding": f"the process died with {self._process.wait()}"}
        return dict(json.loads(line))

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        with contextlib.suppress(BrokenPipeError):  # what was still to be written is of no use
            _pipe(self._process.stdin).close()
        _pipe(self._process.stdout).close()


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe


def fuzz(numbers: range, seed: int, *, show: bool = False) -> Report:
    """Decode the files of these numbers; findings go to standard error as they come."""
    from tests.fuzz.seeds import seeds

    files = seeds()
    report = Report()
    worker = Worker()
    started = time.monotonic()
    shown = started
    try:
        for number in numbers:
            what, data = make(seed, number, files)
            if not worker.alive:
                worker = Worker()
            began = time.monotonic()
            answer = worker.decode(data)
            report.slowest_s = max(report.slowest_s, time.monotonic() - began)
            report.growth_mib = max(report.growth_mib, answer.get("growth_mib", 0.0))
            if "finding" in answer:
                report.outcomes["finding"] += 1
                report.findings.append(f"seed {seed}, file {number} ({what}, {len(data)} bytes): {answer['finding']}")
                print(f"FINDING {report.findings[-1]}", file=sys.stderr, flush=True)
                worker.stop()
            else:
                report.outcomes[answer["outcome"]] += 1
            if show and time.monotonic() - shown > 10:
                shown = time.monotonic()
                print(f"fuzz: {number + 1 - numbers.start} of {len(numbers)} files", file=sys.stderr, flush=True)
    finally:
        worker.stop()
    report.seconds = time.monotonic() - started
    return report


def make(seed: int, number: int, files: dict[str, bytes]) -> tuple[str, bytes]:
    """(what was done, the file) of one number."""
    from tests.fuzz.mutate import mutate

    return mutate(random.Random(f"{seed}:{number}"), files)


def work() -> None:
    """The worker: files come in on standard input, one line a file goes out."""
    import resource

    from service.images import ImageError, ImageLimits, decode_image
    from tests.fuzz.seeds import seeds
    from tests.images.memory import peak_mib

    limits = ImageLimits(max_pixels=MAX_PIXELS)
    for data in seeds().values():  # what every decoder takes for itself belongs to the start
        try:
            decode_image(data, limits=limits)
        except ImageError:
            continue
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE_BYTES, ADDRESS_SPACE_BYTES))
    start = peak_mib()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while header := sys.stdin.buffer.read(4):
        data = sys.stdin.buffer.read(struct.unpack("<I", header)[0])
        answer: dict[str, Any] = {}
        try:
            picture = decode_image(data, limits=limits)
            answer["outcome"] = "decoded"
            if picture.pixels.shape != (picture.height, picture.width, 3):
                answer["finding"] = f"pixels of shape {picture.pixels.shape}"
            del picture
        except ImageError as error:
            answer["outcome"] = str(error.code)
            if isinstance(error.__cause__, MemoryError):
                answer["finding"] = "the decoder ran out of memory"
        except BaseException as error:  # noqa: BLE001 - that is what is looked for
            answer["finding"] = repr(error)[:300]
        try:
            reduced = decode_image(data, limits=limits, needed=lambda height, width: (height // 9, width // 9))
            outcome = "decoded"
            if max(reduced.picture.width - reduced.width, reduced.picture.height - reduced.height) > 0:
                answer["finding"] = f"{reduced.picture.size} pixels of {reduced.width} x {reduced.height}"
            del reduced
        except ImageError as error:
            outcome = str(error.code)
        except BaseException as error:  # noqa: BLE001 - that is what is looked for
            outcome = repr(error)[:300]
        if outcome != answer.get("outcome"):
            answer.setdefault("finding", f"{answer.get('outcome')}, but {outcome} at a reduced scale")
        answer["growth_mib"] = peak_mib() - start
        if answer["growth_mib"] > GROWTH_MIB:
            answer.setdefault("finding", f"memory grew by {answer['growth_mib']:.0f} MiB")
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(description="Fuzz the picture decoder.")
    parser.add_argument("--count", type=int, default=1000, help="how many files")
    parser.add_argument("--seed", type=int, default=1, help="draws other files")
    parser.add_argument("--start", type=int, default=0, help="the first file's number")
    parser.add_argument("--only", type=int, help="one file, by its number")
    parser.add_argument("--save", type=Path, help="with --only: write the file there")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work()
        return 0
    numbers = range(options.start, options.start + options.count)
    if options.only is not None:
        numbers = range(options.only, options.only + 1)
        if options.save:
            from tests.fuzz.seeds import seeds

            options.save.write_bytes(make(options.seed, options.only, seeds())[1])
    report = fuzz(numbers, options.seed, show=True)
    print(report.closing_line)
    return 1 if report.findings else 0


if __name__ == "__main__":
    sys.exit(main())
