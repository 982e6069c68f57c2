"""The limit: the work in a loop, in so many processes, with no server, no socket and no queue.

    python -m loadtest.peers.bare        (with the variables of `Given`)

One of its processes. It reads a JSON line from standard input at a time and writes one to standard output:

- `{"run": FILE, "seconds": S, "first": N}` asks what the file holds over and over, from entry N on;
- `{"ask": FILE}` asks each entry once, for what right answers are.

A file is a pickled list of (picture, questions) by this driver. A picture with many questions is decoded once for each
question, as a server that gets it with each has to; that ten questions may share a picture is not of the work.
"""

from __future__ import annotations

import json
import pickle
import sys
import time
from pathlib import Path
from typing import Any

from loadtest.peers.answer import Model
from loadtest.peers.given import Given

Entry = tuple[bytes, list[str]]


def run(model: Model, entries: list[Entry], seconds: float, first: int) -> dict[str, Any]:
    """Ask over and over for about so long: how long each question took, and until the last one's end the seconds and
    the CPU seconds. One that is under way when the time is over counts in neither."""
    asked = [(picture, question) for picture, questions in entries for question in questions]
    latencies: list[float] = []
    cpu = cpu_started = time.process_time()
    now = started = time.perf_counter()
    while True:
        model.ask(*asked[(first + len(latencies)) % len(asked)])
        before, now = now, time.perf_counter()
        if now - started > seconds:
            return {"seconds": before - started, "cpu_s": cpu - cpu_started, "latencies": latencies}
        cpu = time.process_time()
        latencies.append(now - before)


def main() -> None:
    """Obey until standard input ends."""
    given = Given.read()
    model = given.load()
    for line in sys.stdin:
        order = json.loads(line)
        entries: list[Entry] = pickle.loads(Path(order.get("run") or order["ask"]).read_bytes())
        if "run" in order:
            result = run(model, entries, order["seconds"], order["first"])
        else:
            answers = [model.ask(picture, question) for picture, questions in entries for question in questions]
            result = {"answers": [answer.json() for answer in answers]}
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
