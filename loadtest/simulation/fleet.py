"""Many replicas behind one router: arrivals, retries, failures, restarts, autoscaling, and what became of it all."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import numpy as np

from loadtest.simulation.autoscaling import Autoscaler
from loadtest.simulation.question import Outcome, Question
from loadtest.simulation.replica import Replica
from loadtest.simulation.routing import Router
from loadtest.simulation.signals import Signals
from loadtest.simulation.spec import Spec
from loadtest.simulation.tally import Tally
from loadtest.simulation.timeline import Timeline
from loadtest.simulation.workload import Questions

# Python objects are made of so many questions at a time.
_PIECE = 10_000


class Fleet:
    """One run. Use `simulate`.

    Attributes:
        tally: what became of the questions.
        replica_s: seconds that replicas existed, starting and draining included, until the last question came.
        most_replicas: at once.
    """

    def __init__(self, spec: Spec, questions: Questions, seed: int) -> None:
        self._spec, self._questions = spec, questions
        self._end = float(questions.at[-1]) if len(questions) else 0.0
        self._timeline = Timeline()
        self.tally = Tally(self._end, spec.warm_s)
        # Those that are drained keep their numbers for a while.
        most = 2 * max(spec.replicas, spec.scaling.most if spec.scaling else 0)
        self._router = Router(spec.policy, most, seed, spec.stale_s)
        self._rng = np.random.default_rng([seed, 1])
        self._replicas: dict[int, Replica] = {}
        self._ready: dict[int, Replica] = {}
        self._down: set[Replica] = set()
        self._draining: set[Replica] = set()
        self.replica_s, self.most_replicas, self._since = 0.0, 0, 0.0
        if spec.scaling is not None:
            self._autoscaler, self._signals = Autoscaler(spec.scaling), Signals(spec.scaling, spec.machine.cores)

    def run(self) -> None:
        """Everything, until the last question has ended."""
        spec, timeline = self._spec, self._timeline
        first = [self._add() for _ in range(spec.replicas)]
        for replica in first:
            self._ready[replica.index] = replica
        self._router.set_ready(list(self._ready))
        for number, replica in enumerate(first):
            if number < spec.slow:
                replica.slowdown = spec.slowdown
            if spec.failures is not None:
                self._plan_crash(replica)
            if spec.restart_from_s is not None:
                timeline.at(spec.restart_from_s + number * spec.restart_every_s, self._restart, replica)
        if spec.scaling is not None:
            timeline.at(spec.scaling.sync_s, self._look)
        for question in self._each():
            while timeline.next_at <= question.at:
                timeline.step()
            timeline.now = question.at
            self.tally.came(question.at)
            self._send(question)
        while self.tally.present:
            timeline.step()
        self._count()
        self.tally.check(len(self._questions))

    @property
    def replicas(self) -> list[Replica]:
        """Those that there are now."""
        return list(self._replicas.values())

    def _each(self) -> Iterator[Question]:
        q = self._questions
        columns = (q.at, q.due, q.picture, q.key, q.pixels, q.prepare_s, q.alone_s, q.busy_s)
        for start in range(0, len(q), _PIECE):
            yield from map(Question, *(column[start : start + _PIECE].tolist() for column in columns))

    def _send(self, question: Question, avoid: int = -1) -> None:
        router = self._router
        number = router.choose(question.picture, self._timeline.now, avoid)
        if number < 0:
            self._end_of(question, Outcome.LOST)
            return
        question.where = number
        router.load[number] += 1
        router.total += 1
        replica = self._replicas[number]
        if replica in self._down:
            self._lost(question)
        else:
            replica.offer(question)

    def _done(self, question: Question, outcome: Outcome) -> None:
        self._leave(question)
        if outcome is Outcome.REFUSED and self._spec.retry_refused and question.tries == 0:
            self._again(question)
        else:
            self._end_of(question, outcome)

    def _lost(self, question: Question) -> None:
        self._leave(question)
        if self._spec.failures is not None and self._spec.failures.retry and question.tries == 0:
            self._again(question)
        else:
            self._end_of(question, Outcome.LOST)

    def _again(self, question: Question) -> None:
        question.tries += 1
        self.tally.retried += 1
        self._send(question, avoid=question.where)

    def _leave(self, question: Question) -> None:
        number, router = question.where, self._router
        router.load[number] -= 1
        router.total -= 1
        if self._draining and not router.load[number] and (replica := self._replicas[number]) in self._draining:
            # After the event that emptied it.
            self._timeline.at(self._timeline.now, self._retire, replica)

    def _end_of(self, question: Question, outcome: Outcome) -> None:
        self.tally.ended(question.at, self._timeline.now, outcome, question.cached)

    # replicas come and go

    def _count(self) -> None:
        now = min(self._timeline.now, self._end)
        self.replica_s += len(self._replicas) * max(0.0, now - self._since)
        self._since = now

    def _add(self) -> Replica:
        self._count()
        number = next(n for n in range(len(self._replicas), 2 * len(self._router.load)) if self._is_free(n))
        number %= len(self._router.load)
        replica = Replica(number, self._spec.machine, self._timeline, self._done)
        self._replicas[number] = replica
        self.most_replicas = max(self.most_replicas, len(self._replicas))
        return replica

    def _is_free(self, number: int) -> bool:
        return number % len(self._router.load) not in self._replicas

    def _become_ready(self, replica: Replica) -> None:
        if self._replicas.get(replica.index) is replica and replica not in self._draining:
            self._ready[replica.index] = replica
            self._router.set_ready(list(self._ready))

    def _drain(self, replica: Replica) -> None:
        self._draining.add(replica)
        if self._ready.pop(replica.index, None):
            self._router.set_ready(list(self._ready))
        self._retire(replica)

    def _retire(self, replica: Replica) -> None:
        if replica in self._draining and not self._router.load[replica.index]:
            self._count()
            self._draining.discard(replica)
            del self._replicas[replica.index]

    # what goes wrong, and what is done on purpose

    def _plan_crash(self, replica: Replica) -> None:
        assert self._spec.failures is not None
        at = self._timeline.now + float(self._rng.exponential(self._spec.failures.mtbf_s))
        if at <= self._end:
            self._timeline.at(at, self._crash, replica)

    def _crash(self, replica: Replica) -> None:
        failures = self._spec.failures
        assert failures is not None
        self._down.add(replica)
        for question in replica.crash():
            self._lost(question)
        self._timeline.at(self._timeline.now + failures.detect_s, self._notice, replica)
        self._timeline.at(self._timeline.now + failures.restart_s, self._recover, replica)

    def _notice(self, replica: Replica) -> None:
        self._ready.pop(replica.index, None)
        self._router.set_ready(list(self._ready))

    def _recover(self, replica: Replica) -> None:
        self._down.discard(replica)
        self._become_ready(replica)
        self._plan_crash(replica)

    def _restart(self, old: Replica) -> None:
        """As Kubernetes' rolling update with one more at a time: the new one is ready before the old one is drained."""
        self._timeline.at(self._timeline.now + self._spec.start_s, self._replace, old, self._add())

    def _replace(self, old: Replica, new: Replica) -> None:
        self._become_ready(new)
        self._drain(old)

    def _look(self) -> None:
        """The autoscaler's."""
        scaling, now = self._spec.scaling, self._timeline.now
        assert scaling is not None
        metrics = self._signals.look(self._ready.values(), now)
        alive = [replica for replica in self._replicas.values() if replica not in self._draining]
        wanted = self._autoscaler.decide(now, metrics, len(alive))
        for _ in range(wanted - len(alive)):
            self._timeline.at(now + scaling.pod_s + self._spec.start_s, self._become_ready, self._add())
        # Those that are not ready go first, then the youngest.
        alive.reverse()
        alive.sort(key=lambda replica: replica.index in self._ready)
        for replica in alive[: max(0, len(alive) - wanted)]:
            self._drain(replica)
        if now + scaling.sync_s <= self._end:
            self._timeline.at(now + scaling.sync_s, self._look)


def simulate(spec: Spec, questions: Questions, seed: int = 0) -> Fleet:
    """Run a fleet; returns it with its figures.

    Args:
        spec: the fleet.
        questions: what it is asked.
        seed: of the router's and the failures' chances.

    Raises:
        BookkeepingError: the run contradicts itself.
    """
    fleet = Fleet(spec, questions, seed)

    async def in_a_task() -> None:
        fleet.run()

    asyncio.run(in_a_task())
    return fleet
