"""Every question counted once, by what became of it."""

from __future__ import annotations

from service.errors import Code, VQAError
from service.gateway.reply import Reply
from service.telemetry.metrics import Metrics

_FLAGS = {True: "true", False: "false", None: "unknown"}


class Tally:
    """Counts outcomes of questions.

    Args:
        metrics: where they are counted.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def error(self, code: Code, questions: int = 1, *, backend: str = "none") -> None:
        """`questions` that were refused or failed; `backend` is the one that was asked, if any was."""
        self._metrics.questions.labels(backend, code.value).inc(questions)

    def outcome(self, outcome: Reply | VQAError, backend: str) -> None:
        """One that `backend` was asked."""
        if isinstance(outcome, VQAError):
            self.error(outcome.code, backend=backend)
        else:
            self._reply(outcome)

    def _reply(self, reply: Reply) -> None:
        """Answered, unanswerable or abstained, with its flag and its confidence."""
        verdict, backend = reply.verdict, reply.route.backend
        outcome = "abstained" if verdict.abstained else "unanswerable" if verdict.answerable is False else "answered"
        self._metrics.questions.labels(backend, outcome).inc()
        self._metrics.answerable.labels(backend, _FLAGS[verdict.answerable]).inc()
        if verdict.confidence is not None:
            self._metrics.confidence.labels(backend).observe(verdict.confidence)
