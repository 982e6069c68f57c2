"""One replica: cores, a queue by the nearest deadline, an answer cache, shared work, and the service's own admission.

Work is not interrupted once begun. Decoding and inference take the cores from one queue, whereas the real service has
a pool of threads for each and lets the kernel share the cores between them; the work is the same, its order is not.
A question that has run out of time is noticed when its turn comes; the real service notices at once.

`permit` asks for the running asyncio task, so a simulation runs in one (see `fleet.simulate`); nothing is awaited.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from contextlib import AbstractContextManager

from loadtest.simulation.lru import LRU
from loadtest.simulation.machine import Machine
from loadtest.simulation.question import Outcome, Question
from loadtest.simulation.timeline import Timeline
from service.errors import Code, VQAError
from service.gateway.decode_time import DecodeTime
from service.scheduling import Admission, ServiceTime, Ticket, Urgency

_BACKEND = "classifier"
_WORTH = 1.1
_EXPIRED = VQAError(Code.DEADLINE_EXCEEDED, "The deadline passed before the question's turn.")


class _Flight:
    """One answer under way, for all who wait for it."""

    __slots__ = ("key", "permit", "questions", "ticket", "urgency")

    def __init__(self, question: Question, ticket: Ticket, permit: AbstractContextManager[None]) -> None:
        self.key, self.urgency = question.key, ticket.urgency
        self.questions, self.ticket, self.permit = [question], ticket, permit


class _Preparing:
    """One picture under way, for all answers that need it."""

    __slots__ = ("flights", "picture", "pixels", "seconds", "urgency")

    def __init__(self, question: Question, flight: _Flight) -> None:
        self.picture, self.pixels, self.seconds = question.picture, question.pixels, question.prepare_s
        self.flights = [flight]
        self.urgency = Urgency.shared()
        self.urgency.join(flight.urgency)


_Work = _Flight | _Preparing


class Replica:
    """A replica that is ready.

    Args:
        index: its number among the replicas.
        machine: what it runs on.
        timeline: where its events go.
        done: told of each question with its outcome, at the moment it ends.

    Attributes:
        slowdown: by how much all its work takes longer than measured; may be changed at any time.
        hits, joined, computed, prepared: answers from the cache, shared ones, own ones; pictures decoded.
        asked: questions that came.
        busy_core_s: seconds of cores that were used, that of running work included up to `account`.
        waits_s, waits: sum and number of the predicted waits, as the service exports them.
    """

    def __init__(
        self, index: int, machine: Machine, timeline: Timeline, done: Callable[[Question, Outcome], None]
    ) -> None:
        self.index = index
        self.slowdown = 1.0
        self.hits = self.joined = self.computed = self.prepared = self.asked = 0
        self.busy_core_s = self.in_flight_s = self.waits_s = 0.0
        self.waits = 0
        self._machine, self._timeline, self._done = machine, timeline, done
        patience = machine.busy_s / machine.alone_s
        # As the service: where all cores on one inference win less, each always has its own.
        self._patience = patience if patience >= _WORTH else 0.0
        self._since = timeline.now
        self._begin_anew()

    def _begin_anew(self) -> None:
        machine = self._machine
        self._admission = Admission(machine.limit, clock=self._timeline.clock, observe_wait=self._observe_wait)
        self._cost = ServiceTime(machine.busy_s / machine.cores)
        self._latency = ServiceTime(machine.alone_s)
        self._decode = DecodeTime()
        self._cache = LRU(machine.cache_entries)
        self._flights: dict[int, _Flight] = {}
        self._preparing: dict[int, _Preparing] = {}
        self._hitting: dict[Question, None] = {}
        self._queue: list[tuple[float, int, _Work]] = []
        self._raises = Urgency.raises
        self._count = self._inferring = 0
        self._free = machine.cores
        # Core seconds of what surrounds answers, which came while all cores were busy: whatever begins next bears it.
        self._debt = 0.0
        self._life = object()

    @property
    def in_flight(self) -> int:
        """Questions admitted and not yet finished."""
        return self._admission.in_flight

    def account(self) -> None:
        """Bring the sums over time up to now."""
        now = self._timeline.now
        passed = now - self._since
        self.busy_core_s += passed * (self._machine.cores - self._free)
        self.in_flight_s += passed * self._admission.in_flight
        self._since = now

    def offer(self, question: Question) -> None:
        """A question arrives."""
        self.asked += 1
        self.account()
        machine, key = self._machine, question.key
        if machine.cache_entries and self._cache.get(key):
            self.hits += 1
            self._overhead(machine.front_s)
            self._hitting[question] = None
            self._timeline.at(self._timeline.now + machine.front_s, self._hit, question, self._life)
            return
        question.urgency = urgency = Urgency(question.due)
        if (flight := self._flights.get(key)) is not None and not flight.urgency.abandoned:
            self.joined += 1
            self._overhead(machine.front_s)
            flight.urgency.join(urgency)
            flight.questions.append(question)
            return
        shared = Urgency.shared()
        shared.join(urgency)
        preparing = self._preparing.get(question.picture)
        new_picture = preparing is None and question.prepare_s > 0
        decode_s = self._decode.expected("jpeg", question.pixels) / machine.cores if new_picture else 0.0
        ticket = Ticket(shared, _BACKEND, decode_s, self._cost.seconds, self._latency.seconds)
        permit = self._admission.permit(ticket)
        try:
            permit.__enter__()
        except VQAError:
            self._overhead(machine.refusal_s)
            self._done(question, Outcome.REFUSED)
            return
        self.computed += 1
        self._overhead(machine.front_s)
        self._flights[key] = flight = _Flight(question, ticket, permit)
        if preparing is not None:
            preparing.urgency.join(shared)
            preparing.flights.append(flight)
        elif new_picture:
            self.prepared += 1
            self._preparing[question.picture] = preparing = _Preparing(question, flight)
            self._enqueue(preparing)
        else:
            self._enqueue(flight)
        self._begin()

    def crash(self) -> list[Question]:
        """Everything under way is gone, and so is what was remembered; returns the questions that were."""
        self.account()
        lost = [question for flight in self._flights.values() for question in flight.questions]
        lost += self._hitting
        self._begin_anew()
        return lost

    def _observe_wait(self, seconds: float) -> None:
        self.waits_s += seconds
        self.waits += 1

    def _overhead(self, seconds: float) -> None:
        if self._free:
            self.busy_core_s += seconds
        else:
            self._debt += seconds

    def _enqueue(self, work: _Work) -> None:
        self._count += 1
        heapq.heappush(self._queue, (work.urgency.due, self._count, work))

    def _begin(self) -> None:
        """Give the free cores what is most urgent."""
        if self._raises != Urgency.raises:
            self._raises = Urgency.raises
            self._queue = [(work.urgency.due, number, work) for _, number, work in self._queue]
            heapq.heapify(self._queue)
        now, machine = self._timeline.now, self._machine
        while self._free and self._queue:
            _, _, work = heapq.heappop(self._queue)
            if work.urgency.expires <= now:
                self._expire(work)
                continue
            cores = 1
            if isinstance(work, _Preparing):
                seconds = work.seconds
            else:
                question = work.questions[0]
                few = self._free == machine.cores and 1 + len(self._queue) <= self._patience
                cores, seconds = (machine.cores, question.alone_s) if few else (1, question.busy_s)
                self._inferring += 1
            seconds, self._debt = seconds * self.slowdown + self._debt, 0.0
            self._free -= cores
            self._timeline.at(now + seconds, self._finish, work, cores, seconds, self._life)

    def _finish(self, work: _Work, cores: int, seconds: float, life: object) -> None:
        if life is not self._life:
            return  # begun before a crash
        self.account()
        self._free += cores
        if isinstance(work, _Preparing):
            self._decode.observe("jpeg", work.pixels, seconds)
            del self._preparing[work.picture]
            for flight in work.flights:
                flight.ticket.decode_s = 0.0
                self._enqueue(flight)
        else:
            self._latency.observe(seconds)
            if cores == 1 and self._inferring == self._machine.cores:
                # As the service: only while all cores infer is it the cost that counts under load.
                self._cost.observe(seconds / self._machine.cores)
            self._inferring -= 1
            work.permit.__exit__(None, None, None)
            del self._flights[work.key]
            if self._machine.cache_entries:
                self._cache.put(work.key)
            for question in work.questions:
                self._done(question, Outcome.ANSWERED if question.due >= self._timeline.now else Outcome.LATE)
        self._begin()

    def _expire(self, work: _Work) -> None:
        """Nobody wants it any more."""
        if isinstance(work, _Preparing):
            del self._preparing[work.picture]
            flights = work.flights
        else:
            flights = [work]
        for flight in flights:
            flight.permit.__exit__(VQAError, _EXPIRED, None)
            del self._flights[flight.key]
            for question in flight.questions:
                self._done(question, Outcome.LATE)

    def _hit(self, question: Question, life: object) -> None:
        if life is self._life:
            self.account()
            del self._hitting[question]
            question.cached = True
            self._done(question, Outcome.ANSWERED)
