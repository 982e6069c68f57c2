"""`vqa models add` on checkpoint folders: what comes out is served, and answers as transformers itself does."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from service.backends import load_manifest, read_labels
from service.backends.classifier import ViltClassifier
from service.backends.layout import Way
from service.backends.vilt import ViltModel
from service.images import decode_image
from service.scheduling import Urgency
from tests.support.checkpoints import ANSWERS, LABELS, add, environment, export_python, make_checkpoint, needs_export
from tests.support.pictures import encoded
from tests.support.process import VQA, vqa_serve

pytestmark = [pytest.mark.export, needs_export]

QUESTIONS = ("What color is the cat?", "how many dogs are there in the picture", "what's on?")
# The arithmetic of another program's float32, and six digits in the reply.
CLOSE = 2e-5
# As repositories of 2022 have them.
OLD = {
    "tokenizer_config.json": {"do_lower_case": True, "model_max_length": 24, "tokenizer_class": "BertTokenizer"},
    "preprocessor_config.json": {
        "do_normalize": True, "do_resize": True, "feature_extractor_type": "ViltFeatureExtractor",
        "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5], "resample": 3, "size": 64, "size_divisor": 16,
    },
}  # fmt: skip
# transformers' own way from a picture file and a question to scores: nothing of this repository is in it.
HUB = """
import json, sys
import torch
from PIL import Image
from transformers import ViltForQuestionAnswering, ViltProcessor
folder, picture, *questions = sys.argv[1:]
processor = ViltProcessor.from_pretrained(folder)
model = ViltForQuestionAnswering.from_pretrained(folder).eval()
found = {}
for question in questions:
    with torch.inference_mode():
        logits = model(**processor(Image.open(picture), question, return_tensors="pt")).logits[0]
    found[question] = {
        kind: {model.config.id2label[k]: float(p) for k, p in enumerate(of(logits))}
        for kind, of in (("sigmoid", torch.sigmoid), ("softmax", lambda x: x.softmax(0)))
    }
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_checkpoint(tmp_path_factory.mktemp("checkpoints") / "tiny-vqa")


@pytest.fixture(scope="module")
def picture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Noise of few pixels, enlarged: 150 x 107, so that it is resized and padded to no edge."""
    noise = np.random.default_rng(5).integers(0, 256, (9, 12, 3)).astype(np.uint8)
    path = tmp_path_factory.mktemp("pictures") / "noise.png"
    path.write_bytes(encoded(Image.fromarray(noise).resize((150, 107), Image.Resampling.BICUBIC)))
    return path


@pytest.fixture(scope="module")
def expected(checkpoint: Path, picture: Path) -> dict[str, dict[str, dict[str, float]]]:
    """By question, kind of score and answer; a blank label is no answer, and its share goes to the others."""
    found = json.loads(export_python("-c", HUB, checkpoint, picture, *QUESTIONS))
    for kinds in found.values():
        blank = {kind: scores.pop("") for kind, scores in kinds.items()}
        kinds["softmax"] = {answer: p / (1 - blank["softmax"]) for answer, p in kinds["softmax"].items()}
    return found


@pytest.fixture(scope="module")
def models(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoint as it is, and its int8 copy."""
    folder = tmp_path_factory.mktemp("models")
    for flags in ((), ("--int8", "--agreement-questions", "40")):
        done = add(checkpoint, "--models-dir", folder, *flags)
        assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in folder.iterdir()) == ["tiny-vqa", "tiny-vqa-int8"]
    return folder


