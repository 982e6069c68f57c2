"""The embedded model folder as serving reads it: digests, labels, tokenizer, calibration. Needs no torch."""

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

from models.manifest import digest, rewrite_digests, served_files
from models.shapes.examples import Example
from models.shapes.questions import ANSWERS, Question
from models.vilt.card import with_figures
from models.vilt.processor import output_size, preprocess
from models.vilt.runner import ModelFolder
from service.answers.calibration import Calibration
from service.answers.posterior import ScoreKind
from service.backends.manifest import read_manifest

FOLDER = Path(__file__).parents[2] / "models" / "vilt-shapes"


@pytest.fixture(scope="module")
def manifest() -> dict:
    return tomllib.loads((FOLDER / "model.toml").read_text())


@pytest.fixture(scope="module")
def session() -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(str(FOLDER / "model.onnx"), providers=["CPUExecutionProvider"])


def test_digests_match_the_manifest(manifest: dict) -> None:
    assert set(served_files(manifest)) == {
        "model.onnx", "labels.json", "tokenizer.json", "preprocessor_config.json", "calibration.json",
    }  # fmt: skip
    assert read_manifest(FOLDER).faults() == []


def test_a_changed_file_is_noticed_and_rewriting_accepts_it(tmp_path: Path) -> None:
    for name in [*served_files(tomllib.loads((FOLDER / "model.toml").read_text())), "model.toml"]:
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
    assert (FOLDER / "model.onnx").stat().st_size < 6_000_000
    assert (FOLDER / "checkpoint" / "model.safetensors").stat().st_size < 5_000_000


def test_labels_are_the_generators_answers() -> None:
    labels = json.loads((FOLDER / "labels.json").read_text())
    assert labels == list(ANSWERS)
    assert len(labels) == 20
    config = json.loads((FOLDER / "config.json").read_text())
    assert [config["id2label"][str(k)] for k in range(len(labels))] == labels
    assert config["architectures"] == ["ViltForQuestionAnswering"]


def test_calibration_parses_and_its_maps_do_not_fall() -> None:
    calibration = json.loads((FOLDER / "calibration.json").read_text())
    assert calibration["version"] == 1
    assert calibration["confidence"]["quantity"] == "top_mass"
    maps = calibration["confidence"]["maps"]
    assert set(maps) == {"default", "yes/no", "number", "other"}
    for fitted in maps.values():
        if fitted["kind"] == "isotonic":
            assert 2 <= len(fitted["x"]) == len(fitted["y"]) <= 64
            assert (np.diff(fitted["x"]) > 0).all()
            assert (np.diff(fitted["y"]) >= 0).all()
            assert 0 < fitted["y"][0] <= fitted["y"][-1] < 1
        else:
            assert fitted["kind"] in ("beta", "logistic")
            assert fitted["a"] >= 0
            assert fitted["kind"] == "logistic" or fitted["b"] >= 0
    answerability = calibration["answerability"]
    assert answerability["kind"] == "logistic"
    assert answerability["features"] == ["unanswerable_logit", "top_logit"]
    assert answerability["weights"][0] < 0  # the likelier "unanswerable", the less answerable


def test_serving_accepts_the_manifest_and_the_calibration() -> None:
    """Its readers refuse unknown keys, maps that fall and files that changed."""
    assert read_manifest(FOLDER).faults() == []
    calibration = Calibration.load(FOLDER / "calibration.json")
    assert calibration.confidence is not None
    assert calibration.confidence.applies_to(ScoreKind.SOFTMAX)
    assert not calibration.confidence.applies_to(ScoreKind.SIGMOID)
    assert calibration.confidence(0.3, "other") < calibration.confidence(0.999, "other")
    assert calibration.answerability is not None
    assert calibration.answerability(0.99, 0.005) < calibration.answerability.threshold
    assert calibration.answerability(0.001, 0.99) > calibration.answerability.threshold


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
    assert output_size(*size) == expected
    pixels = np.zeros((*size, 3), np.uint8)
    assert preprocess(pixels).shape == (3, *expected)
    assert preprocess(pixels).min() == preprocess(pixels).max() == -1.0


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
def test_examples_of_the_model_card(name: str, question: str, answer: str) -> None:
    model = ModelFolder(FOLDER)
    pixels = np.asarray(Image.open(FOLDER / "examples" / name).convert("RGB"))
    probabilities = model.probabilities([Example(pixels, [Question(question, answer, "example")])])[0]
    assert probabilities.sum() == pytest.approx(1.0)
    assert model.labels[int(probabilities.argmax())] == answer
    assert f"| {question}" in (FOLDER / "MODEL_CARD.md").read_text()


def test_the_cards_figures_are_those_measured() -> None:
    card, report = (FOLDER / "MODEL_CARD.md").read_text(), json.loads((FOLDER / "evaluation.json").read_text())
    assert with_figures(card, report) == card
    changed = report | {"drawn_test": report["drawn_test"] | {"accuracy": 0.1234}}
    assert "12.34%" in with_figures(card, changed)


def test_digest_is_sha256(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    assert digest(tmp_path / "file") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
