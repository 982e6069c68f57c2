"""How each contestant is asked, and its replies: whole requests as bytes, in the most compact form that it takes.

Nobody gets base64 where binary will do. The `Host` is the same for all ports, so that requests are made once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import quote

import msgpack

from loadtest.peers.answer import Answer
from loadtest.peers.given import HOST, PATIENCE_S
from loadtest.questions import post


@dataclass(frozen=True)
class Protocol:
    """One way to ask.

    Attributes:
        ask: a request of a picture and a question; with the deadline in milliseconds, where it can be told.
        answer: what a 200's body says.
        ask_many: a request of a picture and many questions, where the server's own interface has one.
        answers: what a 200's body to that says.
    """

    ask: Callable[[bytes, str, int | None], bytes]
    answer: Callable[[bytes], Answer]
    ask_many: Callable[[bytes, Sequence[str]], bytes] | None = None
    answers: Callable[[bytes], list[Answer]] | None = None


def http(path: str, body: bytes, content_type: str, **headers: object) -> bytes:
    """A POST request; `_` in a header's name stands for `-`."""
    lines = [f"POST {path} HTTP/1.1", f"Host: {HOST}", f"Content-Type: {content_type}", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def plain(body: bytes) -> Answer:
    """A reply as the peers' servers here give it."""
    reply = json.loads(body)
    return Answer(reply["answer"], reply["score"])


def _ours(reply: dict[str, Any]) -> Answer:
    # `raw_answer` is the label; an embedded model's service abstains on what it does not know, and still says it.
    return Answer(reply["raw_answer"], reply["candidates"][0]["probability"])


def _ask_ours(picture: bytes, question: str, timeout_ms: int | None) -> bytes:
    return post(HOST, picture, question=question, **({} if timeout_ms is None else {"timeout_ms": timeout_ms}))


def _many_ours(picture: bytes, questions: Sequence[str]) -> bytes:
    return post(HOST, picture, "/answers", questions=json.dumps(list(questions)), timeout_ms=1000 * PATIENCE_S)


OURS = Protocol(
    _ask_ours,
    lambda body: _ours(json.loads(body)),
    _many_ours,
    lambda body: [_ours(one["result"]) for one in json.loads(body)["results"]],
)


def _multipart(path: str, picture: bytes, question: str, _: int | None) -> bytes:
    return post(HOST, picture, path, question=question)


def multipart(path: str) -> Protocol:
    """A form with the file `image` and the field `question`."""
    return Protocol(partial(_multipart, path), plain)


def _raw(path: str, picture: bytes, question: str, _: int | None) -> bytes:
    return http(f"{path}?question={quote(question)}", picture, "image/jpeg")


def raw(path: str) -> Protocol:
    """The picture as the body, the question in the query."""
    return Protocol(partial(_raw, path), plain)


def _raw_with_header(path: str, picture: bytes, question: str, _: int | None) -> bytes:
    return http(path, picture, "image/jpeg", X_Question=quote(question))


def raw_with_header(path: str) -> Protocol:
    """The picture as the body, the question in a header."""
    return Protocol(partial(_raw_with_header, path), plain)


def _msgpack(path: str, picture: bytes, question: str, _: int | None) -> bytes:
    return http(path, msgpack.packb({"image": picture, "question": question}), "application/msgpack")


def _unpacked(body: bytes) -> Answer:
    reply = msgpack.unpackb(body)
    return Answer(reply["answer"], reply["score"])


def packed(path: str) -> Protocol:
    """Both in msgpack."""
    return Protocol(partial(_msgpack, path), _unpacked)
