"""The embedded model folder as serving reads it: digests, labels, tokenizer, calibration, card. Needs no torch."""

from __future__ import annotations

import json
import shutil
import tomllib
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from PIL import Image
from tokenizers import Tokenizer

from models.shapes.questions import ANSWERS
from models.vilt.card import with_figures
from service.answers import Calibration, Evidence, ScoreKind
from service.backends.digests import rewrite_digests
from service.backends.manifest import file_digest, read_manifest
from service.backends.processor import ViltProcessor
from service.images import picture_statistics
from tests.support.serving import Running

FOLDER = Path(__file__).parents[2] / "models" / "vilt-shapes"


@pytest.fixture(scope="module")
def session() -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(str(FOLDER / "model.onnx"), providers=["CPUExecutionProvider"])


def test_digests_match_the_manifest() -> None:
    manifest = read_manifest(FOLDER)
    assert set(manifest.files) == set(manifest.needed_files())
    assert len(manifest.files) == 5
    assert manifest.faults() == []


def test_a_changed_file_is_noticed_and_rewriting_accepts_it(tmp_path: Path) -> None:
    for name in [*read_manifest(FOLDER).files, "model.toml"]:
        shutil.copyfile(FOLDER / name, tmp_path / name)
    assert read_manifest(tmp_path).faults() == []
    (tmp_path / "labels.json").write_text("[]")
    assert [fault.split(":")[0] for fault in read_manifest(tmp_path).faults()] == ["labels.json"]
    before = tomllib.loads((tmp_path / "model.toml").read_text())
    rewrite_digests(tmp_path)
    assert read_manifest(tmp_path).faults() == []
    after = tomllib.loads((tmp_path / "model.toml").read_text())
    assert after.pop("files") != before.pop("files")
    assert after == before


def test_the_graph_has_the_agreed_inputs_and_one_output_a_label(session: onnxruntime.InferenceSession) -> None:
    inputs = {i.name: (i.type, len(i.shape)) for i in session.get_inputs()}
    assert inputs == {
        "input_ids": ("tensor(int64)", 2),
        "attention_mask": ("tensor(int64)", 2),
        "pixel_values": ("tensor(float)", 4),
        "pixel_mask": ("tensor(int64)", 3),
    }
    (output,) = session.get_outputs()
    assert output.name == "logits"
    labels = json.loads((FOLDER / "labels.json").read_text())
    example = {
        "input_ids": np.full((2, 3), 5, np.int64),
        "attention_mask": np.ones((2, 3), np.int64),
        "pixel_values": np.zeros((2, 3, 64, 72), np.float32),
        "pixel_mask": np.ones((2, 64, 72), np.int64),
    }
    assert session.run(None, example)[0].shape == (2, len(labels))


def test_the_file_is_small() -> None:
    assert (FOLDER / "model.onnx").stat().st_size < 16_000_000


def test_labels_are_the_generators_answers() -> None:
    labels = json.loads((FOLDER / "labels.json").read_text())
    assert labels == list(ANSWERS)
    config = json.loads((FOLDER / "checkpoint" / "config.json").read_text())
    assert [config["id2label"][str(k)] for k in range(len(labels))] == labels
    assert config["architectures"] == ["ViltForQuestionAnswering"]


def test_the_calibration_is_sane() -> None:
    """More certain is more confident, less "unanswerable" is more answerable, drawings are inside and noise is not."""
    calibration = Calibration.load(FOLDER / "calibration.json")
    assert calibration.confidence is not None
    assert calibration.confidence.applies_to(ScoreKind.SOFTMAX)
    assert not calibration.confidence.applies_to(ScoreKind.SIGMOID)
    assert set(calibration.confidence.maps) == {"default", "yes/no", "number", "other"}
    drawing = picture_statistics(Image.open(FOLDER / "examples" / "three-shapes.png").convert("RGB"))
    for kind in ("yes/no", "number", "other"):
        told = [
            calibration.confidence(Evidence((p, 1 - p), p, 1 - p, 0.0, drawing), kind) for p in (0.55, 0.7, 0.85, 0.99)
        ]
        assert told == sorted(told), kind
        assert told[-1] > 0.9, kind
    assert calibration.answerability is not None
    sure, unsure = (Evidence((0.99, 0.01), *masses, drawing) for masses in ((0.99, 0.01, 0.0), (0.01, 0.0, 0.99)))
    assert calibration.answerability(unsure) < calibration.answerability.threshold < calibration.answerability(sure)
    assert calibration.domain is not None
    assert not calibration.domain.outside(drawing)
    noise = np.random.default_rng(0).normal(128, 40, (48, 64, 3)).clip(0, 255).astype(np.uint8)
    clutter = Image.fromarray(noise).resize((640, 480), Image.Resampling.BICUBIC)
    assert calibration.domain.outside(picture_statistics(clutter))


