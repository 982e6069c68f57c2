"""Which layout of the threads is chosen, and that every layout gives the same answers."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from service.backends import load_manifest
from service.backends.classifier import ViltClassifier
from service.backends.layout import Layout, Measured, Trial, Way, at_once, choose, measure
from service.backends.loading import _burst
from service.images import decode_image
from service.scheduling import Urgency
from service.settings import load_settings
from tests.scheduling.clock import Clock
from tests.support.pictures import drawn_circle

MODELS = load_settings().models_dir
WIDE, NARROW = Way.WIDE, Way.NARROW
BOTH = Layout(
    idle=WIDE,
    busy=NARROW,
    batch={WIDE: 4, NARROW: 2},
    runners={WIDE: 1, NARROW: 2},
    patience=1.8,
    cost_s=1,
    latency_s=1,
)


def found(wide: Mapping[int, float], narrow: Mapping[int, float], wide_s: float, narrow_s: float) -> Layout:
    return choose({WIDE: Measured(1, wide_s, wide), NARROW: Measured(2, narrow_s, narrow)})


@pytest.mark.parametrize(
    ("wide", "narrow", "wide_s", "narrow_s", "idle", "busy", "batch"),
    [
        # A large model in fp32: one as good as the other measured alone, so that it is narrow that holds under load.
        ({1: 14.0, 2: 15.1, 4: 15.4}, {1: 15.1, 2: 16.0, 4: 16.0}, 0.072, 0.132, WIDE, NARROW, 2),
        ({1: 15.5}, {1: 15.1}, 0.072, 0.132, WIDE, NARROW, 1),
        # Where wide is clearly better it is left alone.
        ({1: 16.9}, {1: 15.1}, 0.072, 0.132, WIDE, WIDE, 1),
        # In int8: two threads gain little on one question, and lose much on many.
        ({1: 13.2, 2: 14.0}, {1: 20.0, 2: 20.2}, 0.076, 0.100, WIDE, NARROW, 1),
        # A small model is faster on one thread.
        ({1: 987, 8: 1659}, {1: 2081, 2: 2263, 4: 2380, 8: 2304}, 0.00101, 0.00089, NARROW, NARROW, 2),
        # A gain below a tenth is not worth a second session.
        ({1: 10.0}, {1: 20.0}, 0.095, 0.100, NARROW, NARROW, 1),
        # One question gains nothing from two threads, so what a batch seems to gain is noise.
        ({1: 30.0}, {1: 20.0}, 0.100, 0.100, NARROW, NARROW, 1),
    ],
)
def test_choice(
    wide: Mapping[int, float],
    narrow: Mapping[int, float],
    wide_s: float,
    narrow_s: float,
    idle: Way,
    busy: Way,
    batch: int,
) -> None:
    layout = found(wide, narrow, wide_s, narrow_s)
    assert (layout.idle, layout.busy, layout.batch[busy]) == (idle, busy, batch)
    assert layout.patience == pytest.approx({WIDE: wide_s, NARROW: narrow_s}[busy] / layout.latency_s)
    assert layout.cost_s == pytest.approx(1 / {WIDE: wide, NARROW: narrow}[busy][batch])


def test_one_way_needs_no_choice() -> None:
    layout = choose({WIDE: Measured(1, 0.01, {1: 100.0, 2: 190.0, 4: 195.0})})
    assert layout.ways == (WIDE,)
    assert layout.batch == {WIDE: 2}


def trial(clock: Clock, runners: int, seconds: Callable[[int, int], float], log: list[tuple[int, int, int]]) -> Trial:
    def burst(at_once: int, batch: int, runs: int) -> float:
        log.append((at_once, batch, runs))
        took = seconds(at_once, batch)
        clock.now += runs * took
        return took

    return Trial(runners, burst)


def test_short_inferences_are_measured_often_and_every_batch() -> None:
    clock, log = Clock(), []
    measured = measure({NARROW: trial(clock, 2, lambda _, n: 0.001 * n, log)}, 6, clock=clock)
    assert set(measured[NARROW].rates) == {1, 2, 4, 6}
    assert measured[NARROW].latency_s == pytest.approx(0.001)
    rates = list(measured[NARROW].rates.values())
    assert rates == sorted(rates), "each batch is handed over once, so that larger ones waste less"
    assert 1700 < rates[0] < rates[-1] < 2000
    assert max(runs for _, _, runs in log) >= 10


def test_long_inferences_are_measured_seldom_and_larger_batches_only_where_they_help() -> None:
    clock, log = Clock(), []
    trials = {
        WIDE: trial(clock, 1, lambda _, n: 0.07 * n + 0.03, log),
        NARROW: trial(clock, 2, lambda _, n: 0.15 * n, log),
    }
    measured = measure(trials, 64, clock=clock, budget_s=30.0)
    assert set(measured[NARROW].rates) == {1, 2}
    assert max(measured[WIDE].rates) >= 8
    assert {runs for _, _, runs in log} == {2}


def test_measuring_ends_with_its_budget() -> None:
    clock, log = Clock(), []
    begun = clock.now
    trials = {way: trial(clock, runners, lambda *_: 5.0, log) for way, runners in ((WIDE, 1), (NARROW, 2))}
    measured = measure(trials, 8, clock=clock, budget_s=2.0)
    assert {way: set(m.rates) for way, m in measured.items()} == {WIDE: {1}, NARROW: {1}}, "the least for a choice"
    assert clock.now - begun <= 30


def test_long_inferences_are_measured_twice_before_larger_batches_are() -> None:
    clock, log = Clock(), []
    trials = {WIDE: trial(clock, 1, lambda _, n: 0.3 * n, log), NARROW: trial(clock, 2, lambda _, n: 0.5 * n, log)}
    measured = measure(trials, 8, clock=clock, budget_s=5.0)
    assert {way: set(m.rates) for way, m in measured.items()} == {WIDE: {1}, NARROW: {1}}
    assert [entry[:2] for entry in log].count((2, 1)) == 2


class Halting:
    """A model of which one thread is held up in every inference."""

    def __init__(self) -> None:
        self.halted: int | None = None

    def grey(self) -> None:
        return None

    def logits(self, items: list[None], way: Way) -> None:
        if self.halted is None:
            self.halted = threading.get_ident()
        time.sleep(0.2 if threading.get_ident() == self.halted else 0.005)


def test_the_quickest_thread_counts() -> None:
    with ThreadPoolExecutor(2) as pool:
        seconds = _burst(Halting(), NARROW, pool, 2, 1, 3)  # type: ignore[arg-type]
    assert 0.005 <= seconds < 0.1


def test_the_best_round_counts() -> None:
    clock, seconds = Clock(), iter([0.5, 0.1, 0.4])
    measured = measure({WIDE: trial(clock, 1, lambda *_: next(seconds, 0.2), [])}, 1, clock=clock)
    assert measured[WIDE].latency_s == pytest.approx(0.1)


def test_all_begin_at_once_and_a_failure_is_told() -> None:
    together = threading.Barrier(3)
    with ThreadPoolExecutor(3) as pool:
        assert sorted(at_once(pool, 3, lambda: together.wait(10))) == [0, 1, 2]
        with pytest.raises(ZeroDivisionError):
            at_once(pool, 3, lambda: 1 // 0 and None)
    with pytest.raises(RuntimeError, match="shutdown"):
        at_once(pool, 3, lambda: None)


async def started(**options: object) -> ViltClassifier:
    classifier = ViltClassifier(load_manifest(MODELS, "vilt-shapes"), threads=2, **options)
    await classifier.start()
    return classifier


async def with_both() -> ViltClassifier:
    """A classifier that goes wide when idle and narrow when busy, whatever this machine would choose."""
    classifier = await started(layout="narrow")
    wide = await started(layout="wide")
    sessions = classifier._loaded.sessions | wide._loaded.sessions
    await wide.stop()
    classifier._model, classifier._layout = dataclasses.replace(classifier._loaded, sessions=sessions), BOTH
    return classifier


class Watched:
    """A session that notes who runs in it, and can be held."""

    def __init__(self, session: object) -> None:
        self.session, self.sizes, self.running, self.most = session, [], 0, 0
        self.go_on = threading.Event()
        self.go_on.set()
        self._lock = threading.Lock()

    def run(self, outputs: list[str], inputs: dict[str, np.ndarray], options: object) -> object:
        with self._lock:
            self.sizes.append(len(inputs["input_ids"]))
            self.running += 1
            self.most = max(self.most, self.running)
        try:
            self.go_on.wait(10)
            return self.session.run(outputs, inputs, options)
        finally:
            with self._lock:
                self.running -= 1


def watch(classifier: ViltClassifier) -> dict[Way, Watched]:
    model = classifier._loaded
    watched = {way: Watched(session) for way, session in model.sessions.items()}
    classifier._model = dataclasses.replace(model, sessions=watched)
    return watched


async def ask(classifier: ViltClassifier, question: str = "what color is it?") -> np.ndarray:
    picture = classifier.prepare(decode_image(drawn_circle()))
    scored = await classifier.ask(picture, question, classifier.default_set, Urgency())
    return scored.posterior.probabilities


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.005)


async def test_every_layout_gives_the_same_logits() -> None:
    classifier = await with_both()
    model = classifier._loaded
    items = [model.item(classifier.prepare(decode_image(drawn_circle(c))), np.arange(5, 12)) for c in ("red", "blue")]
    alone = [model.logits([item], WIDE)[0] for item in items]
    for way in (WIDE, NARROW):
        np.testing.assert_allclose(model.logits(items, way), alone, atol=1e-5)
        np.testing.assert_allclose([model.logits([item], way)[0] for item in items], alone, atol=1e-5)
    with ThreadPoolExecutor(4) as pool:
        for row in pool.map(lambda _: model.logits(items, NARROW), range(40)):
            np.testing.assert_allclose(row, alone, atol=1e-5)
    await classifier.stop()


async def test_one_question_alone_goes_wide_and_many_go_narrow_at_once() -> None:
    classifier = await with_both()
    sessions = watch(classifier)
    for _ in range(3):
        await ask(classifier)
    assert (sessions[WIDE].sizes, sessions[NARROW].sizes) == ([1, 1, 1], [])
    sessions[NARROW].go_on.clear()
    asked = [asyncio.ensure_future(ask(classifier)) for _ in range(8)]
    await until(lambda: sessions[NARROW].running == 2)
    assert sessions[WIDE].running == 0
    sessions[NARROW].go_on.set()
    await asyncio.gather(*asked)
    assert sessions[NARROW].most == 2
    assert max(sessions[NARROW].sizes) == 2, "the batch limit is the way's"
    await ask(classifier)
    assert sessions[WIDE].sizes[-1] == 1
    await classifier.stop()


async def test_what_a_question_costs_is_learnt_from_all_threads_at_work() -> None:
    classifier = await with_both()
    before = classifier.pace
    for _ in range(5):
        await ask(classifier)
    alone = classifier.pace
    assert alone.cost_s == before.cost_s, "one question alone shares the machine with nobody"
    assert alone.latency_s != before.latency_s
    await asyncio.gather(*(ask(classifier) for _ in range(24)))
    assert classifier.pace.cost_s != alone.cost_s
    await classifier.stop()


async def test_what_comes_during_a_wide_run_waits_and_then_shares_the_threads() -> None:
    classifier = await with_both()
    sessions = watch(classifier)
    sessions[WIDE].go_on.clear()
    first = asyncio.ensure_future(ask(classifier))
    await until(lambda: sessions[WIDE].running == 1)
    sessions[NARROW].go_on.clear()
    others = [asyncio.ensure_future(ask(classifier)) for _ in range(4)]
    await until(lambda: classifier.waiting == 4)
    await asyncio.sleep(0.02)
    assert sessions[NARROW].running == 0
    sessions[WIDE].go_on.set()
    await first
    await until(lambda: sessions[NARROW].running == 2)
    sessions[NARROW].go_on.set()
    await asyncio.gather(*others)
    assert sessions[NARROW].sizes == [2, 2]
    await classifier.stop()


async def test_a_failed_wide_run_opens_the_runners_again() -> None:
    classifier = await with_both()
    sessions = watch(classifier)
    picture = np.zeros((2, 64, 64), dtype=np.float32)
    with pytest.raises(Exception, match="INVALID_ARGUMENT"):
        await classifier.ask(picture, "what is it?", classifier.default_set, Urgency())
    await until(lambda: classifier._probe is not None and classifier._probe.done())
    sessions[NARROW].go_on.clear()
    asked = [asyncio.ensure_future(ask(classifier)) for _ in range(8)]
    await until(lambda: sessions[NARROW].running == 2)
    sessions[NARROW].go_on.set()
    await asyncio.gather(*asked)
    await classifier.stop()


@pytest.mark.parametrize("layout", ["auto", "wide", "narrow"])
async def test_a_measured_start_keeps_the_sessions_that_it_uses(layout: str) -> None:
    classifier = await started(layout=layout)
    assert set(classifier._loaded.sessions) == set(classifier.layout.ways)
    assert layout == "auto" or classifier.layout.ways == (Way(layout),)
    threads = {
        way: session.get_session_options().intra_op_num_threads for way, session in classifier._loaded.sessions.items()
    }
    assert all(count == (2 if way is WIDE else 1) for way, count in threads.items())
    await classifier.stop()


async def test_for_one_question_nothing_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(*_: object, **__: object) -> None:
        raise AssertionError("it was measured")

    monkeypatch.setattr("service.backends.loading.measure", measured)
    classifier = await started(measured=False)
    assert classifier.layout.ways == (WIDE,)
    assert classifier.pace.latency_s > 0
    await ask(classifier)
    await classifier.stop()
