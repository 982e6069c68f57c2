"""One view of a data set asked from beginning to end, or from where an earlier run stopped."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from service.errors import VQAError
from service.evaluation.records import Example, Prediction
from service.evaluation.running.asker import MOST_A_REQUEST, Asker
from service.evaluation.running.journal import Journal
from service.evaluation.running.patience import ask_patiently
from service.evaluation.running.views import View

# What is under way when the run is to stop gets so long.
GRACE_S = 10.0

UNREADABLE = "image_unreadable"
"""The code of a picture whose file cannot be read; not one of the service's own."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How a run asks: requests at once, and the seconds for which it bears with nobody answering."""

    concurrency: int
    patience_s: float = 60.0


async def ask_view(
    asker: Asker,
    view: View,
    examples: Sequence[Example],
    journal: Journal,
    *,
    pace: Pace,
    stopping: asyncio.Event,
    advance: Callable[[Prediction], None] = lambda _: None,
) -> None:
    """Ask what the journal does not hold yet, and what failed.

    Questions about one picture are asked together, in the order of the first of them; a picture is read when its turn
    comes.

    Args:
        asker: who answers; started.
        view: what is shown.
        examples: the questions.
        journal: where the answers go.
        pace: how many at once, and how patiently.
        stopping: once set, nothing further is begun, and what is under way gets `GRACE_S` seconds.
        advance: told each prediction once it is in the journal.

    Raises:
        RunError: the run cannot go on.
        DataError: the journal cannot be written.
    """
    parts = _parts([example for example in examples if example.question_id not in journal])

    def record(prediction: Prediction) -> None:
        journal.append(prediction)
        advance(prediction)

    async def work() -> None:
        for path, part in parts:
            if stopping.is_set():
                return
            try:
                picture = await asyncio.to_thread(view.picture, path)
            except (VQAError, OSError) as error:
                for example in part:
                    record(_unseen(example, error))
                continue
            questions = [(example.question_id, example.question) for example in part]
            await ask_patiently(asker, picture, questions, record=record, stopping=stopping, patience_s=pace.patience_s)

    workers = [asyncio.create_task(work()) for _ in range(pace.concurrency)]
    stop = asyncio.create_task(stopping.wait())
    try:
        await _until_done(workers, stop)
    finally:
        for task in (*workers, stop):
            task.cancel()
        await asyncio.gather(*workers, stop, return_exceptions=True)


async def _until_done(workers: list[asyncio.Task[None]], stop: asyncio.Task[bool]) -> None:
    """Wait for all workers, or for the first error among them, or for the end of the one grace after `stop`."""
    left = set(workers)
    deadline: float | None = None
    while left:
        if stop.done() and deadline is None:
            deadline = time.monotonic() + GRACE_S
        waiting = {*left, stop} if deadline is None else left
        timeout = None if deadline is None else max(0.0, deadline - time.monotonic())
        done, _ = await asyncio.wait(waiting, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        if not done:
            return
        for task in done - {stop}:
            task.result()
        left -= done


def _parts(examples: Sequence[Example]) -> Iterator[tuple[Path, list[Example]]]:
    """The questions by picture, so many at a time as one request takes."""
    by_picture: dict[Path, list[Example]] = defaultdict(list)
    for example in examples:
        by_picture[example.image].append(example)
    for path, group in by_picture.items():
        for start in range(0, len(group), MOST_A_REQUEST):
            yield path, group[start : start + MOST_A_REQUEST]


def _unseen(example: Example, error: VQAError | OSError) -> Prediction:
    """A question whose picture could not be shown."""
    if isinstance(error, VQAError):
        return Prediction(example.question_id, error=error.code.value, detail=error.detail)
    return Prediction(example.question_id, error=UNREADABLE, detail=error.strerror or str(error))
