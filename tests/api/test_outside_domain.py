"""Over HTTP: a picture that the model does not know gets no answer but a hint, also from the cache."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from service.answers import Calibration
from tests.support.backends import ScriptedBackend
from tests.support.pictures import drawn_circle
from tests.support.serving import Running, serving

WHITE, BLACK = drawn_circle(), drawn_circle("white", background="black")
BRIGHT = {  # a normal distribution of brightness around 0.9; black pictures are 8 standard deviations away
    "kind": "gaussian_mixture",
    "pictures": 100,
    "statistics": ["brightness"],
    "center": [0.9],
    "scale": [0.1],
    "weights": [1],
    "means": [[0]],
    "factors": [[[1]]],
    "threshold": 6,
}


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    backend = ScriptedBackend()
    backend.calibration = Calibration.load(
        {
            "version": 1,
            "fitted_on": "text",
            "questions": 10,
            "target": "vqa_accuracy(always)",
            "confidence": {"quantity": "top_mass", "maps": {"default": {"kind": "logistic", "a": 1, "b": 0}}},
            "domain": BRIGHT,
        }
    )
    with serving({"classifier": backend}) as server:
        yield server


def test_one_question(running: Running) -> None:
    for cached in (False, True):
        response = running.client.post("/answer", files={"image": BLACK}, data={"question": "is it?"})
        assert response.status_code == 200
        reply = response.json()
        assert reply["cached"] is cached
        assert [hint["code"] for hint in reply["hints"]] == ["outside_model_domain"]
        assert reply["hints"][0]["message"].endswith(".")
        told = {name: reply[name] for name in ("answer", "confidence", "answerable", "answerability")}
        assert told == dict.fromkeys(told)
        assert (reply["abstained"], reply["calibrated"]) == (True, False)
        assert reply["candidates"][0]["answer"] == "yes"
        assert set(reply["image"]) == {"sha256", "width", "height"}


def test_several_questions_with_a_risk(running: Running) -> None:
    data = {"questions": json.dumps(["is it?", "is it red?"]), "max_risk": "1"}
    results = running.client.post("/answers", files={"image": BLACK}, data=data).json()["results"]
    for item in results:
        assert (item["result"]["answer"], item["result"]["abstained"]) == (None, True)
        assert [hint["code"] for hint in item["result"]["hints"]] == ["outside_model_domain"]


def test_a_picture_that_it_knows(running: Running) -> None:
    for cached in (False, True):
        reply = running.client.post("/answer", files={"image": WHITE}, data={"question": "is it?"}).json()
        assert (reply["cached"], reply["answer"], reply["abstained"], reply["hints"]) == (cached, "yes", False, [])
        assert reply["calibrated"]


def test_the_hint_is_in_the_contract(running: Running) -> None:
    schemas = running.client.get("/openapi.json").json()["components"]["schemas"]
    assert any(
        "outside_model_domain" in json.dumps(schema["properties"].get("hints", ""))
        for schema in schemas.values()
        if "properties" in schema
    )
