"""The OpenAPI document: the routes read their bodies themselves, so what they take is described here."""

from __future__ import annotations

from typing import Any, get_args

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.responses import PlainTextResponse

import service
from service.api.examples import (
    ANSWER_EXAMPLE,
    ANSWERS_EXAMPLE,
    MODELS_EXAMPLE,
    NOT_READY_EXAMPLE,
    PROBLEM_EXAMPLES,
    READY_EXAMPLE,
    REQUEST_ID,
)
from service.api.problems import PROBLEM_TYPE
from service.api.schema import (
    AnswerReply,
    AnswerRequest,
    AnswersReply,
    AnswersRequest,
    Live,
    Models,
    ProblemDocument,
    Ready,
)
from service.errors import PROBLEMS, Code
from service.gateway.question import MAX_TOP_K
from service.settings import Policy, Priority

_REF = "#/components/schemas/{model}"
# One red pixel.
_PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
)

# What only unknown paths and methods, oversized heads and clients that have gone can meet belongs to no route.
_OTHER_CODES = {Code.NOT_FOUND, Code.METHOD_NOT_ALLOWED, Code.HEAD_TOO_LARGE, Code.CLIENT_CLOSED_REQUEST}


def documented(route: str) -> dict[str, Any]:
    """The keyword arguments with which a route is declared: its replies, their examples, and its body."""
    return _ROUTES[route]


