"""One run, one model: a server that is replaced half way by another revision must not mix its answers in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from service.evaluation.records import Prediction
from service.evaluation.running.asker import Asker, Outcome, RunError
from service.scoring.scores import QuestionId


class SteadyAsker:
    """Asks another asker and refuses answers of models that it did not have when the run began.

    Args:
        asker: who is asked; started.
        models: what it said of its models, as `Asker.models`.
    """

    def __init__(self, asker: Asker, models: Sequence[Mapping[str, Any]]) -> None:
        self._asker = asker
        self._known = {(model["id"], model["revision"], model["calibration"]) for model in models}
        self.place = asker.place

    async def start(self) -> None:
        """Nothing: it is started."""

    async def models(self) -> list[dict[str, Any]]:
        """The models that answer now."""
        return await self._asker.models()

    async def ask(self, picture: bytes, questions: Sequence[tuple[QuestionId, str]]) -> list[Outcome]:
        """As `Asker.ask`.

        Raises:
            RunError: also where another model answers.
        """
        outcomes = await self._asker.ask(picture, questions)
        for outcome in outcomes:
            if not isinstance(outcome, Prediction) or outcome.error is not None:
                continue
            model = (outcome.model, outcome.revision, outcome.calibration)
            if model not in self._known:
                raise RunError(
                    f"{self.place} answers with another model than when the run began: {outcome.model}, revision "
                    f"{outcome.revision}, calibration {outcome.calibration}"
                )
        return outcomes

    async def close(self) -> None:
        """Nothing: whoever started it closes it."""
