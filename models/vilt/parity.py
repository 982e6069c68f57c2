"""Compare an ONNX file with PyTorch: `python -m models.vilt.parity --checkpoint DIR --onnx FILE`.

The reference is the stock transformers model, unpatched. Prints one JSON object and exits with 1 when a logit differs
by more than 1e-4, or when the check has no power: each deliberate mistake must differ by more than that.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import onnxruntime
import torch
from transformers import ViltForQuestionAnswering

from models.vilt import embedding
from models.vilt.model import load_model

TOLERANCE = 1e-4

Arrays = dict[str, np.ndarray]


class ParityError(RuntimeError):
    """The graph does not equal the checkpoint, or the comparison could not have told."""


@dataclass(frozen=True)
class Case:
    """A batch: the height and width of each picture and the number of tokens of each question."""

    sizes: tuple[tuple[int, int], ...]
    tokens: tuple[int, ...]

    @property
    def name(self) -> str:
        return "+".join(f"{h}x{w}" for h, w in self.sizes)

    @property
    def padded(self) -> bool:
        return len(set(self.sizes)) > 1


def cases(image_size: int, patch: int, max_tokens: int) -> list[Case]:
    """Alone and in batches, square to very thin, with and without padding of text and picture.

    In units of the picture size s (384 for B/32): the longest edge that the processor gives is about 1.58 s.
    """
    s, long, thin = image_size, int(1333 / 800 * image_size) // patch * patch, patch
    middle = (s + long) // 2 // patch * patch
    found = [
        Case(((s, s),), (9,)),
        Case(((s, long),), (14,)),
        Case(((long, s),), (max_tokens,)),
        Case(((s, middle),), (3,)),
        Case(((thin, long),), (8,)),
        Case(((long, thin),), (8,)),
        Case(((s, s), (s, s), (s, s)), (5, 17, 11)),
        Case(((s, long), (long, s), (s, s)), (6, 20, 12)),
        Case(((s, middle), (thin, long), (middle, s), (s, s)), (4, max_tokens, 7, 25)),
        Case(
            ((s, long), (middle, s), (s, s), (thin, long), (long, s), (s, middle), (long, thin), (s, long)),
            (6, 8, 10, 12, 14, 16, 18, 20),
        ),
    ]
    return [replace(case, tokens=tuple(min(n, max_tokens) for n in case.tokens)) for case in found]


def make_inputs(case: Case, vocab_size: int, seed: int) -> Arrays:
    """Random token ids and pixels, zeros and a zero mask where a question or picture is shorter than the batch."""
    rng = np.random.default_rng(seed)
    batch, tokens = len(case.sizes), max(case.tokens)
    height, width = max(h for h, _ in case.sizes), max(w for _, w in case.sizes)
    inputs = {
        "input_ids": np.zeros((batch, tokens), np.int64),
        "attention_mask": np.zeros((batch, tokens), np.int64),
        "pixel_values": np.zeros((batch, 3, height, width), np.float32),
        "pixel_mask": np.zeros((batch, height, width), np.int64),
    }
    for k, ((h, w), count) in enumerate(zip(case.sizes, case.tokens, strict=True)):
        inputs["input_ids"][k, :count] = rng.integers(5, vocab_size, count)
        inputs["attention_mask"][k, :count] = 1
        inputs["pixel_values"][k, :, :h, :w] = rng.uniform(-1, 1, (3, h, w))
        inputs["pixel_mask"][k, :h, :w] = 1
    return inputs


def stock_logits(model: ViltForQuestionAnswering, inputs: Arrays) -> np.ndarray:
    """Logits of the unpatched model, B x labels."""
    if "visual_embed" in vars(model.vilt.embeddings):
        raise ValueError("the reference model is patched; parity needs the stock one")
    with torch.inference_mode():
        return model(**{k: torch.from_numpy(v) for k, v in inputs.items()}).logits.numpy()


def difference(session: onnxruntime.InferenceSession, inputs: Arrays, expected: np.ndarray) -> float:
    """The largest absolute difference of a logit; NaN where there is one."""
    return float(np.abs(session.run(["logits"], inputs)[0] - expected).max())


def padded_positions_logits(model: ViltForQuestionAnswering, inputs: Arrays) -> np.ndarray:
    """Logits with each picture's positions spread over the padded size, and the mask right, B x labels.

    What an export gives that reads one size for the whole batch.
    """
    right = embedding.interpolation_weights

    def wrong(source: int, target: int, valid: torch.Tensor) -> torch.Tensor:
        return right(source, target, torch.full_like(valid, target))

    patched = mock.patch.object(embedding, "interpolation_weights", wrong)
    with patched, embedding.deterministic(model), torch.inference_mode():
        return model(**{k: torch.from_numpy(v) for k, v in inputs.items()}).logits.numpy()


def compare(model: ViltForQuestionAnswering, onnx_file: Path) -> dict:
    """All cases and the deliberate mistakes; `ok` says whether the cases agree and the mistakes show."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(str(onnx_file), options, providers=["CPUExecutionProvider"])
    config = model.config
    differences: dict[str, float] = {}
    mistakes = {"pixel_mask_all_ones": 0.0, "attention_mask_all_ones": 0.0, "positions_of_padded_size": 0.0}
    spread = []
    for seed, case in enumerate(cases(config.image_size, config.patch_size, config.max_position_embeddings)):
        inputs = make_inputs(case, config.vocab_size, seed)
        expected = stock_logits(model, inputs)
        spread.append(float(expected.std()))
        differences[case.name] = difference(session, inputs, expected)
        for name, wrong in _mistakes(case, inputs).items():
            mistakes[name] = max(mistakes[name], difference(session, wrong, expected))
        if case.padded:
            apart = float(np.abs(padded_positions_logits(model, inputs) - expected).max())
            mistakes["positions_of_padded_size"] = max(mistakes["positions_of_padded_size"], apart)
    # numpy's maximum keeps a NaN, which Python's may drop; and NaN is within no tolerance.
    worst = float(np.max(list(differences.values())))
    return {
        "ok": worst <= TOLERANCE < min(mistakes.values()),
        "tolerance": TOLERANCE,
        "largest_difference": worst,
        "cases": differences,
        "power": mistakes,
        "logits_standard_deviation": round(float(np.mean(spread)), 4),
        "parameters": sum(p.numel() for p in model.parameters()),
        "labels": config.num_labels,
        "bytes": onnx_file.stat().st_size,
    }