def install_openapi(app: FastAPI) -> None:
    """Make `app.openapi()` give the whole document, request schemas included."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = get_openapi(
                title="VQA service", version=service.__version__, description=_DESCRIPTION, routes=app.routes
            )
            models: list[tuple[type[BaseModel], Any]] = [
                (model, "validation") for model in (AnswerRequest, AnswersRequest, ProblemDocument)
            ]
            _, schemas = models_json_schema(models, ref_template=_REF)
            components = document.setdefault("components", {})
            components.setdefault("schemas", {}).update(schemas["$defs"])
            components["securitySchemes"] = _SECURITY_SCHEMES
            app.openapi_schema = document
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


_DESCRIPTION = (
    "Answers questions about pictures. "
    "Errors are RFC 9457 problem documents with a stable `code` and the field at fault."
)


def _example(value: Any, description: str) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"example": value}}}


def _problems(codes: set[Code]) -> dict[int | str, dict[str, Any]]:
    """One entry a status, with an example for each code that has it."""
    by_status: dict[int | str, dict[str, Any]] = {}
    for code in Code:
        if code not in codes:
            continue
        status, title = PROBLEMS[code]
        entry = by_status.setdefault(
            int(status),
            {
                "description": title,
                "content": {PROBLEM_TYPE: {"schema": {"$ref": _REF.format(model="ProblemDocument")}, "examples": {}}},
            },
        )
        detail, field = PROBLEM_EXAMPLES[code]
        example = {
            "type": f"urn:vqa:problem:{code.value}",
            "title": title,
            "status": int(status),
            "detail": detail,
            "code": code.value,
            "request_id": REQUEST_ID,
        }
        if field is not None:
            example["field"] = field
        if code is Code.UNAUTHORIZED:
            entry["headers"] = {"WWW-Authenticate": {"schema": {"type": "string"}, "description": "`Bearer`."}}
        if int(status) == 503:
            entry["headers"] = {"Retry-After": {"schema": {"type": "integer"}, "description": "Whole seconds."}}
            example["retry_after_s"] = 1
        entry["content"][PROBLEM_TYPE]["examples"][code.value] = {"value": example}
    return by_status


_SECURITY_SCHEMES: dict[str, Any] = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "A key, on a server that knows keys."},
    "key": {"type": "apiKey", "in": "header", "name": "X-API-Key", "description": "The same key."},
}
# The empty one: a server without keys wants none.
_SECURITY: list[dict[str, list[str]]] = [{}, {"bearer": []}, {"key": []}]

_FILE = {"type": "string", "format": "binary", "contentMediaType": "application/octet-stream"}
_FORM_OPTIONS: dict[str, Any] = {
    "choices": {
        "type": "array",
        "items": {"type": "string"},
        "description": "Repeat the field, or send a JSON list, or one text with commas.",
    },
    "answer_set": {"type": "string"},
    "policy": {"type": "string", "enum": list(get_args(Policy))},
    "model": {"type": "string"},
    "max_risk": {"type": "number", "minimum": 0, "maximum": 1},
    "top_k": {"type": "integer", "minimum": 1, "maximum": MAX_TOP_K},
    "timeout_ms": {"type": "integer", "minimum": 1},
    "priority": {"type": "string", "enum": list(get_args(Priority))},
}
_FORM_PICTURES: dict[str, Any] = {
    "image": _FILE,
    "image_base64": {"type": "string", "description": "Base64 or a data URL, in place of the file."},
}
_FORM_QUESTION: dict[str, Any] = {"question": {"type": "string"}}
_FORM_QUESTIONS: dict[str, Any] = {
    "question": {"type": "array", "items": {"type": "string"}, "minItems": 1, "description": "Repeat the field."},
    "questions": {"type": "string", "description": "A JSON list, in place of the repeated field."},
}


def _form(questions: dict[str, Any]) -> dict[str, Any]:
    """A form: one of the ways to send a picture with one of the ways to ask, and the options."""
    ways = [
        {
            "type": "object",
            "properties": {picture: picture_schema, question: question_schema, **_FORM_OPTIONS},
            "required": [picture, question],
            "additionalProperties": False,
        }
        for picture, picture_schema in _FORM_PICTURES.items()
        for question, question_schema in questions.items()
    ]
    return {"schema": {"anyOf": ways}}


def _body(model: str, json_example: dict[str, Any], form: dict[str, Any]) -> dict[str, Any]:
    content = {
        "application/json": {"schema": {"$ref": _REF.format(model=model)}, "example": json_example},
        "multipart/form-data": form,
    }
    return {"requestBody": {"required": True, "content": content}, "security": _SECURITY}


_QUESTION_PROBLEMS = _problems(set(Code) - _OTHER_CODES)
_INTERNAL = _problems({Code.INTERNAL_ERROR})

_ROUTES: dict[str, dict[str, Any]] = {
    "answer": {
        "response_model": AnswerReply,
        "responses": {200: _example(ANSWER_EXAMPLE, "The answer"), **_QUESTION_PROBLEMS},
        "openapi_extra": _body(
            "AnswerRequest",
            {"image": _PIXEL, "question": "what color is the shape?"},
            _form(_FORM_QUESTION),
        ),
    },
    "answers": {
        "response_model": AnswersReply,
        "responses": {
            200: _example(ANSWERS_EXAMPLE, "A result or a problem for each question"),
            **_QUESTION_PROBLEMS,
        },
        "openapi_extra": _body(
            "AnswersRequest",
            {
                "image": _PIXEL,
                "questions": ["what color is the shape?", {"question": "is it red?", "answer_set": "yes-no"}],
            },
            _form(_FORM_QUESTIONS),
        ),
    },
    "livez": {
        "response_model": Live,
        "responses": {200: _example({"status": "ok"}, "The process runs"), **_INTERNAL},
    },
    "readyz": {
        "response_model": Ready,
        "responses": {
            200: _example(READY_EXAMPLE, "Questions are answered"),
            503: {
                "model": Ready,
                **_example(NOT_READY_EXAMPLE, "Starting, draining, or without a usable backend"),
            },
            **_INTERNAL,
        },
    },
    "models": {
        "response_model": Models,
        "responses": {200: _example(MODELS_EXAMPLE, "What is served"), **_INTERNAL},
    },
    "metrics": {
        "response_class": PlainTextResponse,
        "responses": {200: {"description": "Prometheus' text format"}, **_INTERNAL},
    },
}
