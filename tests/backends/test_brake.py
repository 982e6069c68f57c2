"""An inference that nobody waits for any more is stopped half way; one that somebody waits for is not."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from collections.abc import AsyncIterator

import numpy as np
import pytest

from service.backends import Scored, State, load_manifest
from service.backends.classifier import ViltClassifier
from service.backends.session import Brake
from service.errors import Code, VQAError
from service.images import decode_image
from service.scheduling import Urgency, once_abandoned
from service.settings import load_settings
from tests.support.pictures import drawn_circle


class Held:
    """A real session; the test says how many runs may begin."""

    def __init__(self, session: object) -> None:
        self.session, self.sizes, self.go_on = session, [], threading.Semaphore(0)

    def run(self, outputs: list[str], inputs: dict[str, np.ndarray], options: object) -> object:
        self.sizes.append(len(inputs["input_ids"]))
        assert self.go_on.acquire(timeout=10)
        return self.session.run(outputs, inputs, options)


@pytest.fixture
async def classifier() -> AsyncIterator[ViltClassifier]:
    made = ViltClassifier(load_manifest(load_settings().models_dir, "vilt-shapes"), threads=1, layout="wide")
    await made.start()
    yield made
    await made.stop()


def held(classifier: ViltClassifier) -> Held:
    model = classifier._loaded
    [(way, session)] = model.sessions.items()
    hold = Held(session)
    classifier._model = dataclasses.replace(model, sessions={way: hold})
    return hold


def ask(classifier: ViltClassifier, urgency: Urgency) -> asyncio.Task[Scored]:
    picture = classifier.prepare(decode_image(drawn_circle()))
    return asyncio.ensure_future(classifier.ask(picture, "what color is it?", classifier.default_set, urgency))


async def running(hold: Held, runs: int) -> None:
    async with asyncio.timeout(10):
        while len(hold.sizes) < runs:
            await asyncio.sleep(0.005)


async def half_way(classifier: ViltClassifier, hold: Held, *urgencies: Urgency) -> list[asyncio.Task[Scored]]:
    """Questions whose one inference has begun, and waits."""
    first = ask(classifier, Urgency())
    await running(hold, 1)
    asked = [ask(classifier, urgency) for urgency in urgencies]
    async with asyncio.timeout(10):
        while classifier.waiting < len(urgencies):
            await asyncio.sleep(0.005)
    hold.go_on.release()
    await first
    await running(hold, 2)
    return asked


async def test_it_is_stopped_once_all_have_gone_and_harms_nothing(classifier: ViltClassifier) -> None:
    hold, urgencies = held(classifier), [Urgency(), Urgency()]
    asked = await half_way(classifier, hold, *urgencies)
    pace = classifier.pace
    for urgency in urgencies:
        urgency.abandon()
    hold.go_on.release(9)
    for task in asked:
        with pytest.raises(VQAError) as gone:
            await task
        assert gone.value.code is Code.CLIENT_CLOSED_REQUEST
    assert classifier.health().state is State.READY
    assert classifier._probe is None, "the model is not suspected"
    assert classifier.pace == pace, "half an inference says nothing about a whole one"
    assert await ask(classifier, Urgency())


async def test_it_goes_on_while_one_of_the_batch_is_there(classifier: ViltClassifier) -> None:
    hold, leaves = held(classifier), Urgency()
    asked = await half_way(classifier, hold, leaves, Urgency())
    leaves.abandon()
    hold.go_on.release(9)
    assert all(await asyncio.gather(*asked))


def test_what_runs_with_an_applied_brake_ends(classifier_model: object) -> None:
    [way] = classifier_model.sessions
    brake = Brake()
    brake.apply()
    with pytest.raises(Exception, match="terminate flag"):
        classifier_model.logits([classifier_model.grey()], way, brake)
    assert classifier_model.logits([classifier_model.grey()], way, Brake()).shape[0] == 1


@pytest.fixture
async def classifier_model(classifier: ViltClassifier) -> object:
    return classifier._loaded


def test_who_is_told_that_all_have_gone() -> None:
    told: list[str] = []
    first, second = Urgency(), Urgency()
    with once_abandoned([first, second], lambda: told.append("gone")):
        first.abandon()
        assert told == []
        second.abandon()
        assert told == ["gone"]
    late = Urgency()
    with once_abandoned([late], lambda: told.append("too late")):
        pass
    late.abandon()
    assert told == ["gone"]
    with once_abandoned([late], lambda: told.append("at once")):
        assert told == ["gone", "at once"]
