"""The request cases as they came, with their keys renamed to the contract's."""

from __future__ import annotations

import json
import re
import time

import pytest

from tests.support.cases import Case, cases
from tests.support.serving import Running

JSON_CASES = [case for case in cases("requests") if case.name.endswith(".json")]
RAW_CASES = [case for case in cases("requests") if case.name.endswith(".bin")]
LIMIT = 4096


def renamed(case: Case) -> bytes:
    """The body with `"image_base64": "…"` as `"image": {"base64": "…"}` (or the data URL), all else byte for byte."""
    encoding = "utf-16" if "utf16" in case.name else "utf-8"
    text = case.data.decode(encoding)
    return re.sub(r'"image_base64":\s*("(?:[^"\\]|\\.)*")', _renamed_image, text).encode(encoding)


def _renamed_image(match: re.Match[str]) -> str:
    value = match[1]
    return f'"image": {value}' if value.lower().startswith('"data:') else f'"image": {{"base64": {value}}}'


@pytest.mark.parametrize("case", JSON_CASES, ids=lambda case: case.name)
def test_json_case(served: Running, case: Case) -> None:
    started = time.perf_counter()
    response = served.client.post("/answer", content=renamed(case), headers={"Content-Type": "application/json"})
    assert time.perf_counter() - started < case.expected.get("max_seconds", 10)
    assert response.status_code in case.allowed, response.text
    assert response.status_code == case.expected["status"], "the preferred answer"
    body = json.loads(response.content.decode("utf-8"), parse_constant=lambda name: pytest.fail(name))
    if response.status_code != 200:
        assert body["code"] == case.expected.get("error_code", body["code"])
        assert len(response.content) < LIMIT
        return
    if "decoded_size" in case.expected:
        assert [body["image"]["width"], body["image"]["height"]] == case.expected["decoded_size"]
    if "decoded_sha256_of_bytes" in case.expected:
        assert body["image"]["sha256"] == case.expected["decoded_sha256_of_bytes"]


@pytest.mark.parametrize("case", RAW_CASES, ids=lambda case: case.name)
def test_raw_case(served: Running, case: Case) -> None:
    content_type = re.search(r"Content-Type: ([^,;( ]+(?:; boundary=[^;\s]+)?)", case.use)[1]
    response = served.client.post("/answer", content=case.data, headers={"Content-Type": content_type})
    assert response.status_code in case.allowed, response.text
    assert response.json()["code"] == case.expected.get("error_code", response.json()["code"])
    assert len(response.content) <= case.expected.get("max_response_bytes", LIMIT)


def test_marks_in_a_question_are_text(served: Running) -> None:
    """The ids of special tokens never come from a caller (VLLM-01)."""
    tokenizer = served.gateway.backends["classifier"]._loaded.tokenizer
    special = {tokenizer._tokenizer.token_to_id(mark) for mark in ("[CLS]", "[SEP]", "[PAD]", "[MASK]")}
    ids = tokenizer.encode("[CLS] what is this [SEP] [PAD] [MASK]").ids
    assert ids[0] in special
    assert ids[-1] in special
    assert not special & set(ids[1:-1].tolist())


@pytest.mark.parametrize("name", ["q_exactly_40_tokens.json", "q_over_40_tokens.json"])
def test_a_cut_question_is_told(served: Running, name: str) -> None:
    """VILT-01, at the limit of this model's own tokenizer."""
    case = next(case for case in JSON_CASES if case.name == name)
    tokenizer = served.gateway.backends["classifier"]._loaded.tokenizer
    tokens = tokenizer.encode(json.loads(case.data)["question"])
    response = served.client.post("/answer", content=renamed(case), headers={"Content-Type": "application/json"})
    messages = [w["message"] for w in response.json()["warnings"] if w["code"] == "question_truncated"]
    assert bool(messages) == (tokens.cut > 0)
    for message in messages:
        assert "40" in message
        assert str(40 + tokens.cut) in message
