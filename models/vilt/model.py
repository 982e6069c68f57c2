"""The small ViLT: its configuration, its fresh weights, and how a checkpoint folder is read."""

from __future__ import annotations

from pathlib import Path

import torch
from transformers import ViltConfig, ViltForQuestionAnswering

from models.shapes.questions import ANSWERS
from models.vilt.processor import SHORTEST_EDGE
from models.vilt.tokenizer import MAX_TOKENS

PATCH_SIZE = 8


def small_config(vocab_size: int, labels: tuple[str, ...] = ANSWERS, **changes: int) -> ViltConfig:
    """Hidden 128, 4 layers, 64 patches of 8 x 8: about a million parameters."""
    sizes = {"hidden_size": 128, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 512} | changes
    return ViltConfig(
        vocab_size=vocab_size,
        image_size=SHORTEST_EDGE,
        patch_size=PATCH_SIZE,
        max_position_embeddings=MAX_TOKENS,
        max_image_length=-1,
        id2label=dict(enumerate(labels)),
        label2id={label: k for k, label in enumerate(labels)},
        pad_token_id=0,
        tie_word_embeddings=False,
        **sizes,
    )


def fresh_model(config: ViltConfig, seed: int) -> ViltForQuestionAnswering:
    """Random weights. Transformers leaves positions and the class token at zero: they start at the usual 0.02."""
    torch.manual_seed(seed)
    model = ViltForQuestionAnswering(config)
    torch.nn.init.normal_(model.vilt.embeddings.position_embeddings, std=config.initializer_range)
    torch.nn.init.normal_(model.vilt.embeddings.cls_token, std=config.initializer_range)
    return model


def load_model(checkpoint: Path) -> ViltForQuestionAnswering:
    """A checkpoint folder in the hub's format (config.json, model.safetensors), fp32, ready for inference."""
    if not (checkpoint / "config.json").is_file():
        raise FileNotFoundError(f"{checkpoint} is no checkpoint folder: it has no config.json")
    return ViltForQuestionAnswering.from_pretrained(checkpoint, dtype=torch.float32, local_files_only=True).eval()
