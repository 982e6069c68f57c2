"""The classifier with the embedded model: batching changes nothing, bad items fail alone (VILT-03)."""

from __future__ import annotations

import asyncio
import dataclasses
import shutil
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import numpy as np
import onnxruntime
import psutil
import pytest
from PIL import Image

from service.backends import ManifestError, State, load_manifest
from service.backends.classifier import ViltClassifier
from service.backends.layout import Way
from service.backends.session import open_session
from service.backends.tokenizer import QuestionTokenizer
from service.errors import Code, SettingsError, VQAError
from service.images import decode_image
from service.scheduling import Urgency
from service.settings import load_settings
from tests.support.pictures import drawn_circle, encoded

MODELS = load_settings().models_dir


@pytest.fixture
async def classifier() -> AsyncIterator[ViltClassifier]:
    sizes: list[int] = []
    made = ViltClassifier(load_manifest(MODELS, "vilt-shapes"), threads=1, observe_batch=sizes.append)
    made.sizes = sizes
    await made.start()
    yield made
    await made.stop()


def prepared(classifier: ViltClassifier, data: bytes) -> object:
    return classifier.prepare(decode_image(data))


def picture(width: int, height: int, seed: int = 0) -> bytes:
    noise = np.random.default_rng(seed).integers(0, 256, (height // 5 + 1, width // 5 + 1, 3), dtype=np.uint8)
    return encoded(Image.fromarray(noise).resize((width, height)))


async def test_the_same_answer_alone_and_in_a_mixed_batch(classifier: ViltClassifier) -> None:
    data = [picture(640, 480), picture(480, 640), picture(608, 30), drawn_circle(), drawn_circle("blue")]
    questions = [
        "what color is the shape?",
        "is there a red circle in it, yes or no?",
        "how many shapes are there?",
    ]
    asks = [(prepared(classifier, d), q) for d in data for q in questions]
    alone = [await classifier.ask(p, q, classifier.default_set, Urgency()) for p, q in asks]
    classifier.sizes.clear()
    together = await asyncio.gather(*(classifier.ask(p, q, classifier.default_set, Urgency()) for p, q in asks * 2))
    assert max(classifier.sizes) > 1, "nothing was batched, so nothing was shown"
    for one, many in zip(alone * 2, together, strict=True):
        np.testing.assert_allclose(many.posterior.probabilities, one.posterior.probabilities, atol=1e-5)


async def test_one_bad_item_fails_alone(classifier: ViltClassifier) -> None:
    good = prepared(classifier, drawn_circle())
    bad = np.zeros_like(good)[:2]
    outcomes = await asyncio.gather(
        *(
            classifier.ask(p, "what color is it?", classifier.default_set, Urgency())
            for p in (good, bad, good, bad, good)
        ),
        return_exceptions=True,
    )
    assert [isinstance(outcome, Exception) for outcome in outcomes] == [False, True, False, True, False]


async def test_scores_that_are_not_numbers_are_refused(classifier: ViltClassifier) -> None:
    pixels = prepared(classifier, drawn_circle())
    pixels[:] = np.nan
    with pytest.raises(VQAError) as refused:
        await classifier.ask(pixels, "what color is it?", classifier.default_set, Urgency())
    assert refused.value.code is Code.BACKEND_INVALID_SCORES


async def test_every_bucket_of_the_processor_is_taken(classifier: ViltClassifier) -> None:
    for height, width in classifier._loaded.processor.sizes():
        pixels = np.zeros((3, height, width), dtype=np.float32)
        scored = await classifier.ask(pixels, "what is it?", classifier.default_set, Urgency())
        assert scored.posterior.probabilities.sum() == pytest.approx(1)


async def test_memory_does_not_climb_with_varied_shapes(classifier: ViltClassifier) -> None:
    """ORT-01's sibling: buckets and no memory patterns keep what a first round took."""
    process = psutil.Process()
    sizes = [(w, h) for w in range(40, 700, 60) for h in range(40, 700, 60)]

    async def one_round() -> int:
        for i, (width, height) in enumerate(sizes):
            pixels = prepared(classifier, picture(width, height, i))
            await classifier.ask(pixels, "what color is it " + "now " * (i % 20), classifier.default_set, Urgency())
        return process.memory_info().rss

    await one_round()
    before = await one_round()
    after = await one_round()
    assert after - before < 8 * 2**20


async def test_a_stopped_classifier_refuses(classifier: ViltClassifier) -> None:
    pixels = prepared(classifier, drawn_circle())
    await classifier.stop()
    assert classifier.health().state is State.STOPPED
    with pytest.raises(VQAError) as refused:
        await classifier.ask(pixels, "what color is it?", classifier.default_set, Urgency())
    assert refused.value.code is Code.NOT_READY


async def test_a_failure_while_stopping_does_not_bring_it_back(classifier: ViltClassifier) -> None:
    running, go_on = threading.Event(), threading.Event()

    class Session:
        def run(self, *arguments: object) -> object:
            running.set()
            go_on.wait(10)
            raise RuntimeError("the device is gone")

    pixels = prepared(classifier, drawn_circle())
    classifier._model = dataclasses.replace(
        classifier._loaded, sessions=dict.fromkeys(classifier._loaded.sessions, Session())
    )
    asked = asyncio.ensure_future(classifier.ask(pixels, "what color is it?", classifier.default_set, Urgency()))
    await until(running.is_set)
    stopping = asyncio.ensure_future(classifier.stop())
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(RuntimeError, match="device is gone"):
        await asked
    await stopping
    await asyncio.sleep(0.05)
    assert classifier.health().state is State.STOPPED


async def test_before_it_is_loaded_it_says_so() -> None:
    classifier = ViltClassifier(load_manifest(MODELS, "vilt-shapes"))
    assert classifier.health().state is State.STARTING
    with pytest.raises(VQAError) as refused:
        classifier.missing(classifier.default_set)
    assert refused.value.code is Code.NOT_READY
    await classifier.stop()


async def test_a_folder_that_is_not_what_its_manifest_says_is_not_served(tmp_path: Path) -> None:
    shutil.copytree(MODELS / "vilt-shapes", tmp_path / "vilt-shapes")
    (tmp_path / "vilt-shapes" / "tokenizer.json").write_text("{}")
    classifier = ViltClassifier(load_manifest(tmp_path, "vilt-shapes"))
    with pytest.raises(ManifestError, match=r"tokenizer\.json"):
        await classifier.start()
    assert classifier.health().state is State.FAILED
    assert str(tmp_path) not in classifier.health().detail, "probes need not know the server's paths"
    await classifier.stop()


async def test_a_broken_model_is_not_ready_and_is_again_once_it_works(
    classifier: ViltClassifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.backends.classifier.PROBE_EVERY_S", 0.05)
    loaded, broken = classifier._loaded, threading.Event()
    broken.set()

    class Session:
        def run(self, *arguments: object) -> object:
            if broken.is_set():
                raise RuntimeError("the device is gone")
            return loaded.sessions[Way.WIDE].run(*arguments)

    classifier._model = dataclasses.replace(loaded, sessions=dict.fromkeys(loaded.sessions, Session()))
    pixels = prepared(classifier, drawn_circle())
    with pytest.raises(RuntimeError, match="device is gone"):
        await classifier.ask(pixels, "what color is it?", classifier.default_set, Urgency())
    await until(lambda: classifier.health().state is State.FAILED)
    broken.clear()
    await until(lambda: classifier.health().state is State.READY)
    await classifier.ask(pixels, "what color is it?", classifier.default_set, Urgency())


async def test_one_bad_question_does_not_take_the_model_out(classifier: ViltClassifier) -> None:
    bad = np.zeros((2, 64, 64), dtype=np.float32)
    for _ in range(5):
        with pytest.raises(Exception, match="INVALID_ARGUMENT"):
            await classifier.ask(bad, "what color is it?", classifier.default_set, Urgency())
        await asyncio.sleep(0.02)
        assert classifier.health().state is State.READY


ODD_TEXTS = [
    "What COLOR is it?",
    "what color is it?",
    "what colör is it?",
    "what colo\u0308r is it?",
    "what color\tis\nit?",
    "what color\u00a0is it?",
    "what\x00 color is\u200b it?",
    "what\ufffd color is it?",
    "是什么颜色 what",
    "是 什么颜色what",
    "İstanbul ISTANBUL istanbul ıstanbul",
    "ß SS ss ſs",
    "ﬁsh fish ＦＩＳＨ",
    "[SEP] [sep] [MASK] [PAD]",
    "##s ##S s",
    "what color is it " * 30,
    "WHAT COLOR IS IT " * 30,
    "what color is it " * 30 + "now",
    "x" * 300,
    "X" * 300,
    "🙂 what color",
    "\ud7ff\ue000 what",
]


def test_equal_canonical_texts_are_encoded_alike() -> None:
    """What a cache may take for the same question, the model must not be able to tell apart."""
    manifest = load_manifest(MODELS, "vilt-shapes")
    tokenizer = QuestionTokenizer(manifest.path(manifest.tokenizer.file), manifest.tokenizer.max_tokens)
    for text in ODD_TEXTS + [change(t) for t in ODD_TEXTS for change in (str.upper, str.title, str.casefold)]:
        canonical = tokenizer.canonical(text)
        whole, again = tokenizer.encode(text), tokenizer.encode(canonical)
        assert whole.ids.tolist() == again.ids.tolist(), text
        assert (whole.cut, whole.words, whole.unknown) == (again.cut, again.words, again.unknown), text
    assert tokenizer.canonical("What COLOR?") == tokenizer.canonical("what color?")
    assert tokenizer.canonical("what color?") != tokenizer.canonical("what colors?")


async def test_it_tells_its_pace_and_how_it_prepares(classifier: ViltClassifier) -> None:
    first = classifier.pace
    assert first.cost_s > 0
    assert first.latency_s > 0
    pixels = prepared(classifier, drawn_circle())
    await classifier.ask(pixels, "what color is it?", classifier.default_set, Urgency())
    assert classifier.pace != first, "nothing was learnt"
    assert "pillow" in classifier.preprocessing


async def test_a_question_whose_time_is_over_costs_nothing(classifier: ViltClassifier) -> None:
    pixels = prepared(classifier, drawn_circle())
    classifier.sizes.clear()
    with pytest.raises(VQAError) as refused:
        await classifier.ask(pixels, "what color is it?", classifier.default_set, Urgency(due=0.0))
    assert refused.value.code is Code.DEADLINE_EXCEEDED
    assert classifier.sizes == []


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.01)


def test_threads_are_what_was_asked_for() -> None:
    manifest = load_manifest(MODELS, "vilt-shapes")
    session = open_session(manifest.path(manifest.source.file), device="cpu", device_id=0, threads=2)
    assert session.get_session_options().intra_op_num_threads == 2
    assert session.get_session_options().inter_op_num_threads == 1
    assert session.get_providers() == ["CPUExecutionProvider"]


@pytest.mark.skipif("CUDAExecutionProvider" in onnxruntime.get_available_providers(), reason="there is CUDA here")
def test_cuda_without_its_package_is_a_clear_refusal() -> None:
    manifest = load_manifest(MODELS, "vilt-shapes")
    with pytest.raises(SettingsError, match=r"device \(VQA_DEVICE\): cuda needs onnxruntime-gpu"):
        open_session(manifest.path(manifest.source.file), device="cuda", device_id=0, threads=1)


async def test_a_model_whose_precision_depends_on_the_batch_is_asked_one_question_at_a_time() -> None:
    manifest = load_manifest(MODELS, "vilt-shapes")
    source = manifest.source.model_copy(update={"precision": "int8"})
    for measured in (True, False):
        sizes: list[int] = []
        classifier = ViltClassifier(
            manifest.model_copy(update={"source": source}), threads=1, measured=measured, observe_batch=sizes.append
        )
        await classifier.start()
        try:
            asked = prepared(classifier, drawn_circle())
            questions = [f"is there a circle in picture {n}?" for n in range(12)]
            await asyncio.gather(*(classifier.ask(asked, q, classifier.default_set, Urgency()) for q in questions))
        finally:
            await classifier.stop()
        assert sizes == [1] * 12
