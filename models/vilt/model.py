"""The small ViLT: its configuration, its fresh weights, and how a checkpoint folder is read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor
from transformers import ViltConfig, ViltForQuestionAnswering

SMALL = Path(__file__).parent / "small"
"""Configuration, tokenizer and processor of the embedded model: what a run from random weights starts with. The
tokenizer was trained once (`models.vilt.tokenizer`): its trainer breaks ties at random."""
POSITION_SCALE = 0.5
PATCH_SCALE = 3.0


def read_config(folder: Path) -> ViltConfig:
    """The configuration in a checkpoint folder.

    Raises FileNotFoundError when there is none.
    """
    if not (folder / "config.json").is_file():
        raise FileNotFoundError(f"{folder} is no checkpoint folder: it has no config.json")
    return ViltConfig.from_pretrained(folder, local_files_only=True)


def set_labels(config: ViltConfig, labels: Sequence[str]) -> None:
    """Name the scores."""
    config.id2label = dict(enumerate(labels))
    config.label2id = {label: k for k, label in enumerate(labels)}


def fresh_model(config: ViltConfig, labels: Sequence[str], seed: int) -> ViltForQuestionAnswering:
    """Random weights, with the picture's side made as loud as the text's.

    Transformers starts positions and the class token at zero and patches at 0.02, a tenth of the size of the text
    embeddings; a model of this size then takes several times as long to see its first shape. Here positions start as
    two-dimensional sines and cosines, which are trained like any weight afterwards, and the patch projection three
    times as large.
    """
    set_labels(config, labels)
    torch.manual_seed(seed)
    model = ViltForQuestionAnswering(config)
    embeddings = model.vilt.embeddings
    side = config.image_size // config.patch_size
    with torch.no_grad():
        embeddings.position_embeddings[0, 1:] = POSITION_SCALE * sine_positions(side, config.hidden_size)
        embeddings.cls_token.normal_(std=config.initializer_range)
        embeddings.patch_embeddings.projection.weight.mul_(PATCH_SCALE)
    return model


def sine_positions(side: int, size: int, longest: float = 100.0) -> Tensor:
    """Two-dimensional sine-cosine positions (as in MoCo v3, Chen et al. 2021), side * side x size, row by row.

    A quarter of the dimensions each for the sine and cosine of row and column; frequencies from 1 to 1/`longest`
    radians a patch.
    """
    quarter = size // 4
    frequencies = longest ** -(torch.arange(quarter) / quarter)
    angles = torch.arange(side)[:, None] * frequencies
    line = torch.cat([angles.sin(), angles.cos()], dim=1)  # side x size / 2
    rows, columns = line[:, None].expand(side, side, -1), line[None].expand(side, side, -1)
    return torch.cat([rows, columns], dim=2).reshape(side * side, size)


def load_model(checkpoint: Path) -> ViltForQuestionAnswering:
    """A checkpoint folder in the hub's format (config.json, model.safetensors), fp32, ready for inference."""
    read_config(checkpoint)
    return ViltForQuestionAnswering.from_pretrained(checkpoint, dtype=torch.float32, local_files_only=True).eval()
