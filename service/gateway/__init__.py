"""One question's way: check, admit, decode, route, ask, finish. Knows no HTTP and no model's inside."""

from service.gateway.gateway import Gateway
from service.gateway.question import Ask, Picture, Policy, Priority, clean_question
from service.gateway.reply import ImageFacts, Reply, Route, StageTimes

__all__ = [
    "Ask",
    "Gateway",
    "ImageFacts",
    "Picture",
    "Policy",
    "Priority",
    "Reply",
    "Route",
    "StageTimes",
    "clean_question",
]
