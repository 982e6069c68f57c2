"""What a checkpoint folder has to be: all that can be said of it before its weights are loaded.

The format is the hub's: `config.json`, weights (one file or shards), `preprocessor_config.json`, and `tokenizer.json`
or, in older repositories, `vocab.txt` with `tokenizer_config.json`. Needs no torch.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from models.vilt.add.request import AddError, is_text
from service.backends.manifest import file_digest
from service.backends.processor import ViltProcessor

ARCHITECTURE = "ViltForQuestionAnswering"
CONFIG, PROCESSOR, TOKENIZER, README = "config.json", "preprocessor_config.json", "tokenizer.json", "README.md"
VOCABULARY = ("vocab.txt", "tokenizer_config.json")
DESCRIPTION = (CONFIG, PROCESSOR, TOKENIZER, *VOCABULARY, "special_tokens_map.json", README)
"""Everything but the weights."""
WEIGHTS = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")
"""One of them has the weights or names their shards; the first that is there is loaded, as transformers does."""

_REFUSED = {
    "quantization_config": "quantised weights cannot be exported; give those that it was made of",
    "transformers_weights": "weights of another name are not looked for",
}
_POINTER = b"version https://git-lfs"
_UNNAMED = re.compile(r"LABEL_\d+")


@dataclass(frozen=True)
class Described:
    """What a checkpoint says of itself.

    Attributes:
        labels: the answers, in the order of the scores.
        max_tokens: the longest question that it can read.
        vocabulary_only: there is no tokenizer.json; one is to be made of vocab.txt.
    """

    folder: Path
    labels: list[str]
    max_tokens: int
    vocabulary_size: int
    vocabulary_only: bool


def describe(folder: Path) -> Described:
    """Read everything but the weights.

    Raises:
        AddError: something is missing, or is not what a ViLT for visual question answering has.
    """
    config = _json_object(folder, CONFIG)
    found = config.get("architectures")
    if found != [ARCHITECTURE]:
        named = ", ".join(map(str, found)) if isinstance(found, list) and found else "not named"
        raise AddError(f"{folder}: its architecture is {named}; only {ARCHITECTURE} can be added")
    if config.get("max_image_length", -1) != -1:
        raise AddError(
            f"{folder / CONFIG}: max_image_length is {config['max_image_length']}; only with -1 (all patches) does a "
            "picture always have the same answer"
        )
    for key, why in _REFUSED.items():
        if config.get(key) is not None:
            raise AddError(f"{folder / CONFIG}: {key} is set, and {why}")
    labels = _labels(folder / CONFIG, config.get("id2label"))
    patch, image = (_whole(folder / CONFIG, config, *each) for each in (("patch_size", 32), ("image_size", 384)))
    if image % patch:
        raise AddError(f"{folder / CONFIG}: image_size is {image}, and must be a multiple of patch_size, {patch}")
    if (channels := _whole(folder / CONFIG, config, "num_channels", 3)) != 3:
        raise AddError(f"{folder / CONFIG}: num_channels is {channels}; only colour pictures (3) can be asked about")
    _check_processor(folder, patch)
    vocabulary_only = not (folder / TOKENIZER).is_file()
    if vocabulary_only and not all((folder / name).is_file() for name in VOCABULARY):
        raise AddError(f"{folder} has no tokenizer: neither {TOKENIZER} nor {' with '.join(VOCABULARY)}")
    size = _whole(folder / CONFIG, config, "vocab_size", 30522)
    if not vocabulary_only:
        check_tokenizer(folder / TOKENIZER, size)
    tokens = _whole(folder / CONFIG, config, "max_position_embeddings", 40)
    if tokens < 3:
        raise AddError(f"{folder / CONFIG}: with max_position_embeddings {tokens} no question can be read")
    return Described(folder, labels, tokens, size, vocabulary_only)


def check_tokenizer(path: Path, known: int) -> None:
    """Whether a tokenizer.json is one that a checkpoint which knows so many tokens can have.

    Raises:
        AddError: it cannot be read, is no BERT tokenizer, or has tokens that the checkpoint does not know.
    """
    try:
        tokenizer = Tokenizer.from_file(str(path))
        tokenizer.no_truncation()
        tokenizer.no_padding()
        tokens = tokenizer.encode("what").tokens
    except Exception as error:  # the library raises no narrower one
        raise AddError(f"{path}: no tokenizer can be read from it: {error}") from error
    size = max(tokenizer.get_vocab().values(), default=0) + 1
    if size > known:
        raise AddError(f"{path}: it has {size:,} tokens, the checkpoint knows {known:,}")
    if (tokens[:1], tokens[-1:]) != (["[CLS]"], ["[SEP]"]):
        raise AddError(f"{path}: it is no BERT tokenizer: a question becomes {' '.join(tokens)}")


def weight_files(folder: Path) -> list[Path]:
    """The files of the weights.

    Raises:
        AddError: there are none, a shard is missing, or they are pointers to what was not downloaded.
    """
    first = next((folder / name for name in WEIGHTS if (folder / name).is_file()), None)
    if first is None:
        raise AddError(f"{folder} has no weights: none of {', '.join(WEIGHTS)}")
    files = [first]
    if first.suffix == ".json":
        index = _json_object(folder, first.name)
        shards = index.get("weight_map")
        if not isinstance(shards, dict) or not all(isinstance(name, str) for name in shards.values()):
            raise AddError(f"{first}: it has no weight_map with the names of the shards")
        if elsewhere := [name for name in shards.values() if Path(name).name != name]:
            raise AddError(f"{first}: {elsewhere[0]!r} in its weight_map is no file of the folder")
        if not isinstance(index.get("metadata"), dict):
            raise AddError(f"{first}: it has no metadata")
        files += [folder / name for name in sorted(set(shards.values()))]
    for file in files:
        if not file.is_file():
            raise AddError(f"{file} is missing; {first.name} names it")
        with file.open("rb") as stream:
            if stream.read(len(_POINTER)) == _POINTER:
                raise AddError(f"{file} is a pointer of Git LFS, not the weights; fetch them with `git lfs pull`")
    return files


def digest(folder: Path, weights: list[Path]) -> str:
    """What a folder's content is known by: `sha256:` and 16 digits, of all files that a model is made of."""
    files = [folder / name for name in DESCRIPTION if (folder / name).is_file()] + weights
    lines = "".join(f"{file_digest(file)}  {file.name}\n" for file in files)
    return f"sha256:{hashlib.sha256(lines.encode()).hexdigest()[:16]}"


