"""A contestant that runs: started until a real request is answered, asked, watched, stopped."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from loadtest.peers.answer import Answer
from loadtest.peers.bare import Entry
from loadtest.peers.contestants import Contestant
from loadtest.peers.given import HOST, Given
from loadtest.peers.protocols import Protocol
from loadtest.peers.tree import Tree, spent
from loadtest.wire import Client, Exchange, run

T = TypeVar("T")

START_S = 60.0
SETTLE_S = 45.0
# Cores that a server may use while it is at rest: Ray's daemons never sleep.
AT_REST = 0.15
GLANCE_S = 0.3


class RefusedError(Exception):
    """Why a contestant is not measured: it does not start, or its answers are not right."""


class Running:
    """A contestant whose processes run; a server answers."""

    def __init__(self, contestant: Contestant, given: Given, trees: Sequence[Tree]) -> None:
        self.contestant = contestant
        self.given = given
        self.trees = trees

    @property
    def url(self) -> str:
        """Where the server listens."""
        return f"http://{HOST}:{self.given.port}"

    @property
    def protocol(self) -> Protocol:
        """How it is asked."""
        assert self.contestant.protocol is not None
        return self.contestant.protocol

    def cpu(self) -> dict[int, float]:
        """CPU seconds so far of each process."""
        return {pid: seconds for tree in self.trees for pid, seconds in tree.cpu().items()}

    def pss_mib(self) -> float:
        """Memory of all processes, in MiB."""
        return sum(tree.pss_mib() for tree in self.trees)

    def settle(self) -> None:
        """Return when the processes are at rest: what was left under way is done, or the time is over."""
        deadline = time.monotonic() + SETTLE_S
        while time.monotonic() < deadline:
            before = self.cpu()
            time.sleep(GLANCE_S)
            if spent(before, self.cpu()) < AT_REST * GLANCE_S:
                return

    def answers(self, entries: Sequence[Entry], *, together: bool = False) -> list[Answer]:
        """What it answers, one question after the other, or all questions of a picture in one request.

        Raises:
            RefusedError: a reply is no 200, or says no answer.
        """
        protocol, found = self.protocol, []
        for picture, questions in entries:
            if together:
                assert protocol.ask_many is not None
                assert protocol.answers is not None
                found += _read(protocol.answers, self._ask(protocol.ask_many(picture, questions)))
            else:
                found += [
                    _read(protocol.answer, self._ask(protocol.ask(picture, question, None))) for question in questions
                ]
        return found

    def _ask(self, request: bytes) -> bytes:
        exchange = ask(self.url, request)
        if exchange.status != 200:
            raise RefusedError(f"{exchange.error or exchange.status}: {exchange.body[:200].decode(errors='replace')}")
        return exchange.body

    def order(self, number: int, **order: Any) -> dict[str, Any]:
        """One order to a process of the bare loop, and its result."""
        self.send(number, **order)
        return self.result(number)

    def send(self, number: int, **order: Any) -> None:
        """An order to a process of the bare loop."""
        stdin = self.trees[number].process.stdin
        assert stdin is not None
        stdin.write(json.dumps(order, default=str).encode() + b"\n")
        stdin.flush()

    def result(self, number: int) -> dict[str, Any]:
        """What a process of the bare loop has to say.

        Raises:
            RefusedError: it has ended.
        """
        stdout = self.trees[number].process.stdout
        assert stdout is not None
        line = stdout.readline()
        if not line:
            raise RefusedError(f"it ended: {self.trees[number].log()}")
        result: dict[str, Any] = json.loads(line)
        return result


@contextmanager
def running(contestant: Contestant, given: Given, environments: Path | None, first: Entry) -> Iterator[Running]:
    """Start a contestant, wait until it answers, and stop it when the block ends.

    Args:
        contestant: who.
        given: what it is told.
        environments: the folder of the peers' environments; None runs all in this one.
        first: what it is asked until it answers.

    Raises:
        RefusedError: it does not come to answer.
    """
    if why := contestant.missing(given, environments):
        raise RefusedError(why)
    # Short: Ray's sockets lie below, and the path of one has 107 characters at most.
    scratch = Path(tempfile.mkdtemp(prefix="peers-"))
    trees: list[Tree] = []
    try:
        command = contestant.command(given, environments)
        environment = contestant.environment(given, environments, scratch)
        bare = contestant.protocol is None
        for _ in range(given.workers if bare else 1):  # one by one: those that were started are stopped, whatever comes
            trees.append(Tree(command, environment, scratch, pipes=bare))  # noqa: PERF401
        started = Running(contestant, given, trees)
        if not bare:
            _wait(started, first)
        yield started
    finally:
        for tree in trees:
            tree.stop()
        shutil.rmtree(scratch, ignore_errors=True)


def ask(url: str, request: bytes) -> Exchange:
    """One request on a connection of its own."""

    async def send() -> Exchange:
        client = Client(url)
        try:
            return await client.send(request, fresh=True)
        finally:
            client.close()

    return run(send())


def _wait(started: Running, first: Entry) -> None:
    request = started.protocol.ask(first[0], first[1][0], None)
    [tree] = started.trees
    deadline = time.monotonic() + START_S
    said = ""
    while time.monotonic() < deadline and not tree.ended:
        exchange = ask(started.url, request)
        if exchange.status == 200:
            _read(started.protocol.answer, exchange.body)
            started.settle()  # its other workers may still be loading
            return
        said = f"{exchange.error or exchange.status} {exchange.body[:200].decode(errors='replace')}"
        time.sleep(0.2)
    how = "it ended" if tree.ended else f"no answer within {START_S:g} s"
    raise RefusedError(f"did not start: {how}; {said}; {tree.log()}")


def _read(read: Callable[[bytes], T], body: bytes) -> T:
    try:
        return read(body)
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise RefusedError(
            f"a 200 without an answer ({type(error).__name__}): {body[:200].decode(errors='replace')}"
        ) from None
