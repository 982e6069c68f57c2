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
from service.gateway import Reply, told_ms, told_share


def answer_reply(reply: Reply, reply_id: str) -> AnswerReply:
    """One answered question as the contract has it."""
    verdict, times = reply.verdict, reply.times
    return AnswerReply.model_construct(
        id=reply_id,
        answer=verdict.answer,
        confidence=told_share(verdict.confidence),
        calibrated=verdict.calibrated,
        answerable=verdict.answerable,
        answerability=told_share(verdict.answerability),
        abstained=verdict.abstained,
        candidates=[
            Candidate.model_construct(answer=c.answer, probability=told_share(c.probability))
            for c in verdict.candidates
        ],
        off_set=told_share(verdict.off_set),
        raw_answer=verdict.raw_answer,
        answer_type=verdict.answer_type,
        hints=[Notice.model_construct(code=h.code, message=h.message) for h in reply.hints],
        backend=reply.route.backend,
        route=RouteReply.model_construct(policy=reply.route.policy, reason=reply.route.reason),
        model=ModelReply.model_construct(
            id=reply.model.name, revision=reply.model.revision, calibration=reply.model.calibration
        ),
        image=ImageReply.model_construct(sha256=reply.image.sha256, width=reply.image.width, height=reply.image.height),
        cached=reply.cached,
        warnings=[Notice.model_construct(code=w.code, message=w.message) for w in reply.warnings],
        timings_ms=Timings.model_construct(
            decode=told_ms(times.decode_queue + times.decode),
            queue=told_ms(times.queue),
            inference=told_ms(times.inference),
            total=told_ms(times.total),
        ),
    )


def answers_item(outcome: Reply | VQAError, reply_id: str, index: int) -> ResultItem | ProblemItem:
    """One of many questions: its result, or its problem with the field's place in the list."""
    if isinstance(outcome, VQAError):
        problem = problem_document(outcome.below(f"questions[{index}]"))
        return ProblemItem.model_construct(problem=ProblemDocument.model_construct(**problem))
    return ResultItem.model_construct(result=answer_reply(outcome, f"{reply_id}-{index}"))
