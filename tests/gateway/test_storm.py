"""Ten thousand questions with everything going wrong at once: each gets one outcome, and nothing is left over."""

from __future__ import annotations

import asyncio
import gc
import logging
import random
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from service.answers import AnswerSet, Posterior
from service.backends import Pace, Scored
from service.errors import VQAError
from service.gateway import Gateway, Picture, Question, Reply
from service.gateway.cache import MemoryCache
from service.gateway.question import Caller, Freshness
from service.scheduling import Batcher, Ticket, Urgency, WorkerThreads
from service.scheduling.entry import Entry
from service.scheduling.shared_work import _Flight
from service.settings import load_settings
from service.telemetry.metrics import Metrics
from tests.support.backends import ScriptedBackend
from tests.support.pictures import drawn_circle

QUESTIONS = 10_000
AT_ONCE = 60


class Moody(ScriptedBackend):
    """Batches with the real batcher; now and then an item, a batch or a preparation fails."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__()
        self._rng = rng
        self.pace = Pace(0.0005, 0.002)
        self.batcher: Batcher[str, np.ndarray] = Batcher(self._run, max_batch=8, runners=2)

    def prepare(self, image: object) -> object:
        if self._rng.random() < 0.02:
            raise RuntimeError("cannot prepare")
        return image

    async def _run(self, items: Sequence[str]) -> Sequence[np.ndarray | Exception]:
        await asyncio.sleep(self._rng.uniform(0, 0.004))
        if self._rng.random() < 0.05:
            raise RuntimeError("a batch fails")
        return [ValueError("an item fails") if self._rng.random() < 0.05 else self._logits for _ in items]

    async def ask(self, picture: object, question: str, answer_set: AnswerSet, urgency: Urgency) -> Scored:
        done = await self.batcher.submit(hash(question) % 3, question, urgency)
        projection = self._vocabulary.project(answer_set)
        posterior = Posterior.from_logits(done.result, projection, answer_set, self.score_kind)
        return Scored(posterior, done.queue_s, done.run_s)


@pytest.fixture
def _no_records() -> Iterator[None]:
    """pytest keeps every record, and with its traceback the frames of what failed."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.usefixtures("_no_records")
async def test_every_question_gets_one_outcome_and_nothing_is_left() -> None:
    rng = random.Random(7)
    backend, metrics = Moody(rng), Metrics()
    settings = load_settings(max_in_flight=100)
    gateway = Gateway(settings, {"classifier": backend}, WorkerThreads(2), MemoryCache(64 * 1024), metrics)
    await gateway.start()
    pictures = [drawn_circle(size=(16 + i, 16)) for i in range(40)] + [b"no picture"]
    outcomes: Counter[str] = Counter()
    before = asyncio.all_tasks()

    async def caller(number: int) -> None:
        data = rng.choice(pictures)
        count = rng.choice((1, 1, 1, 5))
        questions = [
            Question(f"is it {rng.randrange(60)}?", priority=rng.choice(("interactive", "batch"))) for _ in range(count)
        ]
        freshness = rng.choice((Freshness.CACHED, Freshness.CACHED, Freshness.FRESH, Freshness.PRIVATE))
        who = Caller(rng.choice("ab"), freshness)
        asking = asyncio.ensure_future(
            gateway.answer_all(
                Picture(lambda: data, size=len(data)),
                questions,
                timeout_ms=rng.choice((1, 20, 100, 5000, 5000)),
                caller=who,
            )
        )
        if rng.random() < 0.3:
            await asyncio.sleep(rng.uniform(0, 0.02))
            if rng.random() < 0.5:
                who.leave()
                await asyncio.sleep(rng.choice((0, 0.001)))
            asking.cancel()
        try:
            replies = await asking
        except VQAError as error:
            outcomes[error.code] += count
        except asyncio.CancelledError:
            outcomes["left"] += count
        else:
            assert len(replies) == count
            outcomes.update("answered" if isinstance(reply, Reply) else reply.code for reply in replies)

    asked, running = 0, set()
    while sum(outcomes.values()) < QUESTIONS:
        while len(running) < AT_ONCE:
            running.add(asyncio.ensure_future(caller(asked)))
            asked += 1
        _, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
    await asyncio.gather(*running)
    async with asyncio.timeout(10):
        while asyncio.all_tasks() - before or backend.batcher.running:
            await asyncio.sleep(0.01)

    counted = [s for m in metrics.questions.collect() for s in m.samples if s.name == "vqa_questions_total"]
    assert sum(sample.value for sample in counted) == sum(outcomes.values()) >= QUESTIONS
    assert outcomes.keys() >= {"answered", "left", "saturated", "deadline_exceeded", "backend_failed"}, outcomes
    assert outcomes["answered"] > 500, outcomes
    assert metrics.registry.get_sample_value("vqa_questions_in_flight") == 0
    assert backend.batcher.waiting == 0
    gc.collect()
    left = Counter(type(thing).__name__ for thing in gc.get_objects() if isinstance(thing, Ticket | Entry | _Flight))
    assert not left, left
    # And it still works.
    for _ in range(20):
        try:
            reply = await gateway.answer(
                Picture(lambda: pictures[0]), Question("is it well?"), caller=Caller(freshness=Freshness.FRESH)
            )
        except VQAError:
            continue
        assert reply.verdict.answer == "yes"
        break
    else:
        raise AssertionError("no answer after the storm")
    await gateway.stop()
