"""Replies of the gateway, or of a server, as predictions: the same numbers either way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from service.evaluation.records import Prediction
from service.evaluation.running.checked import prediction as checked
from service.gateway import Reply, told_ms, told_share
from service.scoring.scores import QuestionId


def from_reply(reply: Reply, question_id: QuestionId) -> Prediction:
    """A gateway's reply as a prediction."""
    verdict, times = reply.verdict, reply.times
    return Prediction(
        question_id,
        answer=verdict.answer,
        confidence=told_share(verdict.confidence),
        calibrated=verdict.calibrated,
        answerable=verdict.answerable,
        answerability=told_share(verdict.answerability),
        abstained=verdict.abstained,
        candidates=tuple((c.answer, told_share(c.probability)) for c in verdict.candidates),
        off_set=told_share(verdict.off_set),
        raw_answer=verdict.raw_answer,
        answer_type=verdict.answer_type,
        backend=reply.route.backend,
        model=reply.model.name,
        revision=reply.model.revision,
        calibration=reply.model.calibration,
        cached=reply.cached,
        warnings=tuple(w.code for w in reply.warnings),
        hints=tuple(h.code for h in reply.hints),
        image_sha256=reply.image.sha256,
        width=reply.image.width,
        height=reply.image.height,
        decode_ms=told_ms(times.decode_queue + times.decode),
        queue_ms=told_ms(times.queue),
        inference_ms=told_ms(times.inference),
        total_ms=told_ms(times.total),
    )


def from_document(reply: Mapping[str, Any], question_id: QuestionId) -> Prediction:
    """A reply of `POST /answers`, as its JSON has it, as a prediction.

    Raises:
        KeyError, TypeError, ValueError: it is not of the contract's shape.
    """
    model, image, times = reply["model"], reply["image"], reply["timings_ms"]
    row = {
        "question_id": question_id,
        "answer": reply["answer"],
        "confidence": reply["confidence"],
        "calibrated": reply["calibrated"],
        "answerable": reply["answerable"],
        "answerability": reply["answerability"],
        "abstained": reply["abstained"],
        "candidates": tuple((c["answer"], c["probability"]) for c in reply["candidates"]),
        "off_set": reply["off_set"],
        "raw_answer": reply["raw_answer"],
        "answer_type": reply["answer_type"],
        "backend": reply["backend"],
        "model": model["id"],
        "revision": model["revision"],
        "calibration": model["calibration"],
        "cached": reply["cached"],
        "warnings": tuple(w["code"] for w in reply["warnings"]),
        "hints": tuple(h["code"] for h in reply["hints"]),
        "image_sha256": image["sha256"],
        "width": image["width"],
        "height": image["height"],
        "decode_ms": times["decode"],
        "queue_ms": times["queue"],
        "inference_ms": times["inference"],
        "total_ms": times["total"],
    }
    return checked(row)
