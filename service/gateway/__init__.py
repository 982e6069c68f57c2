"""One question's way: check, admit, decode, route, ask, finish. Knows no HTTP and no model's inside."""

from service.gateway.gateway import Gateway
from service.gateway.question import Caller, Freshness, Picture, Question, clean_text
from service.gateway.reply import ImageFacts, Reply, Route, StageTimes, told_ms, told_share

__all__ = [
    "Caller",
    "Freshness",
    "Gateway",
    "ImageFacts",
    "Picture",
    "Question",
    "Reply",
    "Route",
    "StageTimes",
    "clean_text",
    "told_ms",
    "told_share",
]