def _labels(path: Path, names: Any) -> list[str]:
    if not isinstance(names, dict) or not names:
        raise AddError(f"{path}: it names no labels (id2label), so there is nothing to answer with")
    labels = [names.get(str(k)) for k in range(len(names))]
    if None in labels:
        raise AddError(f"{path}: id2label has no label {labels.index(None)} of {len(labels)}")
    if wrong := [label for label in labels if not isinstance(label, str) or not is_text(label)]:
        raise AddError(f"{path}: the label {wrong[0]!r} in id2label is no text")
    # One may be: the 3,129 answers of VQA v2 have a blank one among them.
    if not any(label.strip() for label in labels):
        raise AddError(f"{path}: all labels in id2label are blank")
    if all(_UNNAMED.fullmatch(label) for label in labels):
        raise AddError(f"{path}: its labels are {labels[0]}, …, which are no answers; put the answers into id2label")
    return labels


def _whole(path: Path, config: dict[str, Any], key: str, default: int) -> int:
    value = config.get(key, default)
    if type(value) is not int or value < 1:
        raise AddError(f"{path}: {key} must be a positive whole number, not {value!r}")
    return value


def _check_processor(folder: Path, patch: int) -> None:
    config = _json_object(folder, PROCESSOR)
    kind = config.get("image_processor_type") or config.get("feature_extractor_type") or "ViltImageProcessor"
    if not str(kind).startswith("Vilt"):
        raise AddError(f"{folder / PROCESSOR}: it is of a {kind}, not of a ViltImageProcessor")
    try:
        processor = ViltProcessor.load(folder / PROCESSOR)
    except (ValueError, TypeError) as error:
        raise AddError(f"{folder / PROCESSOR}: {error}") from error
    if processor.size_divisor % patch:
        raise AddError(
            f"{folder / PROCESSOR}: size_divisor is {processor.size_divisor}, and must be a multiple of the "
            f"checkpoint's patches of {patch} pixels"
        )


def _json_object(folder: Path, name: str) -> dict[str, Any]:
    path = folder / name
    if not path.is_file():
        raise AddError(f"{folder} is no checkpoint folder of the hub's format: it has no {name}")
    try:
        value = json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise AddError(f"{path}: it is no JSON: {error}") from error
    if not isinstance(value, dict):
        raise AddError(f"{path}: it must be a JSON object")
    return value
