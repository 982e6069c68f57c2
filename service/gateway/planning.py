"""What a request asks for, made sure of before any work: texts, options, ways, deadlines."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Sequence
from typing import TypeVar

from service.errors import Code, VQAError
from service.gateway.answering import Planned
from service.gateway.question import Question, clean_text
from service.gateway.router import AnswerSets, Router
from service.settings import Settings

T = TypeVar("T")

# Building a set takes some 10 µs a choice; more than this many would be felt by everybody else on the event loop.
_MANY_CHOICES = 256


class Planner:
    """Checks questions and plans their ways.

    Args:
        settings: limits and deadlines.
        router: knows who answers what.
    """

    def __init__(self, settings: Settings, router: Router) -> None:
        self._settings = settings
        self._router = router

    async def plan_all(self, questions: Sequence[Question | VQAError]) -> list[Planned | VQAError]:
        """A plan or an error for each question, in order."""

        def work() -> list[Planned | VQAError]:
            sets = AnswerSets()
            return [q if isinstance(q, VQAError) else self._plan(q, sets) for q in questions]

        choices = sum(len(q.choices) for q in questions if isinstance(q, Question) and q.choices)
        return await _off_loop(choices, work)

    async def check_options(self, question: Question) -> None:
        """Refuse options that no question could be asked with; the text is not looked at.

        Raises:
            VQAError: as `Router.plan`.
        """
        await _off_loop(len(question.choices or ()), lambda: self._router.plan(question, AnswerSets()))

    def timeout_ms(self, wanted: int | None) -> int:
        """The deadline in milliseconds, from now.

        Raises:
            VQAError: `invalid_field`.
        """
        if wanted is None:
            return self._settings.default_timeout_ms
        limit = self._settings.max_timeout_ms
        if wanted > limit:
            detail = f"The longest deadline is {limit} ms."
            raise VQAError(Code.INVALID_FIELD, detail, field="timeout_ms", extra={"limit": limit})
        return wanted

    def _plan(self, question: Question, sets: AnswerSets) -> Planned | VQAError:
        try:
            text = clean_text(question.text, self._settings.max_question_chars)
            cleaned = question if text == question.text else dataclasses.replace(question, text=text)
            return Planned(cleaned, self._router.plan(question, sets))
        except VQAError as error:
            return error


async def _off_loop(choices: int, work: Callable[[], T]) -> T:
    """Do `work` in a thread if it concerns many choices, else here and now.

    Not in the decoding threads: a request that may have to be refused does not stand behind pictures that wait.
    """
    return await asyncio.to_thread(work) if choices > _MANY_CHOICES else work()
