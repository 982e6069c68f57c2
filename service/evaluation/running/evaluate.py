"""A whole run: ask every view, resume what was begun, score, and write the outcome."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import service
from service.evaluation.layout import VIEWS
from service.evaluation.records import Prediction
from service.evaluation.running.asker import Asker, InterruptedRunError, RunError
from service.evaluation.running.datasets import DataSet
from service.evaluation.running.fingerprint import Choices, fingerprint
from service.evaluation.running.journal import Journal
from service.evaluation.running.outcome import write_outcome
from service.evaluation.running.run_files import RunFiles
from service.evaluation.running.runner import Pace, ask_view
from service.evaluation.running.steady import SteadyAsker
from service.evaluation.running.stopping import SignalError, Stopping, ended_by_signals
from service.evaluation.running.views import View


class Watcher(Protocol):
    """Shows how far a run is."""

    def begin(self, view: str, total: int, done: int) -> None:
        """A view begins; `done` of its `total` questions were answered earlier."""

    def advance(self, prediction: Prediction) -> None:
        """One more question is done."""

    def end(self) -> None:
        """The view is done, or the run stops."""


@dataclass(frozen=True)
class Plan:
    """All that a run is.

    Attributes:
        data: what is asked; `settled`.
        choices: what else the answers depend on.
        code: which version of the VQA code scores.
        fresh: throw away what an earlier run left in the folder.
    """

    data: DataSet
    views: Sequence[View]
    folder: RunFiles
    pace: Pace
    choices: Choices = field(default_factory=Choices)
    code: str = "2021"
    fresh: bool = False


@dataclass(frozen=True)
class Stopped:
    """A run that a signal stopped; the journals keep what was answered."""

    signal: int
    answered: int
    questions: int


def evaluate(plan: Plan, make_asker: Callable[[], Asker], watcher: Watcher) -> dict[str, Any] | Stopped:
    """Run a plan to its end, or until SIGINT or SIGTERM; the caller holds the folder's lock.

    Returns:
        What `evaluation.json` holds, or where a signal stopped the run.

    Raises:
        RunError: the run cannot begin.
        InterruptedRunError: it cannot go on; what was answered is kept.
        SignalError: a signal came before anything was asked.
        DataError: a file cannot be read or written.
    """
    with ended_by_signals():
        plan.data.rehearse()
    with ExitStack() as stack:
        journals: dict[str, Journal] = {}
        speed: dict[str, dict[str, Any]] = {}
        facts: dict[str, Any] = {}

        async def run() -> int | None:
            async with _started(make_asker) as asker:
                models = await asker.models()
                facts.update(_claim(plan, asker.place, models))
                steady = SteadyAsker(asker, models)
                with Stopping(at_once=watcher.end) as stopping:
                    for view in plan.views:
                        journals[view.name] = stack.enter_context(Journal(plan.folder.journal(view.name)))
                    for view in plan.views:
                        speed[view.name] = await _ask(plan, view, steady, journals[view.name], stopping, watcher)
                        if stopping.signal is not None:
                            break
                    return stopping.signal

        try:
            signal = asyncio.run(run())
        except RunError as error:
            if any(example.question_id in journal for journal in journals.values() for example in plan.data.examples):
                raise InterruptedRunError(str(error)) from error
            raise
        if signal is not None:
            answered = sum(e.question_id in journal for journal in journals.values() for e in plan.data.examples)
            return Stopped(signal, answered, len(plan.data.examples) * len(journals))
        for name in VIEWS:
            # A view that an earlier start asked to its end stays in the outcome.
            if name not in journals and plan.folder.journal(name).exists():
                journal = stack.enter_context(Journal(plan.folder.journal(name)))
                if journal.covers(example.question_id for example in plan.data.examples):
                    journals[name] = journal
        journals = {name: journals[name] for name in VIEWS if name in journals}
        try:
            with ended_by_signals():
                return write_outcome(plan.folder, plan.data, journals, code=plan.code, facts=facts, speed=speed)
        except SignalError as error:
            questions = len(plan.data.examples) * len(journals)
            return Stopped(error.signal, questions, questions)


def _claim(plan: Plan, place: str, models: list[dict[str, Any]]) -> dict[str, Any]:
    """Make the folder this run's; returns the facts of the run."""
    found = fingerprint(plan.data, plan.choices, models)
    facts = {
        "version": service.__version__,
        "place": place,
        "files": {name: str(path) for name, path in plan.data.sources.files.items()},
        "images": None if plan.data.sources.images is None else str(plan.data.sources.images),
        "questions": len(plan.data.examples),
        "concurrency": plan.pace.concurrency,
    }
    plan.folder.claim(found, facts, fresh=plan.fresh)
    return {"fingerprint": found, **facts}


async def _ask(
    plan: Plan, view: View, asker: Asker, journal: Journal, stopping: Stopping, watcher: Watcher
) -> dict[str, Any]:
    """Ask one view; returns how many questions that was now, and how fast."""
    examples = plan.data.examples
    done = sum(example.question_id in journal for example in examples)
    asked = cached = 0

    def advance(prediction: Prediction) -> None:
        nonlocal asked, cached
        asked += 1
        cached += prediction.cached
        watcher.advance(prediction)

    watcher.begin(view.name, len(examples), done)
    started = time.perf_counter()
    try:
        await ask_view(asker, view, examples, journal, pace=plan.pace, stopping=stopping.event, advance=advance)
    finally:
        watcher.end()
    seconds = time.perf_counter() - started
    rate = round(asked / seconds, 1) if asked else None
    return {"questions": asked, "cached": cached, "seconds": round(seconds, 3), "questions_per_second": rate}


@asynccontextmanager
async def _started(make_asker: Callable[[], Asker]) -> AsyncIterator[Asker]:
    asker = make_asker()
    try:
        await asker.start()
        yield asker
    finally:
        await asker.close()
