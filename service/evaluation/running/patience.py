"""Asking again what was refused for now, for as long as there is hope."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from service.errors import Code
from service.evaluation.records import Prediction
from service.evaluation.running.asker import UNREACHABLE, Asker, Later, RunError
from service.scoring.scores import QuestionId

_FIRST_WAIT_S = 0.25
_LONGEST_WAIT_S = 10.0
# A server may ask for more than it can mean.
_LONGEST_RETRY_AFTER_S = 60.0
# A question that so often got no answer within a long deadline will not get one.
_DEADLINES = 3


async def ask_patiently(
    asker: Asker,
    picture: bytes,
    questions: Sequence[tuple[QuestionId, str]],
    *,
    record: Callable[[Prediction], None],
    stopping: asyncio.Event,
    patience_s: float,
) -> None:
    """Ask questions about one picture until each has its prediction.

    Args:
        asker: who is asked.
        picture: its encoded bytes.
        questions: at most `MOST_A_REQUEST`.
        record: given each prediction as it comes.
        stopping: once set, nothing is asked again.
        patience_s: seconds without any answer after which the run is given up.

    Raises:
        RunError: nobody answers, or no question can be asked this way.
    """
    left = list(questions)
    waits = deadlines = 0
    heard = time.monotonic()
    while True:
        outcomes = await asker.ask(picture, left)
        later = [outcome for outcome in outcomes if isinstance(outcome, Later)]
        for outcome in outcomes:
            if isinstance(outcome, Prediction):
                record(outcome)
        if len(later) < len(left):
            waits = deadlines = 0
            heard = time.monotonic()
        elif all(each.code == Code.DEADLINE_EXCEEDED for each in later):
            # The server is there and tries.
            deadlines += 1
            heard = time.monotonic()
        if not later or stopping.is_set():
            return
        given_up = time.monotonic() - heard >= patience_s
        if deadlines >= _DEADLINES or (given_up and await _only_this_fails(asker, later)):
            for each in later:
                record(Prediction(each.question_id, error=each.code, detail=each.detail))
            return
        if given_up:
            raise RunError(f"no answer for {patience_s:g} s ({later[0].code}: {later[0].detail})")
        backoff = min(_FIRST_WAIT_S * 2 ** min(waits, 20), _LONGEST_WAIT_S, patience_s)
        waits += 1
        wanted = {each.question_id for each in later}
        left = [question for question in left if question[0] in wanted]
        asked_to_wait = min(max(each.after_s for each in later), _LONGEST_RETRY_AFTER_S)
        if await _stops_within(stopping, max(backoff, asked_to_wait)):
            return


async def _only_this_fails(asker: Asker, later: Sequence[Later]) -> bool:
    """Whether these questions alone break the connection each time (a picture that a proxy will not pass on)."""
    if any(each.code != UNREACHABLE for each in later):
        return False
    try:
        await asker.models()
    except RunError:
        return False
    return True


async def _stops_within(stopping: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await stopping.wait()
    except TimeoutError:
        return False
    return True
