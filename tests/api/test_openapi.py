"""The OpenAPI document: true to the replies, with an example for each status, and unbreakable through schemathesis."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from service.api import examples, schema
from service.errors import PROBLEMS, Code
from tests.support.serving import Running

CHECKS = [status_code_conformance, content_type_conformance, response_schema_conformance]


@pytest.fixture(scope="module")
def document(served: Running) -> dict[str, Any]:
    return served.client.get("/openapi.json").json()


OPERATIONS = [
    ("/answer", "POST"),
    ("/answers", "POST"),
    ("/livez", "GET"),
    ("/readyz", "GET"),
    ("/models", "GET"),
    ("/metrics", "GET"),
]


@pytest.mark.parametrize(
    ("path", "method", "mode"),
    [
        *((path, method, GenerationMode.POSITIVE) for path, method in OPERATIONS),
        # The others take no parameters, so there is nothing to get wrong.
        *((path, method, GenerationMode.NEGATIVE) for path, method in OPERATIONS if method == "POST"),
    ],
)
def test_no_generated_request_is_a_fault_of_ours(served: Running, path: str, method: str, mode: GenerationMode) -> None:
    """No 500, and every reply is one that the document announces.

    501 to 504 are announced too: they say that a question needs what is not there, not that the service broke.
    """
    operation = schemathesis.openapi.from_url(f"{served.url}/openapi.json")[path][method]

    @settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(case=operation.as_strategy(generation_mode=mode))
    def check(case: schemathesis.Case) -> None:
        response = case.call()
        assert response.status_code != 500, response.text
        if mode is GenerationMode.NEGATIVE:
            # A bad question among many is refused alone, inside a 200. A form knows texts only, so that a value of the
            # wrong type may well be a right one once it is sent.
            refused = response.status_code >= 400 or b'"problem":' in response.content
            assert refused or case.media_type == "multipart/form-data", "what the document forbids must be refused"
        case.validate_response(response, checks=CHECKS)

    check()


def test_the_generated_requests_cover_every_route(document: dict[str, Any]) -> None:
    described = {(path, method.upper()) for path, methods in document["paths"].items() for method in methods}
    assert described == set(OPERATIONS)


@pytest.mark.parametrize(
    ("example", "model"),
    [
        (examples.ANSWER_EXAMPLE, schema.AnswerReply),
        (examples.ANSWERS_EXAMPLE, schema.AnswersReply),
        (examples.READY_EXAMPLE, schema.Ready),
        (examples.NOT_READY_EXAMPLE, schema.Ready),
        (examples.MODELS_EXAMPLE, schema.Models),
    ],
)
def test_examples_are_replies_that_can_be(example: dict[str, Any], model: Any) -> None:
    assert model.model_validate(example).model_dump(exclude_unset=True) == example


def test_real_replies_have_the_shape_of_the_example(served: Running) -> None:
    from tests.support.pictures import drawn_circle

    reply = served.client.post("/answer", files={"image": drawn_circle()}, data={"question": "what color is it?"})
    assert set(reply.json()) == set(examples.ANSWER_EXAMPLE) == set(schema.AnswerReply.model_fields)
    schema.AnswerReply.model_validate(reply.json())


def test_every_status_has_an_example(document: dict[str, Any]) -> None:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            for status, response in operation["responses"].items():
                for media_type, content in response["content"].items():
                    has = "example" in content or content.get("examples") or media_type.startswith("text/plain")
                    assert has, (method, path, status)


def test_every_code_a_question_can_meet_is_announced(document: dict[str, Any]) -> None:
    responses = document["paths"]["/answer"]["post"]["responses"]
    for code in set(Code) - {Code.NOT_FOUND, Code.METHOD_NOT_ALLOWED, Code.HEAD_TOO_LARGE, Code.CLIENT_CLOSED_REQUEST}:
        named = responses[str(int(PROBLEMS[code].status))]["content"]["application/problem+json"]["examples"]
        assert code.value in named


def test_every_code_has_its_problem() -> None:
    assert set(PROBLEMS) == set(Code)


def test_both_ways_to_send_a_picture_are_described(document: dict[str, Any]) -> None:
    for path in ("/answer", "/answers"):
        content = document["paths"][path]["post"]["requestBody"]["content"]
        assert set(content) == {"application/json", "multipart/form-data"}
        name = content["application/json"]["schema"]["$ref"].rsplit("/", 1)[1]
        assert name in document["components"]["schemas"]
