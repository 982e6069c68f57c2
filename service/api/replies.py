"""The gateway's replies in the contract's shapes."""

from __future__ import annotations

from service.api.problems import problem_document
from service.api.schema import (
    AnswerReply,
    Candidate,
    ImageReply,
    ModelReply,
    Notice,
    ProblemDocument,
    ProblemItem,
    ResultItem,
    RouteReply,
    Timings,
)
from service.errors import VQAError
from service.gateway import Reply

# Beyond these digits a float says nothing about an answer.
_PROBABILITY_DIGITS = 6


def answer_reply(reply: Reply, reply_id: str) -> AnswerReply:
    """One answered question as the contract has it."""
    verdict, times = reply.verdict, reply.times
    return AnswerReply.model_construct(
        id=reply_id,
        answer=verdict.answer,
        confidence=_rounded(verdict.confidence),
        calibrated=verdict.calibrated,
        answerable=verdict.answerable,
        answerability=_rounded(verdict.answerability),
        abstained=verdict.abstained,
        candidates=[
            Candidate.model_construct(answer=c.answer, probability=round(c.probability, _PROBABILITY_DIGITS))
            for c in verdict.candidates
        ],
        off_set=_rounded(verdict.off_set),
        raw_answer=verdict.raw_answer,
        answer_type=verdict.answer_type,
        hints=[],
        backend=reply.route.backend,
        route=RouteReply.model_construct(policy=reply.route.policy, reason=reply.route.reason),
        model=ModelReply.model_construct(
            id=reply.model.name, revision=reply.model.revision, calibration=reply.model.calibration
        ),
        image=ImageReply.model_construct(sha256=reply.image.sha256, width=reply.image.width, height=reply.image.height),
        cached=reply.cached,
        warnings=[Notice.model_construct(code=w.code, message=w.message) for w in reply.warnings],
        timings_ms=Timings.model_construct(
            decode=_ms(times.decode_queue + times.decode),
            queue=_ms(times.queue),
            inference=_ms(times.inference),
            total=_ms(times.total),
        ),
    )


def answers_item(outcome: Reply | VQAError, reply_id: str, index: int) -> ResultItem | ProblemItem:
    """One of many questions: its result, or its problem with the field's place in the list."""
    if isinstance(outcome, VQAError):
        problem = problem_document(outcome.below(f"questions[{index}]"))
        return ProblemItem.model_construct(problem=ProblemDocument.model_construct(**problem))
    return ResultItem.model_construct(result=answer_reply(outcome, f"{reply_id}-{index}"))


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, _PROBABILITY_DIGITS)


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)
