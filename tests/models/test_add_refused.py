"""Sources that no model can be made of: a line that says why, exit code 1, and nothing is there afterwards."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.checkpoints import LABELS, add, environment, export_python, make_checkpoint, needs_export
from tests.support.process import VQA

pytestmark = [pytest.mark.export, needs_export]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_checkpoint(tmp_path_factory.mktemp("checkpoints") / "tiny")


def config(**changes: object) -> Callable[[Path], None]:
    """Other values in config.json; None takes a key out."""

    def change(folder: Path) -> None:
        path = folder / "config.json"
        content = json.loads(path.read_text()) | changes
        path.write_text(json.dumps({key: value for key, value in content.items() if value is not None}))

    return change


def without(*names: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        for name in names:
            (folder / name).unlink()

    return change


def written(name: str, text: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_text(text) and None


def processor(**changes: object) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / "preprocessor_config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return change


def cut(folder: Path) -> None:
    """The last half of the weights is not there."""
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:100_000])


def index(metadata: object = None, **shards: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        content = {"metadata": metadata or {"total_size": 1}, "weight_map": shards}
        (folder / "model.safetensors.index.json").write_text(json.dumps(content))

    return change


def both(*changes: Callable[[Path], object]) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        for each in changes:
            each(folder)

    return change


def a_far_token(folder: Path) -> None:
    """One more token, whose number is beyond the embeddings."""
    path = folder / "tokenizer.json"
    content = json.loads(path.read_text())
    content["model"]["vocab"]["zebra"] = 500_000
    path.write_text(json.dumps(content))


def no_unknown_token(folder: Path) -> None:
    """A tokenizer that cannot say that it does not know a word, and does not know "what"."""
    path = folder / "tokenizer.json"
    content = json.loads(path.read_text())
    content["model"]["vocab"] = {"[PAD]": 0, "[CLS]": 1, "[SEP]": 2}
    content["model"]["unk_token"] = "[UNK]"
    content["added_tokens"] = []
    path.write_text(json.dumps(content))


def a_shard_is_missing(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    index(a="model-00001-of-00002.safetensors", b="model-00002-of-00002.safetensors")(folder)
    (folder / "model-00001-of-00002.safetensors").write_bytes(b"")


def pickled_rubbish(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(b"no pickle at all")


def other_tokenizer(folder: Path) -> None:
    """A tokenizer.json that frames a question with nothing."""
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"post_processor": None}))


def names(*labels: object) -> dict[str, object]:
    return {str(k): label for k, label in enumerate(labels)}


LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 470378972\n"
# What is done to a good folder, and what is to be said of it.
FAULTS: dict[str, tuple[Callable[[Path], object], str]] = {
    "no config": (without("config.json"), "has no config.json"),
    "broken config": (written("config.json", '{"architectures": ['), "config.json: it is no JSON"),
    "another model": (config(architectures=["BlipForQuestionAnswering"]), "architecture is BlipForQuestionAnswering"),
    "another head": (config(architectures=["ViltForMaskedLM"]), "architecture is ViltForMaskedLM; only ViltForQ"),
    "no architecture": (config(architectures=None), "its architecture is not named"),
    "samples patches": (config(max_image_length=200), "max_image_length is 200; only with -1"),
    "no labels": (config(id2label=None), "it names no labels (id2label)"),
    "unnamed labels": (config(id2label=names("LABEL_0", "LABEL_1")), "its labels are LABEL_0, …, which are no answers"),
    "a gap": (config(id2label={"0": "yes", "2": "no"}), "id2label has no label 1 of 2"),
    "a number for a label": (config(id2label=names("yes", 5)), "the label 5 in id2label is no text"),
    "blank labels": (config(id2label=names("", " ")), "all labels in id2label are blank"),
    "other count": (config(id2label=names(*LABELS[:5])), "names 5 labels, and the head's weights are of another"),
    "other layers": (config(num_hidden_layers=3), "16 weights are not in the files"),
    "other width": (config(intermediate_size=128), "has another shape in the weights than config.json asks"),
    "no weights": (without("model.safetensors"), "has no weights: none of model.safetensors"),
    "missing shard": (a_shard_is_missing, "model-00002-of-00002.safetensors is missing"),
    "shard elsewhere": (
        both(without("model.safetensors"), index(a="../model.safetensors")),
        "'../model.safetensors' in its weight_map is",
    ),
    "index without metadata": (
        both(without("model.safetensors"), index("none", a="model.safetensors")),
        "it has no metadata",
    ),
    "LFS pointer": (written("model.safetensors", LFS), "a pointer of Git LFS, not the weights"),
    "cut weights": (cut, "the weights (model.safetensors) cannot be read"),
    "pickled rubbish": (pickled_rubbish, "the weights (pytorch_model.bin) cannot be read"),
    "no processor": (without("preprocessor_config.json"), "has no preprocessor_config.json"),
    "another processor": (processor(image_processor_type="CLIPImageProcessor"), "is of a CLIPImageProcessor"),
    "odd processor": (processor(do_normalize=False), "do_normalize must be true"),
    "odd edges": (processor(size_divisor=24), "size_divisor is 24, and must be a multiple"),
    "no tokenizer": (without("tokenizer.json", "vocab.txt"), "has no tokenizer: neither tokenizer.json nor"),
    "half a vocabulary": (without("tokenizer.json", "tokenizer_config.json"), "has no tokenizer"),
    "broken tokenizer": (written("tokenizer.json", "{}"), "no tokenizer can be read from it"),
    "other tokenizer": (other_tokenizer, "it is no BERT tokenizer: a question becomes what"),
    "fewer tokens": (config(vocab_size=50), "tokens, the checkpoint knows 50"),
    "a far token": (a_far_token, "it has 500,001 tokens, the checkpoint knows"),
    "no unknown token": (no_unknown_token, "no tokenizer can be read from it"),
    "odd patches": (config(patch_size="x"), "patch_size must be a positive whole number, not 'x'"),
    "no patches": (config(patch_size=0), "patch_size must be a positive whole number, not 0"),
    "true patches": (config(patch_size=True), "patch_size must be a positive whole number, not True"),
    "odd vocabulary": (config(vocab_size="abc"), "vocab_size must be a positive whole number, not 'abc'"),
    "odd positions": (config(max_position_embeddings="40"), "max_position_embeddings must be a positive whole"),
    "few positions": (config(max_position_embeddings=2), "with max_position_embeddings 2 no question can be read"),
    "odd image": (config(image_size=[384]), "image_size must be a positive whole number, not [384]"),
    "grey pictures": (config(num_channels=1), "num_channels is 1; only colour pictures"),
    "half a patch": (config(image_size=100), "image_size is 100, and must be a multiple of patch_size"),
    "deep config": (written("config.json", "[" * 100_000), "config.json: it is no JSON"),
    "quantised": (config(quantization_config={"load_in_8bit": True}), "quantization_config is set"),
    "other file": (config(transformers_weights="v2.safetensors"), "transformers_weights is set"),
    "half a character": (config(id2label=names("yes", "\ud83d")), "in id2label is no text"),
    "odd activation": (config(hidden_act="x"), "no model can be made as config.json says: KeyError"),
    "no heads": (config(num_attention_heads=0), "no model can be made as config.json says: ZeroDivisionError"),
    "far padding": (config(pad_token_id=99999), "no model can be made as config.json says: AssertionError"),
    "no divisor": (processor(size_divisor=0), "size_divisor must be a whole number"),
    "no number": (processor(image_mean=[0.5, float("nan"), 0.5]), "image_mean must hold finite numbers"),
}


def refused(*arguments: str | Path, code: int = 1) -> str:
    done = add(*arguments)
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.mark.parametrize("fault", FAULTS)
def test_a_folder_that_is_no_checkpoint(fault: str, checkpoint: Path, tmp_path: Path) -> None:
    folder = tmp_path / "source"
    shutil.copytree(checkpoint, folder)
    change, says = FAULTS[fault]
    change(folder)
    said = refused(folder, "--models-dir", tmp_path / "models").splitlines()[-1]
    assert says in said
    assert said.startswith("vqa: ")
    assert not (tmp_path / "models").exists() or list((tmp_path / "models").iterdir()) == []


def test_weights_that_no_comparison_can_tell_anything_of(checkpoint: Path, tmp_path: Path) -> None:
    """A head of zeros gives every picture the same scores: a wrong export would give them, too."""
    script = """
