"""Every malformed field gets a 4xx that names it; what is right is taken however it is sent."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from tests.support.pictures import drawn_circle
from tests.support.serving import Running

IMAGE = {"base64": base64.b64encode(drawn_circle()).decode()}
GOOD: dict[str, Any] = {"image": IMAGE, "question": "what color is the shape?"}

BAD = [
    ({"question": None}, 422, "invalid_field", "question"),
    ({"question": 5}, 422, "invalid_field", "question"),
    ({"question": ["x"]}, 422, "invalid_field", "question"),
    ({"question": ""}, 422, "question_empty", "question"),
    ({"question": "\u200b\u2060 \ufeff"}, 422, "question_empty", "question"),
    ({"question": "\u3164\u2800"}, 422, "question_empty", "question"),
    ({"question": "a\x00b"}, 422, "question_invalid", "question"),
    ({"question": "a\x1bb"}, 422, "question_invalid", "question"),
    ({"question": "x" * 1001}, 422, "question_too_long", "question"),
    ({"question": "x" * 100_000}, 422, "question_too_long", "question"),
    ({"image": None}, 422, "missing_field", "image"),
    ({"image": 5}, 422, "invalid_field", "image"),
    ({"image": []}, 422, "invalid_field", "image"),
    ({"image": {}}, 422, "invalid_field", "image"),
    ({"image": "hello"}, 422, "invalid_field", "image"),
    ({"image": IMAGE | {"url": "http://x"}}, 422, "invalid_field", "image"),
    ({"image": IMAGE | {"more": 1}}, 422, "unknown_field", "image.more"),
    ({"image": {"base64": 5}}, 422, "invalid_field", "image.base64"),
    ({"image": {"base64": "http://example.org/a.png"}}, 403, "url_not_allowed", "image.base64"),
    ({"image": {"base64": ""}}, 400, "image_empty", "image.base64"),
    ({"image": {"base64": "*"}}, 422, "invalid_base64", "image.base64"),
    ({"image": "data:image/png;base64,"}, 400, "image_empty", "image"),
    ({"image": "data:image/png"}, 422, "invalid_base64", "image"),
    ({"choices": []}, 422, "invalid_field", "choices"),
    ({"choices": "red"}, 422, "invalid_field", "choices"),
    ({"choices": ["red", 5]}, 422, "invalid_field", "choices[1]"),
    ({"choices": ["red", ""]}, 422, "choices_invalid", "choices[1]"),
    ({"choices": ["two", "2"]}, 422, "choices_invalid", "choices[1]"),
    ({"choices": ["x"] * 5000}, 422, "invalid_field", "choices"),
    ({"choices": ["red"], "answer_set": "colors"}, 422, "invalid_field", "answer_set"),
    ({"choices": ["red", "a mongoose"]}, 501, "generator_unavailable", "choices"),
    ({"choices": ["red", "a mongoose"], "policy": "classifier"}, 422, "choices_outside_vocabulary", "choices[1]"),
    ({"answer_set": "nope"}, 422, "unknown_answer_set", "answer_set"),
    ({"answer_set": "open"}, 501, "generator_unavailable", "answer_set"),
    ({"policy": "generator"}, 501, "generator_unavailable", "policy"),
    ({"policy": "cascade"}, 501, "generator_unavailable", "policy"),
    ({"policy": "best"}, 422, "invalid_field", "policy"),
    ({"model": "gpt"}, 422, "unknown_model", "model"),
    ({"max_risk": -0.1}, 422, "invalid_field", "max_risk"),
    ({"max_risk": 1.5}, 422, "invalid_field", "max_risk"),
    ({"max_risk": "0.5"}, 422, "invalid_field", "max_risk"),
    ({"top_k": 0}, 422, "invalid_field", "top_k"),
    ({"top_k": 101}, 422, "invalid_field", "top_k"),
    ({"top_k": True}, 422, "invalid_field", "top_k"),
    ({"top_k": 2.5}, 422, "invalid_field", "top_k"),
    ({"timeout_ms": 0}, 422, "invalid_field", "timeout_ms"),
    ({"timeout_ms": 10**9}, 422, "invalid_field", "timeout_ms"),
    ({"timeout_ms": 10**30}, 422, "invalid_field", "timeout_ms"),
    ({"priority": "urgent"}, 422, "invalid_field", "priority"),
    ({"image_base64": "x"}, 422, "unknown_field", "image_base64"),
    ({"image": None, "image_base64": "x"}, 422, "unknown_field", "image_base64"),
    ({"image": {"url": "data:image/png;base64,QUJD"}}, 422, "image_undecodable", "image.url"),
    ({"weird key \u00e9": 1}, 422, "unknown_field", "weird key \u00e9"),
]


@pytest.mark.parametrize(("change", "status", "code", "field"), BAD, ids=lambda value: str(value)[:40])
def test_bad_json_field(served: Running, change: dict[str, Any], status: int, code: str, field: str) -> None:
    reply = served.client.post("/answer", json=GOOD | change)
    problem = reply.json()
    assert (reply.status_code, problem["code"], problem.get("field")) == (status, code, field)
    assert reply.headers["content-type"] == "application/problem+json"
    assert problem["status"] == status
    assert problem["type"] == f"urn:vqa:problem:{code}"
    assert problem["request_id"] == reply.headers["x-request-id"]
    assert problem["title"]
    assert problem["detail"]


@pytest.mark.parametrize("missing", ["image", "question"])
def test_a_missing_field_is_named(served: Running, missing: str) -> None:
    reply = served.client.post("/answer", json={k: v for k, v in GOOD.items() if k != missing})
    assert (reply.status_code, reply.json()["code"], reply.json()["field"]) == (422, "missing_field", missing)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "invalid_json"),
        (b"{", "invalid_json"),
        (b"[]", "invalid_json"),
        (b"null", "invalid_json"),
        (b'"text"', "invalid_json"),
        (b"\xff\xfe{}", "invalid_json"),
        (b"[" * 100_000, "invalid_json"),
        (b'{"a":' * 50_000, "invalid_json"),
        (b'{"top_k": ' + b"9" * 10_000 + b"}", "invalid_json"),
        (b'{"\\ud800": 1}', "invalid_json"),
    ],
    ids=lambda value: str(value)[:24],
)
def test_bad_json_body(served: Running, body: bytes, code: str) -> None:
    reply = served.client.post("/answer", content=body, headers={"Content-Type": "application/json"})
    assert (reply.status_code, reply.json()["code"]) == (400, code)


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "[NaN]", '{"a": NaN}'])
@pytest.mark.parametrize("field", [*GOOD, "top_k", "max_risk", "choices", "model", "timeout_ms", "other"])
def test_nan_is_refused_where_it_stands(served: Running, field: str, value: str) -> None:
    rest = json.dumps({k: v for k, v in GOOD.items() if k != field})[1:]
    body = f'{{"{field}": {value}, {rest}'.encode()
    reply = served.client.post("/answer", content=body, headers={"Content-Type": "application/json"})
    assert reply.status_code == 422, reply.text
    assert reply.json()["field"].startswith(field)


@pytest.mark.parametrize(
    "content_type", ["", "text/plain", "application/x-www-form-urlencoded", "image/png", "x" * 500]
)
def test_another_content_type_is_415(served: Running, content_type: str) -> None:
    headers = {"Content-Type": content_type} if content_type else {}
    reply = served.client.post("/answer", content=b"question=x", headers=headers)
    assert (reply.status_code, reply.json()["code"]) == (415, "unsupported_content_type")


def post_form(running: Running, **fields: Any) -> Any:
    files: list[tuple[str, Any]] = [("image", ("a.png", drawn_circle()))]
    for name, value in ({"question": "what color is the shape?"} | fields).items():
        values = value if isinstance(value, list) else [value]
        files += [(name, (None, text)) for text in values]
    return running.client.post("/answer", files=files)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"top_k": "many"}, "top_k"),
        ({"max_risk": "low"}, "max_risk"),
        ({"max_risk": "nan"}, "max_risk"),
        ({"timeout_ms": "1.5"}, "timeout_ms"),
        ({"question": ["one", "two"]}, "question"),
        ({"choices": '["red"'}, "choices"),
        ({"policy": "best"}, "policy"),
        ({"questions": "[]"}, "questions"),
        ({"nope": "x"}, "nope"),
        ({"image_base64": "QUJD"}, "image_base64"),
        ({"top_k": "1_0"}, "top_k"),
        ({"max_risk": "0_1"}, "max_risk"),
        ({"max_risk": "."}, "max_risk"),
        ({"question": b"\xff\xfe"}, "question"),
    ],
)
def test_bad_form_field(served: Running, fields: dict[str, Any], field: str) -> None:
    reply = post_form(served, **fields)
    assert 400 <= reply.status_code < 500
    assert reply.json()["field"] == field


@pytest.mark.parametrize("choices", ["red,blue", '["red", "blue"]', ["red", "blue"]])
def test_choices_in_a_form(served: Running, choices: Any) -> None:
    reply = post_form(served, choices=choices)
    assert reply.status_code == 200, reply.text
    assert {c["answer"] for c in reply.json()["candidates"]} == {"red", "blue", "unanswerable"}


def test_empty_optional_form_fields_count_as_absent(served: Running) -> None:
    names = ("choices", "answer_set", "policy", "model", "max_risk", "top_k", "timeout_ms", "priority")
    assert post_form(served, **dict.fromkeys(names, "")).status_code == 200


def test_null_counts_as_absent(served: Running) -> None:
    names = ("choices", "answer_set", "policy", "model", "max_risk", "top_k", "timeout_ms", "priority")
    assert served.client.post("/answer", json=GOOD | dict.fromkeys(names)).status_code == 200


def test_a_callers_spelling_comes_back(served: Running) -> None:
    body = served.client.post("/answer", json=GOOD | {"choices": [" Red!", "BLUE"]}).json()
    assert body["answer"] == " Red!"
    assert body["raw_answer"] == "red"


def test_a_named_set_of_which_the_model_knows_a_part(served: Running) -> None:
    reply = served.client.post(
        "/answer", json=GOOD | {"question": "how many shapes are there?", "answer_set": "numbers"}
    )
    assert reply.status_code == 200, reply.text
    assert "answer_set_reduced" in {w["code"] for w in reply.json()["warnings"]}


def test_top_k_bounds_the_candidates(served: Running) -> None:
    assert len(served.client.post("/answer", json=GOOD | {"top_k": 2}).json()["candidates"]) == 2
    many = served.client.post("/answer", json=GOOD | {"top_k": 100}).json()["candidates"]
    assert len(many) > 10
    probabilities = [c["probability"] for c in many]
    assert probabilities == sorted(probabilities, reverse=True)
    assert sum(probabilities) == pytest.approx(1, abs=1e-4)


def test_max_risk_zero_abstains_and_says_nothing(served: Running) -> None:
    body = served.client.post("/answer", json=GOOD | {"max_risk": 0.0}).json()
    if body["confidence"] < 1:
        assert body["abstained"] is True
    assert (body["answer"] is None) == body["abstained"]
    assert served.client.post("/answer", json=GOOD | {"max_risk": 1.0}).json()["abstained"] is False


def test_the_reply_is_the_contracts(served: Running) -> None:
    body = served.client.post("/answer", json=GOOD, headers={"Cache-Control": "no-cache"}).json()
    assert body["answer"] == "red"
    assert body["calibrated"] is True
    assert 0 <= body["confidence"] <= 1
    assert body["answerable"] is True
    assert body["answer_type"] == "other"
    assert body["cached"] is False
    assert body["hints"] == []
    assert body["model"]["id"] == "vilt-shapes"
    assert len(body["model"]["revision"]) == 16
    assert body["route"]["policy"] == "auto"
    assert "demo_model" in {w["code"] for w in body["warnings"]}
    assert set(body["timings_ms"]) == {"decode", "queue", "inference", "total"}
    assert body["timings_ms"]["total"] >= body["timings_ms"]["inference"]


@pytest.mark.parametrize(
    "question", ["ما لون الشكل؟", "какого цвета фигура?", "図形は何色ですか", "???", "!!!", "😀", "x" * 900]
)
def test_a_question_of_which_no_word_is_known_is_not_answered(served: Running, question: str) -> None:
    """Whatever the scores say: they are those of an empty question."""
    body = served.client.post("/answer", json=GOOD | {"question": question}).json()
    assert (body["answer"], body["abstained"], body["confidence"], body["calibrated"]) == (None, True, None, False)
    assert "question_not_understood" in {w["code"] for w in body["warnings"]}


def test_a_question_of_which_little_is_known_comes_with_a_warning(served: Running) -> None:
    body = served.client.post("/answer", json=GOOD | {"question": "какого цвета circle?"}).json()
    assert "question_partly_understood" in {w["code"] for w in body["warnings"]}
    assert served.client.post("/answer", json=GOOD).json()["warnings"][1:] == []


@pytest.mark.parametrize("name", ["file", "img", "upload", "Image", "image[]"])
def test_a_picture_under_another_name_is_told_its_name(served: Running, name: str) -> None:
    files = [(name, ("a.png", drawn_circle())), ("question", (None, "what color is it?"))]
    reply = served.client.post("/answer", files=files)
    assert (reply.status_code, reply.json()["code"], reply.json()["field"]) == (422, "unknown_field", name)
    assert "as image" in reply.json()["detail"]


@pytest.mark.parametrize(
    ("encoding", "status"), [("base64", 400), ("quoted-printable", 400), ("binary", 200), ("8BIT", 200)]
)
def test_an_encoded_part_is_never_read_as_it_stands(served: Running, encoding: str, status: int) -> None:
    body = (
        (
            f'--b\r\nContent-Disposition: form-data; name="question"\r\nContent-Transfer-Encoding: {encoding}\r\n\r\n'
            'what color is the shape?\r\n--b\r\nContent-Disposition: form-data; name="image"; filename="a"\r\n\r\n'
        ).encode()
        + drawn_circle()
        + b"\r\n--b--\r\n"
    )
    reply = served.client.post("/answer", content=body, headers={"Content-Type": "multipart/form-data; boundary=b"})
    assert reply.status_code == status, reply.text


class TestManyQuestions:
    """`POST /answers`."""

    @pytest.mark.parametrize(
        ("shared", "status", "field"),
        [
            ({"answer_set": "nope"}, 422, "answer_set"),
            ({"answer_set": "open"}, 501, "answer_set"),
            ({"model": "gpt"}, 422, "model"),
            ({"policy": "generator"}, 501, "policy"),
            ({"choices": ["two", "2"]}, 422, "choices[1]"),
            ({"max_risk": 3}, 422, "max_risk"),
        ],
    )
    def test_a_bad_shared_option_is_the_requests(
        self, served: Running, shared: dict[str, Any], status: int, field: str
    ) -> None:
        reply = served.client.post("/answers", json={"image": IMAGE, "questions": ["x?", "y?"]} | shared)
        assert (reply.status_code, reply.json()["field"]) == (status, field)

    def test_question_and_questions_contradict(self, served: Running) -> None:
        files = [("image", ("a", drawn_circle())), ("question", (None, "x")), ("questions", (None, '["y"]'))]
        reply = served.client.post("/answers", files=files)
        assert (reply.status_code, reply.json()["field"]) == (422, "question")

    def test_all_choices_together_are_bounded(self, served: Running) -> None:
        questions = [{"question": "x", "choices": [f"{i} {j}" for j in range(4000)]} for i in range(5)]
        reply = served.client.post("/answers", json={"image": IMAGE, "questions": questions})
        assert (reply.status_code, reply.json()["field"], reply.json()["limit"]) == (422, "questions", 16384)

    def test_a_result_or_a_problem_for_each_in_order(self, served: Running) -> None:
        questions = [
            "what color is the shape?",
            "",
            {"question": "is there a red shape?", "answer_set": "yes-no"},
            {"question": "what color is the shape?", "choices": ["a mongoose"]},
            {"question": 5},
            7,
            {"question": "what shape is it?", "unknown": 1},
            {"question": "x", "policy": "generator"},
        ]
        reply = served.client.post("/answers", json={"image": IMAGE, "questions": questions})
        assert reply.status_code == 200, reply.text
        results = reply.json()["results"]
        assert len(results) == len(questions)
        assert results[0]["result"]["answer"] == "red"
        assert results[2]["result"]["answer"] == "yes"
        problems = {i: (r["problem"]["code"], r["problem"]["field"]) for i, r in enumerate(results) if "problem" in r}
        assert problems == {
            1: ("question_empty", "questions[1].question"),
            3: ("generator_unavailable", "questions[3].choices"),
            4: ("invalid_field", "questions[4].question"),
            5: ("invalid_field", "questions[5]"),
            6: ("unknown_field", "questions[6].unknown"),
            7: ("generator_unavailable", "questions[7].policy"),
        }

    def test_shared_options_hold_where_a_question_has_none(self, served: Running) -> None:
        body = {
            "image": IMAGE,
            "answer_set": "yes-no",
            "top_k": 1,
            "questions": ["is it red?", {"question": "what color is it?", "choices": ["red", "blue"], "top_k": 3}],
        }
        first, second = (r["result"] for r in served.client.post("/answers", json=body).json()["results"])
        assert first["answer"] in ("yes", "no", "unanswerable")
        assert len(first["candidates"]) == 1
        assert {c["answer"] for c in second["candidates"]} == {"red", "blue", "unanswerable"}

    def test_too_many_are_refused_with_the_limit(self, served: Running) -> None:
        reply = served.client.post("/answers", json={"image": IMAGE, "questions": ["x"] * 65})
        assert (reply.status_code, reply.json()["field"], reply.json()["limit"]) == (422, "questions", 64)

    @pytest.mark.parametrize("questions", [None, [], "x", {}])
    def test_questions_must_be_a_list_of_some(self, served: Running, questions: Any) -> None:
        reply = served.client.post("/answers", json={"image": IMAGE, "questions": questions})
        assert (reply.status_code, reply.json()["field"]) == (422, "questions")

    def test_a_bad_picture_is_one_problem(self, served: Running) -> None:
        reply = served.client.post(
            "/answers", json={"image": {"base64": base64.b64encode(b"hello, world").decode()}, "questions": ["x", "y"]}
        )
        assert reply.status_code == 415
        assert reply.json()["field"] == "image.base64"

    @pytest.mark.parametrize("many", [False, True])
    def test_as_a_form(self, served: Running, many: bool) -> None:
        files: list[Any] = [("image", ("a.png", drawn_circle()))]
        texts = ["what color is the shape?", "is there a blue shape?"]
        files += [("question", (None, t)) for t in texts] if many else [("questions", (None, json.dumps(texts)))]
        results = served.client.post("/answers", files=files).json()["results"]
        assert [r["result"]["answer"] for r in results] == ["red", "no"]


class TestRequestIds:
    def test_one_is_made(self, served: Running) -> None:
        reply = served.client.post("/answer", json=GOOD)
        assert reply.headers["x-request-id"] == reply.json()["id"]
        assert reply.headers["x-request-id"] != served.client.get("/livez").headers["x-request-id"]

    def test_a_callers_is_given_back(self, served: Running) -> None:
        reply = served.client.get("/livez", headers={"X-Request-Id": "job-7:row.12"})
        assert reply.headers["x-request-id"] == "job-7:row.12"

    @pytest.mark.parametrize("odd", ["a b", "x" * 129, "<script>", ""])
    def test_an_odd_one_is_replaced(self, served: Running, odd: str) -> None:
        assert served.client.get("/livez", headers={"X-Request-Id": odd}).headers["x-request-id"] != odd

    def test_traceparent_is_given_back_when_it_is_one(self, served: Running) -> None:
        good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        assert served.client.get("/livez", headers={"traceparent": good}).headers["traceparent"] == good
        for bad in ("00-" + "0" * 32 + "-00f067aa0ba902b7-01", "nonsense", good.upper()):
            assert "traceparent" not in served.client.get("/livez", headers={"traceparent": bad}).headers


def test_unknown_paths_and_methods_are_problems(served: Running) -> None:
    missing = served.client.get("/nope")
    assert (missing.status_code, missing.json()["code"]) == (404, "not_found")
    wrong = served.client.get("/answer")
    assert (wrong.status_code, wrong.json()["code"], wrong.headers["allow"]) == (405, "method_not_allowed", "POST")


def test_models_and_index(served: Running) -> None:
    [model] = served.client.get("/models").json()["models"]
    assert model["id"] == "vilt-shapes"
    assert model["demo"] is True
    assert model["state"] == "ready"
    assert "/answer" in served.client.get("/").json()["routes"]
