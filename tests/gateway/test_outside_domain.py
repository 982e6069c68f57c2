"""A picture that the model does not know: its answer is held back, whoever computed it."""

from __future__ import annotations

from typing import Any

import pytest

from service.answers import Calibration
from service.gateway import Gateway, Picture, Question, Reply
from service.gateway.cache import Cache, MemoryCache
from service.gateway.reply import OUTSIDE_MODEL_DOMAIN
from service.images import STATISTICS, picture_statistics
from service.scheduling import WorkerThreads
from service.settings import load_settings
from service.telemetry.metrics import Metrics
from tests.support.backends import ScriptedBackend
from tests.support.pictures import drawn_circle

WHITE, BLACK = drawn_circle(), drawn_circle("white", background="black")
BASE: dict[str, Any] = {
    "version": 1,
    "fitted_on": "text",
    "questions": 10,
    "target": "vqa_accuracy(always)",
    "confidence": {"quantity": "top_mass", "maps": {"default": {"kind": "logistic", "a": 1, "b": 0}}},
}


def around(brightness: float) -> Calibration:
    """Knows pictures of about this brightness: within 0.2 lies what is within two standard deviations."""
    domain = {
        "kind": "gaussian_mixture",
        "pictures": 100,
        "statistics": ["brightness"],
        "center": [brightness],
        "scale": [0.1],
        "weights": [1],
        "means": [[0]],
        "factors": [[[1]]],
        "threshold": 0.9189385332046727 + 2,
    }
    return Calibration.load(BASE | {"domain": domain})


async def made(calibration: Calibration | None, cache: Cache | None = None, **more: Any) -> tuple[Gateway, Any]:
    backend = ScriptedBackend(**more)
    backend.calibration = calibration
    gateway = Gateway(
        load_settings(), {backend.name: backend}, WorkerThreads(2), cache or MemoryCache(1 << 20), Metrics()
    )
    await gateway.start()
    return gateway, backend


def assert_held_back(reply: Reply) -> None:
    verdict = reply.verdict
    assert (verdict.answer, verdict.confidence, verdict.calibrated, verdict.abstained) == (None, None, False, True)
    assert (verdict.answerable, verdict.answerability, verdict.outside_domain) == (None, None, True)
    assert [hint.code for hint in reply.hints] == ["outside_model_domain"]
    assert verdict.candidates[0].answer == "yes"
    assert verdict.raw_answer == "yes"


async def test_outside_computed_and_from_the_cache() -> None:
    gateway, backend = await made(around(0.1))
    first = await gateway.answer(Picture(lambda: WHITE), Question("a?"))
    second = await gateway.answer(Picture(lambda: WHITE), Question("a?", top_k=1))
    assert (first.cached, second.cached) == (False, True)
    assert len(backend.asked) == 1
    assert_held_back(first)
    assert_held_back(second)
    assert first.hints == (OUTSIDE_MODEL_DOMAIN,)


async def test_inside_computed_and_from_the_cache() -> None:
    gateway, _ = await made(around(0.9))
    for cached in (False, True):
        reply = await gateway.answer(Picture(lambda: WHITE), Question("a?"))
        assert reply.cached is cached
        assert (reply.verdict.answer, reply.verdict.calibrated, reply.verdict.outside_domain) == ("yes", True, False)
        assert reply.hints == ()


async def test_each_picture_is_judged_by_its_own_statistics() -> None:
    gateway, _ = await made(around(0.9))
    for _ in range(2):  # the second time from the cache
        assert_held_back(await gateway.answer(Picture(lambda: BLACK), Question("a?")))
        assert (await gateway.answer(Picture(lambda: WHITE), Question("a?"))).verdict.answer == "yes"


@pytest.mark.parametrize("max_risk", [0.0, 1.0])
async def test_a_risk_makes_no_difference_outside(max_risk: float) -> None:
    gateway, _ = await made(around(0.1))
    assert_held_back(await gateway.answer(Picture(lambda: WHITE), Question("a?", max_risk=max_risk)))


async def test_all_questions_of_a_picture() -> None:
    gateway, _ = await made(around(0.1))
    for reply in await gateway.answer_all(Picture(lambda: WHITE), [Question("a?"), Question("b?")]):
        assert_held_back(reply)


@pytest.mark.parametrize("calibration", [None, Calibration.load(BASE)])
async def test_pictures_are_looked_at_only_where_a_calibration_reads_them(calibration: Calibration | None) -> None:
    gateway, _ = await made(calibration)
    reply = await gateway.answer(Picture(lambda: WHITE), Question("a?"))
    assert reply.image.statistics is None
    assert (reply.verdict.answer, reply.hints) == ("yes", ())


async def test_the_cache_is_given_the_statistics_of_the_picture_as_decoded() -> None:
    kept = []

    class Watched(MemoryCache):
        async def put(self, key, cached) -> None:
            kept.append(cached)
            await super().put(key, cached)

    gateway, backend = await made(around(0.9), Watched(1 << 20))
    await gateway.answer(Picture(lambda: WHITE), Question("a?"))
    assert kept[0].statistics == picture_statistics(backend.prepared[0].picture)
    assert tuple(kept[0].statistics) == STATISTICS


async def test_a_confidence_by_the_picture() -> None:
    by_picture = {"kind": "linear", "features": ["brightness"], "weights": [0], "bias": 0}
    confidence = {"quantity": "top_mass", "maps": {"default": by_picture}}
    gateway, _ = await made(Calibration.load(BASE | {"confidence": confidence}))
    for _ in range(2):
        assert (await gateway.answer(Picture(lambda: WHITE), Question("a?"))).verdict.confidence == 0.5