def test_tokenizer_knows_every_ascii_character_anywhere_in_a_word() -> None:
    tokenizer = Tokenizer.from_file(str(FOLDER / "tokenizer.json"))
    unknown = tokenizer.token_to_id("[UNK]")
    for character in map(chr, range(33, 127)):
        for text in (character, f"q{character}", f"{character}q", f"q{character}q"):
            assert unknown not in tokenizer.encode(text).ids, text
    assert tokenizer.encode("What COLOR is it?").ids == tokenizer.encode("what color is it?").ids
    tokens = tokenizer.encode("is there a red circle?").tokens
    assert tokens == ["[CLS]", "is", "there", "a", "red", "circle", "?", "[SEP]"]
    assert tokenizer.token_to_id("[PAD]") == 0


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ((64, 64), (64, 64)),
        ((480, 640), (64, 80)),  # 85.3 wide, floored to the divisor
        ((640, 480), (80, 64)),
        ((100, 1000), (8, 104)),  # the longer edge is at most int(1333 / 800 * 64) = 106, floored to 104
        ((1, 4000), (8, 104)),  # would be floored to 0
    ],
)
def test_picture_sizes(size: tuple[int, int], expected: tuple[int, int]) -> None:
    processor = ViltProcessor.load(FOLDER / "preprocessor_config.json")
    assert processor.target_size(*size) == expected
    prepared = processor(Image.new("RGB", (size[1], size[0])))
    assert prepared.shape == (3, *expected)
    assert prepared.min() == prepared.max() == -1.0


@pytest.mark.parametrize(
    ("name", "question", "answer"),
    [
        ("red-circle.png", "What color is the circle?", "red"),
        ("red-circle.png", "What shape is in the image?", "circle"),
        ("red-circle.png", "Is there a blue shape?", "no"),
        ("red-circle.png", "What does the label say?", "unanswerable"),
        ("three-shapes.png", "Is there a triangle?", "yes"),
        ("three-shapes.png", "What color is the rectangle?", "blue"),
        ("three-shapes.png", "How many shapes are there?", "3"),
        ("too-dark.png", "What color is the shape?", "unanswerable"),
    ],
)
def test_examples_of_the_model_card(served: Running, name: str, question: str, answer: str) -> None:
    picture = (FOLDER / "examples" / name).read_bytes()
    reply = served.client.post("/answer", files={"image": picture}, data={"question": question}).json()
    assert reply["answer"] == answer
    assert f"| {question}" in (FOLDER / "MODEL_CARD.md").read_text()


def test_the_cards_figures_are_those_measured() -> None:
    card, report = (FOLDER / "MODEL_CARD.md").read_text(), json.loads((FOLDER / "evaluation.json").read_text())
    assert with_figures(card, report) == card
    changed = report | {"easy_vqa_test": report["easy_vqa_test"] | {"accuracy": 12.34}}
    assert "12.34 %" in with_figures(card, changed)


def test_what_the_card_and_the_readme_promise() -> None:
    """The figures that were measured keep what is required of the embedded model."""
    report = json.loads((FOLDER / "evaluation.json").read_text())
    easy = report["easy_vqa_test"]
    assert easy["questions"] == 9673
    assert easy["accuracy"] >= 99.3
    assert min(kind["accuracy"] for kind in easy["by_kind"].values()) >= 98
    shapes = report["shapes_test"]
    for kind in ("yes/no", "number", "other"):
        scores = shapes["trust"][kind]
        assert scores["confidence"]["brier"] < min(scores["softmax"]["brier"], scores["constant"]["brier"]), kind
        areas = {score: scores[score]["area_under_risk_coverage"] for score in ("confidence", "softmax", "constant")}
        assert areas["confidence"] < areas["constant"], kind
        # Of yes and no 98 % are right, and both orders are the same but for a handful of questions.
        assert areas["confidence"] < areas["softmax"] + (0.1 / scores["questions"] if kind == "yes/no" else 0), kind
    assert shapes["trust"]["all"]["confidence"]["ece"] <= 0.02
    assert shapes["answerability"]["average_precision_unanswerable"] >= 0.95
    assert shapes["answerability"]["average_precision_answerable"] >= 0.95
    assert shapes["flagged"] <= 0.02
    if "photographs" in report:  # they are not part of the repository
        assert report["photographs"]["held_back_or_unanswerable"] >= 0.9
        assert report["photographs"]["confidence_above_half"] <= 0.02


def test_digest_is_sha256(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    assert file_digest(tmp_path / "file") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
