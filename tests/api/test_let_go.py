"""What a request held is let go of with it, and not when garbage is next looked for: pictures are large."""

from __future__ import annotations

import gc
import logging
import time
from collections.abc import Iterator

import httpx
import pytest

from service.backends import Scored
from service.gateway.pictures import Identified
from tests.support.backends import ScriptedBackend
from tests.support.pictures import drawn_circle
from tests.support.serving import Running, serving

FATES = {
    "answered": 200,
    "refused option": 422,
    "no picture": 415,
    "half a picture": 422,
    "failed": 502,
    "late": 504,
    "not prepared": 502,
    "left": None,
}


class Fated(ScriptedBackend):
    """Does with a question what its text says."""

    def prepare(self, image: object) -> object:
        if image.width == 65:  # type: ignore[attr-defined]
            raise RuntimeError("cannot prepare")
        return super().prepare(image)

    async def ask(self, _picture: object, question: str, *rest: object) -> Scored:
        if question.startswith("failed"):
            raise RuntimeError("an inference fails")
        self._sleep_s = 30 if question.startswith(("late", "left")) else 0
        return await super().ask(_picture, question, *rest)


@pytest.fixture
def _no_collection() -> Iterator[None]:
    """No garbage is looked for, and nobody keeps log records, which lead to what failed."""
    logging.disable(logging.CRITICAL)
    gc.collect()
    gc.disable()
    yield
    gc.enable()
    logging.disable(logging.NOTSET)


def ask(running: Running, fate: str, number: int) -> int | None:
    picture = drawn_circle(size=(65 if fate == "not prepared" else 64, 64))
    data = {"question": f"{fate} {number}?"}
    if fate == "late":
        data["timeout_ms"] = "100"
    if fate == "refused option":
        data["answer_set"] = "no such set"
    image = {"no picture": b"no picture", "half a picture": picture[: len(picture) // 2]}.get(fate, picture)
    try:
        timeout = 0.2 if fate == "left" else 30
        return httpx.post(f"{running.url}/answer", files={"image": image}, data=data, timeout=timeout).status_code
    except httpx.ReadTimeout:
        return None


def held() -> list[Identified]:
    """Pictures that are still in memory."""
    return [thing for thing in gc.get_objects() if type(thing) is Identified]


@pytest.mark.usefixtures("_no_collection")
@pytest.mark.parametrize("fate", FATES)
def test_no_picture_outlives_its_request(fate: str) -> None:
    with serving({"classifier": Fated()}) as running:
        for number in range(3):
            assert ask(running, fate, number) == FATES[fate]
        until = time.monotonic() + 5
        while held() and time.monotonic() < until:
            time.sleep(0.05)
        assert not held()