def verified(folder: Path, name: str) -> dict:
    """What `vqa models verify` and `vqa models show` say."""
    for command in ("verify", "show"):
        done = subprocess.run(
            [VQA, "models", command, name, "--json", "--models-dir", folder], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout
    return json.loads(done.stdout)


def answers(folder: Path, name: str, picture: Path) -> dict[str, dict[str, float]]:
    """The probability of each label, from a real server."""
    found = {}
    with vqa_serve("--models-dir", str(folder), "--classifier", name) as served:
        for question in QUESTIONS:
            data = {"question": question, "top_k": len(ANSWERS)}
            reply = served.client.post("/answer", files={"image": picture.read_bytes()}, data=data)
            assert reply.status_code == 200, reply.text
            said = reply.json()
            assert (said["calibrated"], said["confidence"]) == (False, None)
            assert not [warning for warning in said["warnings"] if warning["code"] == "demo_model"]
            found[question] = {each["answer"]: each["probability"] for each in said["candidates"]}
    return found


def test_a_server_gives_what_transformers_gives(
    models: Path, picture: Path, expected: dict[str, dict[str, dict[str, float]]]
) -> None:
    found = answers(models, "tiny-vqa", picture)
    for question in QUESTIONS:
        assert found[question] == pytest.approx(expected[question]["sigmoid"], abs=CLOSE), question
    spread = [max(each["sigmoid"].values()) - min(each["sigmoid"].values()) for each in expected.values()]
    assert min(spread) > 0.1, "the checkpoint's scores hardly differ, so that nothing was compared"


def test_the_folder_says_what_it_is_and_where_it_came_from(models: Path, checkpoint: Path) -> None:
    shown = verified(models, "tiny-vqa")
    assert {key: shown[key] for key in ("precision", "checkpoint", "calibration", "demo", "scores", "license")} == {
        "precision": "fp32", "checkpoint": "tiny-vqa", "calibration": None, "demo": False, "scores": "sigmoid",
        "license": "cc-by-4.0",
    }  # fmt: skip
    assert tuple(shown["labels"]) == LABELS
    assert shown["max_tokens"] == 24
    folder = models / "tiny-vqa"
    assert sorted(path.name for path in folder.iterdir()) == [
        "MODEL_CARD.md", "labels.json", "model.onnx", "model.toml", "parity.json", "preprocessor_config.json",
        "tokenizer.json",
    ]  # fmt: skip
    assert json.loads((folder / "parity.json").read_text())["ok"] is True
    text = "".join(path.read_text() for path in folder.iterdir() if path.suffix in (".md", ".toml", ".json"))
    assert str(checkpoint.parent) not in text
    card = (folder / "MODEL_CARD.md").read_text()
    for part in (
        "| Licence | cc-by-4.0 |", shown["checkpoint_revision"], "49,869 parameters", "yes, no, red",
        "cannot read text", "confidence: null", "vqa calibrate runs/calibration --model tiny-vqa",
    ):  # fmt: skip
        assert part in card, part
    assert "That it does not know is one answer among others (unanswerable)" in card


def test_int8_says_how_far_it_agrees(models: Path) -> None:
    shown = verified(models, "tiny-vqa-int8")
    assert shown["precision"] == "int8"
    folder = models / "tiny-vqa-int8"
    report = json.loads((folder / "quantisation.json").read_text())
    assert report["questions"] == 40
    assert report["share"] == pytest.approx(report["same_answer"] / 40)
    # Of weights rounded to 1 of 255 steps the scores are others, and nearly the same.
    assert 0 < report["largest_difference"] < 0.3
    assert report["share"] >= 0.7
    assert report["answers"] > 1
    assert "no photographs" in report["about"]
    card = (folder / "MODEL_CARD.md").read_text()
    assert f"the same in {report['same_answer']} of them" in card
    assert "What int8 costs on photographs these figures do not say" in card


def test_int8_is_served(models: Path, picture: Path, expected: dict[str, dict[str, dict[str, float]]]) -> None:
    found = answers(models, "tiny-vqa-int8", picture)
    for question in QUESTIONS:
        assert found[question] == pytest.approx(expected[question]["sigmoid"], abs=0.3), question
        assert found[question] != pytest.approx(expected[question]["sigmoid"], abs=CLOSE), "it is not int8"


async def test_an_int8_answer_does_not_depend_on_who_else_asks(models: Path) -> None:
    """Its scales are taken over a whole batch, so that a batch of several changes scores; served, none is ever made."""
    manifest = load_manifest(models, "tiny-vqa-int8")
    noise = Image.fromarray(np.random.default_rng(5).integers(0, 256, (107, 150, 3)).astype(np.uint8))
    images = [decode_image(encoded(each)) for each in (noise, Image.new("RGB", (150, 107), "white"))]
    session = ViltModel.open(manifest, "cpu", 0, {Way.WIDE: 1})
    ids = session.tokenizer.encode(QUESTIONS[0]).ids
    items = [session.item(session.processor(image.picture), ids) for image in images]
    together, alone = session.logits(items, Way.WIDE)[0], session.logits(items[:1], Way.WIDE)[0]
    assert np.abs(together - alone).max() > 1e-4, "a batch changes nothing here, so nothing would be shown"
    classifier = ViltClassifier(manifest, threads=2)
    await classifier.start()
    try:
        asks = [(classifier.prepare(image), question) for image in images for question in QUESTIONS]
        one = [await classifier.ask(*each, classifier.default_set, Urgency()) for each in asks]
        all_at_once = await asyncio.gather(
            *(classifier.ask(*each, classifier.default_set, Urgency()) for each in asks * 8)
        )
    finally:
        await classifier.stop()
    for first, second in zip(one * 8, all_at_once, strict=True):
        np.testing.assert_allclose(second.posterior.probabilities, first.posterior.probabilities, atol=1e-6)


def test_questions_of_ones_own_are_asked(checkpoint: Path, picture: Path, tmp_path: Path) -> None:
    shutil.copyfile(picture, tmp_path / "noise.png")
    rows = [{"image": "noise.png", "question": question, "answers": ["yes"]} for question in QUESTIONS]
    (tmp_path / "mine.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = add(
        checkpoint, "--models-dir", tmp_path / "models", "--int8", "--questions", tmp_path / "mine.jsonl",
        "--agreement-questions", "2", "--name", "other", "--json", "--license", "MIT", "--scores", "softmax",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["name"] == "other"
    assert said["agreement"]["questions"] == 2
    assert said["agreement"]["about"] == "the first 2 of mine.jsonl"
    assert said["parity"]["largest_difference"] <= 1e-4
    assert said["seconds"] > 0
    manifest = load_manifest(tmp_path / "models", "other")
    assert said["revision"] == manifest.revision
    assert (manifest.scores.kind, manifest.model.license) == ("softmax", "MIT")
    card = (tmp_path / "models" / "other" / "MODEL_CARD.md").read_text()
    assert "photographs" not in card
    assert "one softmax over" in card


@pytest.mark.parametrize("form", ["old", "shards", "bin"])
def test_other_forms_of_a_checkpoint(
    form: str,
    checkpoint: Path,
    models: Path,
    picture: Path,
    tmp_path: Path,
    expected: dict[str, dict[str, dict[str, float]]],
) -> None:
    """The files of an older repository; weights in shards; weights as PyTorch pickles them."""
    folder = tmp_path / form
    shutil.copytree(checkpoint, folder)
    if form == "old":
        for name in ("tokenizer.json", "special_tokens_map.json"):
            (folder / name).unlink()
        for name, content in OLD.items():
            (folder / name).write_text(json.dumps(content))
    else:
        (folder / "model.safetensors").unlink()
        how = 'max_shard_size="100KB"' if form == "shards" else "safe_serialization=False"
        export_python(
            "-c",
            "import sys; from transformers import ViltForQuestionAnswering as V\n"
            f"V.from_pretrained(sys.argv[1]).save_pretrained(sys.argv[2], {how})",
            checkpoint,
            folder,
        )
        wanted = "model.safetensors.index.json" if form == "shards" else "pytorch_model.bin"
        assert (folder / wanted).is_file()
        assert not (folder / "model.safetensors").exists()
    done = add(folder, "--models-dir", tmp_path / "models", "--scores", "softmax")
    assert done.returncode == 0, done.stderr
    verified(tmp_path / "models", form)
    assert (tmp_path / "models" / form / "labels.json").read_bytes() == (models / "tiny-vqa/labels.json").read_bytes()
    found = answers(tmp_path / "models", form, picture)
    for question in QUESTIONS:
        assert found[question] == pytest.approx(expected[question]["softmax"], abs=CLOSE), question


def test_a_folder_needs_no_network_and_any_current_folder_will_do(checkpoint: Path, tmp_path: Path) -> None:
    """Whatever asks for an address goes to a closed port; and a folder `models` here is none of the repository's."""
    here = tmp_path / "here"
    (here / "models").mkdir(parents=True)
    (here / "models" / "__init__.py").write_text("raise SystemExit('the wrong package')")
    shutil.copytree(checkpoint, here / "mine")
    closed = "http://127.0.0.1:9"
    proxies = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "HF_ENDPOINT"), closed)
    done = add("mine", "--models-dir", "added", cwd=here, PYTHONPATH=os.environ.get("PYTHONPATH", ""), **proxies)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "added/mine is ready: vqa serve --classifier mine --models-dir added\n"
    assert read_labels(load_manifest(here / "added", "mine")) == list(LABELS)


