"""Every picture case over HTTP, by upload, base64 and data URL: the same status, code, size and pixels each way."""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import numpy as np
import pytest

from service.images import ImageError, decode_image
from tests.support.backends import ScriptedBackend
from tests.support.cases import Case, cases
from tests.support.pictures import drawn_circle
from tests.support.serving import Running, serving

QUESTION = "what is in the picture?"


def as_upload(client: httpx.Client, case: Case) -> httpx.Response:
    # Clients label what they send as they like; only the bytes count.
    return client.post("/answer", files={"image": (case.name, case.data, "image/jpeg")}, data={"question": QUESTION})


def as_base64(client: httpx.Client, case: Case) -> httpx.Response:
    text = base64.b64encode(case.data).decode()
    return client.post("/answer", json={"image": {"base64": text}, "question": QUESTION})


def as_data_url(client: httpx.Client, case: Case) -> httpx.Response:
    text = "data:image/png;base64," + base64.b64encode(case.data).decode()
    return client.post("/answer", json={"image": text, "question": QUESTION})


ROUTES = [as_upload, as_base64, as_data_url]


@pytest.fixture(scope="module")
def scripted() -> Iterator[tuple[Running, ScriptedBackend]]:
    """A server whose backend keeps the pictures that reached it."""
    backend = ScriptedBackend()
    with serving({"classifier": backend}, cache_bytes=0) as running:
        yield running, backend


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("case", cases("image"), ids=lambda case: case.name)
def test_case(
    scripted: tuple[Running, ScriptedBackend], case: Case, route: Callable[[httpx.Client, Case], httpx.Response]
) -> None:
    running, backend = scripted
    backend.prepared.clear()
    started = time.perf_counter()
    response = route(running.client, case)
    seconds = time.perf_counter() - started
    assert response.status_code in case.allowed, response.text
    assert seconds < case.expected.get("max_seconds", 10)
    if response.status_code == 200:
        check_pixels(case, response.json(), backend)
        return
    problem = response.json()
    assert response.headers["content-type"] == "application/problem+json"
    assert problem["code"] == case.expected.get("error_code", problem["code"])
    assert problem["field"].startswith("image")
    good = running.client.post("/answer", files={"image": drawn_circle()}, data={"question": QUESTION})
    assert good.status_code == 200, "a bad picture must not harm the next request"


def check_pixels(case: Case, reply: dict[str, Any], backend: ScriptedBackend) -> None:
    [picture] = backend.prepared
    assert reply["image"]["sha256"] == hashlib.sha256(case.data).hexdigest()
    if "decoded_size" in case.expected:
        assert [reply["image"]["width"], reply["image"]["height"]] == case.expected["decoded_size"]
        assert picture.pixels.shape == (reply["image"]["height"], reply["image"]["width"], 3)
    for probe in case.expected.get("probes", []):
        x, y = probe["xy"]
        distance = np.abs(picture.pixels[y, x].astype(int) - probe["rgb"]).max()
        assert distance <= probe["tol"], (probe, picture.pixels[y, x])
    if "distinct_levels_min" in case.expected:
        assert len(np.unique(picture.pixels)) >= case.expected["distinct_levels_min"]
    np.testing.assert_array_equal(picture.pixels, decode_image(case.data).pixels, "the function and the door differ")


@pytest.mark.parametrize("case", cases("image"), ids=lambda case: case.name)
def test_the_function_refuses_what_the_door_refuses(scripted: tuple[Running, ScriptedBackend], case: Case) -> None:
    response = as_upload(scripted[0].client, case)
    if response.status_code == 200:
        decode_image(case.data)
        return
    with pytest.raises(ImageError) as refused:
        decode_image(case.data)
    assert (refused.value.status, refused.value.code) == (response.status_code, response.json()["code"])


@pytest.mark.parametrize("case", cases("image"), ids=lambda case: case.name)
def test_the_embedded_model_takes_every_good_picture(served: Running, case: Case) -> None:
    assert as_upload(served.client, case).status_code in case.allowed