def check(report: Mapping[str, Any]) -> None:
    """Whether a report of `compare` is good.

    Raises:
        ParityError: it is not.
    """
    if report["ok"]:
        return
    if report["largest_difference"] <= report["tolerance"]:
        mistake, apart = min(report["power"].items(), key=lambda item: item[1])
        raise ParityError(
            f"nothing shows that the ONNX graph equals the checkpoint: the mistake {mistake} changes no score by more "
            f"than {apart:.1e}, so that the weights look untrained"
        )
    raise ParityError(
        f"a score of the ONNX graph differs from PyTorch's by {report['largest_difference']:.1e}, more than "
        f"{report['tolerance']:.0e}; no model is made of it"
    )


def _mistakes(case: Case, inputs: Arrays) -> dict[str, Arrays]:
    """What a careless caller or exporter would do; each has to give clearly different logits."""
    wrong: dict[str, Arrays] = {}
    ones = {k: np.ones_like(v) for k, v in inputs.items() if k.endswith("mask")}
    if len(set(case.tokens)) > 1:
        wrong["attention_mask_all_ones"] = inputs | {"attention_mask": ones["attention_mask"]}
    if case.padded:
        wrong["pixel_mask_all_ones"] = inputs | {"pixel_mask": ones["pixel_mask"]}
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoint", type=Path, required=True, help="folder with config.json and model.safetensors")
    parser.add_argument("--onnx", type=Path, required=True, help="the exported file")
    parser.add_argument("--threads", type=int, default=1, help="default 1")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    report = compare(load_model(arguments.checkpoint), arguments.onnx)
    print(json.dumps(report, indent=1))
    return 0 if report["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
