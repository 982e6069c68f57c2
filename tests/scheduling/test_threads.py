"""The pool of decoding threads."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from service.errors import VQAError
from service.scheduling import WorkerThreads, yield_to_event_loop


async def until(condition: object, seconds: float = 2.0) -> None:
    """Wait until the callable is true."""
    assert callable(condition)
    for _ in range(int(seconds / 0.005)):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it did not come true")


def hold_the_event_loop(condition: Callable[[], bool]) -> None:
    """Until the condition is true, and a while longer, the event loop does not come round."""
    until_then = time.monotonic() + 5
    while not condition() and time.monotonic() < until_then:
        time.sleep(0.01)
    time.sleep(0.1)


async def test_results_and_errors_come_back() -> None:
    pool = WorkerThreads(2)
    assert await pool.run(lambda: 1 + 2) == 3

    def fail() -> None:
        raise KeyError("ours")

    with pytest.raises(KeyError, match="ours"):
        await pool.run(fail)
    assert (pool.queued, pool.running) == (0, 0)
    await pool.close()


async def test_threads_are_named_and_bounded() -> None:
    pool = WorkerThreads(2, name="picture")
    gate, names = threading.Event(), set()

    def work() -> None:
        names.add(threading.current_thread().name)
        gate.wait(5)

    jobs = [asyncio.create_task(pool.run(work)) for _ in range(5)]
    await until(lambda: pool.running == 2)
    assert (pool.queued, pool.running, pool.threads) == (3, 2, 2)
    gate.set()
    await asyncio.gather(*jobs)
    assert (pool.queued, pool.running) == (0, 0)
    assert len(names) == 2
    assert all(name.startswith("picture") for name in names)
    await pool.close()


async def test_a_job_whose_waiter_left_before_its_start_never_runs() -> None:
    pool = WorkerThreads(1)
    gate, ran = threading.Event(), []
    first = asyncio.create_task(pool.run(lambda: gate.wait(5)))
    await until(lambda: pool.running == 1)
    waiting = [asyncio.create_task(pool.run(partial(ran.append, number))) for number in range(4)]
    await until(lambda: pool.queued == 4)
    waiting[1].cancel()
    waiting[2].cancel()
    await until(lambda: pool.queued == 2)
    gate.set()
    await first
    await asyncio.gather(*waiting, return_exceptions=True)
    assert ran == [0, 3]
    assert (pool.queued, pool.running) == (0, 0)
    await pool.close()


async def test_threads_run_ahead_of_the_event_loop_but_not_far() -> None:
    pool, done = WorkerThreads(2), []
    jobs = [asyncio.create_task(pool.run(partial(done.append, number))) for number in range(20)]
    await asyncio.sleep(0)
    hold_the_event_loop(lambda: len(done) >= 3)
    assert 3 <= len(done) <= 4, "one more than there are threads, and what the other had begun"
    await asyncio.gather(*jobs)
    assert sorted(done) == list(range(20))
    assert (pool.queued, pool.running) == (0, 0)
    await pool.close()


async def test_a_running_job_goes_on_when_its_waiter_leaves_and_is_counted_until_its_end() -> None:
    pool = WorkerThreads(1)
    gate, done = threading.Event(), []

    def work() -> None:
        gate.wait(5)
        done.append(True)

    task = asyncio.create_task(pool.run(work))
    await until(lambda: pool.running == 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (pool.queued, pool.running) == (0, 1)
    gate.set()
    await until(lambda: pool.running == 0)
    assert done == [True]
    await pool.close()


async def test_shutdown_drops_what_waits_and_takes_nothing_more() -> None:
    pool = WorkerThreads(1)
    gate, ran = threading.Event(), []
    running = asyncio.create_task(pool.run(lambda: gate.wait(5)))
    await until(lambda: pool.running == 1)
    waiting = asyncio.create_task(pool.run(partial(ran.append, 1)))
    await until(lambda: pool.queued == 1)
    closing = asyncio.create_task(pool.close())
    await asyncio.sleep(0)
    gate.set()
    assert await running is True
    with pytest.raises(VQAError):
        await waiting
    await closing
    assert ran == []
    with pytest.raises(VQAError):
        await pool.run(partial(ran.append, 2))
    assert (pool.queued, pool.running) == (0, 0)


@pytest.mark.parametrize("threads", [0, -1])
def test_a_pool_needs_a_thread(threads: int) -> None:
    with pytest.raises(ValueError, match="at least one"):
        WorkerThreads(threads)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a priority for each thread")
async def test_the_pool_gives_way_to_the_event_loop_and_nobody_else_does() -> None:
    def niceness() -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    def with_a_thread_of_its_own() -> tuple[int, int]:
        with ThreadPoolExecutor(1) as inner:
            return niceness(), inner.submit(niceness).result()

    before, pool = niceness(), WorkerThreads(1)
    own, started = await pool.run(with_a_thread_of_its_own)
    assert own > before
    assert started == own, "threads that a library starts there inherit it"
    assert niceness() == before
    await pool.close()


def test_a_system_that_refuses_is_put_up_with(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "setpriority", refuse)
    yield_to_event_loop()