def test_a_model_that_is_there_is_replaced_by_force_alone(checkpoint: Path, models: Path, tmp_path: Path) -> None:
    shutil.copytree(models / "tiny-vqa", tmp_path / "models" / "tiny-vqa")
    out = tmp_path / "models" / "tiny-vqa"
    (out / "MODEL_CARD.md").write_text("the old card")
    (out / "calibration.json").write_text("{}")
    before = load_manifest(tmp_path / "models", "tiny-vqa").revision

    refused = add(checkpoint, "--models-dir", tmp_path / "models")
    assert refused.returncode == 1
    assert "is there already" in refused.stderr
    assert "--force" in refused.stderr
    kept = add(checkpoint, "--models-dir", tmp_path / "models", "--keep", "--json")
    assert kept.returncode == 0, kept.stderr
    assert json.loads(kept.stdout)["revision"] == before
    assert (out / "MODEL_CARD.md").read_text() == "the old card"

    shutil.copytree(checkpoint, tmp_path / "tiny-vqa")
    (tmp_path / "tiny-vqa" / "README.md").write_text("another state of the same folder")
    other = add(tmp_path / "tiny-vqa", "--models-dir", tmp_path / "models", "--keep")
    assert other.returncode == 1
    assert "was made of tiny-vqa sha256:" in other.stderr

    softmax = add(checkpoint, "--models-dir", tmp_path / "models", "--keep", "--scores", "softmax")
    assert softmax.returncode == 1
    assert "its scores are read by sigmoid" in softmax.stderr

    forced = add(tmp_path / "tiny-vqa", "--models-dir", tmp_path / "models", "--force")
    assert forced.returncode == 0, forced.stderr
    assert load_manifest(tmp_path / "models", "tiny-vqa").revision != before
    assert load_manifest(tmp_path / "models", "tiny-vqa").model.license == "unknown"
    assert "the old card" not in (out / "MODEL_CARD.md").read_text()
    assert not (out / "calibration.json").exists()
    assert [path.name for path in (tmp_path / "models").iterdir()] == ["tiny-vqa"]


def test_two_runs_at_once_do_not_take_each_others_place(checkpoint: Path, tmp_path: Path) -> None:
    """Both find nothing there when they begin; who comes last says so, and leaves what is there."""
    other = make_checkpoint(tmp_path / "other" / "tiny-vqa", LABELS[:-1])
    command = [VQA, "models", "add", "--models-dir", str(tmp_path / "models"), "--keep", "--name", "one"]
    runs = [
        subprocess.Popen([*command, str(source)], env=environment(), stderr=subprocess.PIPE, text=True)
        for source in (checkpoint, other)
    ]
    said = [run.communicate(timeout=300)[1] for run in runs]
    codes = [run.returncode for run in runs]
    assert sorted(codes) == [0, 1], said
    assert "is there already, and was made of" in said[codes.index(1)]
    kept = (LABELS, LABELS[:-1])[codes.index(0)]
    assert read_labels(load_manifest(tmp_path / "models", "one")) == list(kept)
    assert [path.name for path in (tmp_path / "models").iterdir()] == ["one"]