import sys
from transformers import ViltForQuestionAnswering as V
model = V.from_pretrained(sys.argv[1])
model.classifier[-1].weight.data.zero_()
model.save_pretrained(sys.argv[2])
"""
    shutil.copytree(checkpoint, tmp_path / "dull")
    export_python("-c", script, checkpoint, tmp_path / "dull")
    said = refused(tmp_path / "dull", "--models-dir", tmp_path / "models")
    assert "nothing shows that the ONNX graph equals the checkpoint" in said
    assert list((tmp_path / "models").iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("nowhere",), 1, "there is no folder 'nowhere', and it is no hub id"),
        (("/nowhere/at/all",), 1, "there is no folder '/nowhere/at/all'"),
        (("",), 1, "there is no folder ''"),
        (("~nobody-of-this-name/x",), 1, "~nobody-of-this-name/x"),
        (("owner/name", "--revision", "\udcff"), 1, "--revision is no text in UTF-8"),
        (("FOLDER", "--license", "\udcff"), 1, "--license is no text in UTF-8"),
        (("FOLDER/config.json",), 1, "is a file; give the checkpoint's folder"),
        (("FOLDER", "--name", "../up"), 1, "'../up' cannot be a model's name"),
        (("FOLDER", "--name", "a name"), 1, "'a name' cannot be a model's name"),
        (("FOLDER", "--name", "vilt-shapes"), 1, "vilt-shapes is the embedded model"),
        (("FOLDER", "--name", "vilt-shapes", "--force"), 1, "vilt-shapes is the embedded model"),
        (("FOLDER", "--name", "precious"), 1, "is there already and no model folder"),
        (("FOLDER", "--name", "precious", "--force"), 1, "is there already and no model folder"),
        (("FOLDER", "--models-dir", "FOLDER/config.json"), 1, "config.json"),
        (("FOLDER", "--revision", "main"), 1, "--revision is of a hub's repository"),
        (("FOLDER", "--int8", "--questions", "nowhere.jsonl"), 1, "nowhere.jsonl"),
        (("FOLDER", "--questions", "some.jsonl"), 2, "--questions is for --int8"),
        (("FOLDER", "--agreement-questions", "0", "--int8"), 2, "--agreement-questions: must be 1 or more"),
        (("FOLDER", "--scores", "logprob"), 2, "invalid choice: 'logprob'"),
        ((), 2, "SOURCE"),
    ],
)
def test_wrong_usage(arguments: tuple[str, ...], code: int, says: str, checkpoint: Path, tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "work.txt").write_text("mine")
    words = [word.replace("FOLDER", str(checkpoint)) for word in arguments]
    where = [] if "--models-dir" in words else ["--models-dir", str(tmp_path)]
    assert says in refused(*words, *where, code=code)
    assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")] == ["precious", "precious/work.txt"]


def test_a_full_disk_says_so(checkpoint: Path, tmp_path: Path) -> None:
    """A limit on the size of files stands in for it: it fails in the same places."""
    command = f"ulimit -f 200; exec {VQA} models add {checkpoint} --models-dir {tmp_path / 'models'}"
    done = subprocess.run(["bash", "-c", command], env=environment(), capture_output=True, text=True)
    assert done.returncode == 1
    assert "File too large" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert list((tmp_path / "models").iterdir()) == []
