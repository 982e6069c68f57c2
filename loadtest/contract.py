"""What every 200 of `POST /answer` keeps to, whatever was asked: for checking replies under load."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

KEYS = {
    "id", "answer", "confidence", "calibrated", "answerable", "answerability", "abstained", "candidates", "off_set",
    "raw_answer", "answer_type", "hints", "backend", "route", "model", "image", "cached", "warnings", "timings_ms",
}  # fmt: skip


def fault(reply: Mapping[str, Any], *, top_k: int = 5, may_abstain: bool = True) -> str | None:
    """What is wrong with a reply; None where nothing is.

    Args:
        reply: the decoded JSON.
        top_k: most candidates that were asked for.
        may_abstain: whether something in the question (`max_risk`, no known word) lets the service abstain.
    """
    if missing := KEYS - reply.keys():
        return f"the reply lacks {', '.join(sorted(missing))}"
    if reply["abstained"] != (reply["answer"] is None):
        return "an answer is missing exactly where the service abstained"
    if reply["abstained"] and not may_abstain:
        return "abstained without a reason"
    if reply["answerable"] is False and not reply["abstained"] and reply["answer_type"] != "unanswerable":
        return "not answerable, and yet answered"
    if reply["calibrated"] != (reply["confidence"] is not None):
        return "a confidence is given exactly where it is calibrated"
    candidates = reply["candidates"]
    probabilities = [candidate["probability"] for candidate in candidates]
    if not candidates or len(candidates) > top_k:
        return f"{len(candidates)} candidates, not 1 to {top_k}"
    if probabilities != sorted(probabilities, reverse=True):
        return "the candidates are not in the order of their probability"
    numbers = [*probabilities, reply["confidence"], reply["answerability"], reply["off_set"]]
    if not all(0 <= number <= 1 for number in numbers if number is not None):
        return "a probability is outside 0 and 1"
    if min(reply["timings_ms"].values()) < 0:
        return "a time is negative"
    return None
