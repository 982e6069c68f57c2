"""A server at a URL, asked with `POST /answers`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import httpx

from service.errors import Code
from service.evaluation.running.asker import TOP_K, UNREACHABLE, Later, Outcome, RunError, problem
from service.evaluation.running.replies import from_document
from service.scoring.scores import QuestionId

_TIMEOUT_MS = 120_000
# Beyond the deadline that the server keeps: the way there and back.
_SLACK_S = 30.0
# What a proxy in front of the server says of it.
_AWAY = (HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT)


class ServerAsker:
    """Asks a server.

    Args:
        url: its address, as `vqa serve` prints it.
        key: the API key, where the server wants one.
        policy: the routing policy to ask for; None leaves it to the server.
        model: the model to ask for; None leaves it to the server.
        concurrency: requests that are under way at once.
    """

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        policy: str | None = None,
        model: str | None = None,
        concurrency: int = 4,
    ) -> None:
        _check_address(url)
        self.place = url.rstrip("/")
        self._options = {"top_k": str(TOP_K), "priority": "batch"}
        self._options |= {name: value for name, value in (("policy", policy), ("model", model)) if value is not None}
        self._timeout_ms = _TIMEOUT_MS
        self._most = 0
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        limits = httpx.Limits(max_connections=concurrency, max_keepalive_connections=concurrency)
        timeout = httpx.Timeout(_TIMEOUT_MS / 1000 + _SLACK_S, connect=10.0)
        try:
            self._client = httpx.AsyncClient(base_url=self.place, headers=headers, limits=limits, timeout=timeout)
        except (httpx.InvalidURL, ValueError) as error:
            raise RunError(f"{url!r} is no address of a server: {error}") from error

    async def start(self) -> None:
        """Nothing: the server runs already."""

    async def models(self) -> list[dict[str, Any]]:
        """What `GET /models` says.

        Raises:
            RunError: there is no usable reply.
        """
        try:
            response = await self._client.get("/models")
            response.raise_for_status()
            served = [
                {name: model[name] for name in ("id", "backend", "revision", "calibration")}
                for model in response.json()["models"]
            ]
        except httpx.HTTPStatusError as error:
            what = f"it replied to GET /models with status {error.response.status_code}"
            raise RunError(f"no usable reply from {self.place}: {what}") from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise RunError(f"no usable reply from {self.place}: {_reason(error)}") from error
        except (KeyError, TypeError, ValueError) as error:
            raise RunError(f"no usable reply from {self.place}: it is no VQA service's") from error
        if not served:
            raise RunError(f"{self.place} serves no model")
        return served

    async def ask(self, picture: bytes, questions: Sequence[tuple[QuestionId, str]]) -> list[Outcome]:
        """Ask about one picture, sent once (in parts where the server takes fewer at once); as `Asker.ask`."""
        return await self._in_parts(picture, questions, frozenset())

    async def _in_parts(
        self, picture: bytes, questions: Sequence[tuple[QuestionId, str]], adapted: frozenset[str]
    ) -> list[Outcome]:
        """Ask within the limits that are known; `adapted` names those that the server taught by refusing."""
        most = self._most or len(questions)
        outcomes: list[Outcome] = []
        for start in range(0, len(questions), most):
            outcomes += await self._ask(picture, questions[start : start + most], adapted)
        return outcomes

    async def _ask(
        self, picture: bytes, questions: Sequence[tuple[QuestionId, str]], adapted: frozenset[str]
    ) -> list[Outcome]:
        timeout_ms = self._timeout_ms
        fields = {"questions": json.dumps([text for _, text in questions]), "timeout_ms": str(timeout_ms)}
        try:
            response = await self._client.post("/answers", files={"image": picture}, data=self._options | fields)
        except httpx.RequestError as error:
            detail = f"no reply from {self.place}: {_reason(error)}"
            return [Later(question_id, UNREACHABLE, detail) for question_id, _ in questions]
        try:
            document = response.json()
            if response.status_code == HTTPStatus.OK:
                items = document["results"]
                return [_outcome(q, item) for (q, _), item in zip(questions, items, strict=True)]
            code, detail = str(document["code"]), str(document["detail"])
        except (KeyError, TypeError, ValueError) as error:
            if response.status_code in _AWAY:
                detail = f"{self.place} replied with status {response.status_code}"
                return [Later(question_id, UNREACHABLE, detail, _retry_after(response)) for question_id, _ in questions]
            raise RunError(
                f"no usable reply from {self.place} (status {response.status_code}): it is no VQA service's"
            ) from error
        refused = self._adapt(document, {"timeout_ms": timeout_ms, "questions": len(questions)})
        if refused is not None and refused not in adapted:
            return await self._in_parts(picture, questions, adapted | {refused})
        if response.status_code in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE):
            return [Later(question_id, code, detail, _retry_after(response)) for question_id, _ in questions]
        return [problem(question_id, code, detail) for question_id, _ in questions]

    def _adapt(self, document: dict[str, Any], sent: Mapping[str, int]) -> str | None:
        """Take over a limit by which the server refused a request; returns the field, None where it is no limit.

        Args:
            document: the refusal.
            sent: what the request held of the fields that can be lowered.
        """
        limit, field = document.get("limit"), document.get("field")
        if document["code"] != Code.INVALID_FIELD or not isinstance(limit, int) or isinstance(limit, bool):
            return None
        if not isinstance(field, str) or not 1 <= limit < sent.get(field, 0):
            return None
        if field == "timeout_ms":
            self._timeout_ms = limit
        else:
            self._most = limit
        return field

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()


def _check_address(url: str) -> None:
    """Refuse what is no address of a server.

    Raises:
        RunError: what is wrong with it.
    """
    try:
        parts = urlsplit(url)
        wrong = "" if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 else "no host and port"
    except ValueError as error:
        wrong = str(error)
    if wrong:
        raise RunError(f"{url!r} is no address of a server ({wrong}); it must be like http://127.0.0.1:8000")


def _outcome(question_id: QuestionId, item: dict[str, Any]) -> Outcome:
    if "result" in item:
        return from_document(item["result"], question_id)
    document = item["problem"]
    return problem(question_id, str(document["code"]), str(document["detail"]), document.get("retry_after_s"))


def _retry_after(response: httpx.Response) -> float:
    """Seconds that the server asks to wait; 0 where it says nothing that is understood."""
    text = response.headers.get("Retry-After", "")
    return float(text) if text.isascii() and text.isdigit() else 0.0


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__
