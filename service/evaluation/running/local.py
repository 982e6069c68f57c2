"""The gateway in this process, as `vqa serve` has it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from service.errors import VQAError
from service.evaluation.running.asker import MOST_A_REQUEST, TOP_K, Outcome, RunError, problem
from service.evaluation.running.replies import from_reply
from service.gateway import Picture, Question, Reply
from service.gateway.build import build_gateway
from service.scoring.scores import QuestionId
from service.settings import Settings
from service.telemetry.metrics import Metrics

# Whoever waits for a whole data set waits for each of its questions.
_PATIENCE_MS = 3_600_000


class LocalAsker:
    """Asks a gateway of its own.

    Args:
        settings: as for `vqa serve`; deadlines are set aside, and as much is admitted as is asked at once.
        concurrency: requests that are under way at once.

    Raises:
        ManifestError, SettingsError: as `build_gateway`.
    """

    place = "this process"

    def __init__(self, settings: Settings, concurrency: int) -> None:
        at_once = max(settings.max_in_flight, concurrency * MOST_A_REQUEST)
        changes = {"max_in_flight": at_once, "max_timeout_ms": _PATIENCE_MS}
        self._gateway = build_gateway(settings.model_copy(update=changes), Metrics())

    async def start(self) -> None:
        """Load the model.

        Raises:
            RunError: it did not load.
        """
        try:
            await self._gateway.start()
        except ExceptionGroup as group:
            raise RunError(str(group.exceptions[0])) from group

    async def models(self) -> list[dict[str, Any]]:
        """The models of the gateway's backends."""
        return [
            {"id": b.info.name, "backend": b.name, "revision": b.info.revision, "calibration": b.info.calibration}
            for b in self._gateway.backends.values()
        ]

    async def ask(self, picture: bytes, questions: Sequence[tuple[QuestionId, str]]) -> list[Outcome]:
        """Ask about one picture, decoded once; as `Asker.ask`."""
        asked = [Question(text, top_k=TOP_K, priority="batch") for _, text in questions]
        try:
            replies = await self._gateway.answer_all(Picture(lambda: picture), asked, _PATIENCE_MS)
        except VQAError as error:
            return [_problem(question_id, error) for question_id, _ in questions]
        return [
            from_reply(reply, question_id) if isinstance(reply, Reply) else _problem(question_id, reply)
            for (question_id, _), reply in zip(questions, replies, strict=True)
        ]

    async def close(self) -> None:
        """Stop the gateway."""
        await self._gateway.stop()


def _problem(question_id: QuestionId, error: VQAError) -> Outcome:
    return problem(question_id, error.code.value, error.detail, error.retry_after_s)
