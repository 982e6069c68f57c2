"""Export a ViLT checkpoint to ONNX through Optimum: `python -m models.vilt.export CHECKPOINT --out MODEL_DIR`.

Writes MODEL_DIR/model.onnx: one file, fp32, opset 18, batch, tokens, height and width dynamic, no random operator.
Inputs input_ids, attention_mask, pixel_mask (int64) and pixel_values (float32); output logits. ONNX Runtime's
transformer optimiser is left out on purpose: it breaks the attention mask of this graph and gains nothing.
Example: python -m models.vilt.export runs/vilt-shapes/checkpoint --out models/vilt-shapes
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

import onnx
import torch
from optimum.exporters.onnx import onnx_export_from_model
from optimum.exporters.onnx.config import TextAndVisionOnnxConfig
from optimum.exporters.onnx.model_patcher import ModelPatcher
from optimum.utils import DummyTextInputGenerator, NormalizedTextAndVisionConfig
from optimum.utils.input_generators import DummyInputGenerator
from transformers import ViltForQuestionAnswering

from models.vilt.embedding import make_deterministic
from models.vilt.model import load_model

OPSET = 18
TASK = "visual-question-answering"
RANDOM_OPERATORS = {
    "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli",
}  # fmt: skip


class ViltDummyPictures(DummyInputGenerator):
    """Wide pictures for tracing, the last one padded: a square, unpadded batch would let shapes be mixed up."""

    SUPPORTED_INPUT_NAMES = ("pixel_values", "pixel_mask")

    def __init__(
        self,
        task: str,  # noqa: ARG002 - Optimum's signature
        normalized_config: NormalizedTextAndVisionConfig,
        batch_size: int = 2,
        **_: object,
    ) -> None:
        self.batch_size = batch_size
        self.height = normalized_config.image_size
        self.width = self.height + 2 * normalized_config.patch_size

    def generate(
        self,
        input_name: str,
        framework: str = "pt",
        int_dtype: str = "int64",  # noqa: ARG002 - Optimum's signature
        float_dtype: str = "fp32",
    ) -> torch.Tensor:
        if input_name == "pixel_values":
            shape = [self.batch_size, 3, self.height, self.width]
            return self.random_float_tensor(shape, framework=framework, dtype=float_dtype)
        mask = torch.ones(self.batch_size, self.height, self.width, dtype=torch.long)
        mask[-1, :, self.height :] = 0
        return mask


class ViltPatcher(ModelPatcher):
    """The deterministic visual embedding for the length of the export."""

    def __enter__(self) -> ViltPatcher:
        super().__enter__()
        make_deterministic(self._model)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        del self._model.vilt.embeddings.visual_embed  # the instance attribute; the class's own method shows again


class ViltOnnxConfig(TextAndVisionOnnxConfig):
    """Optimum has no configuration for ViLT; this one names its inputs, their dynamic axes and the patcher."""

    NORMALIZED_CONFIG_CLASS = NormalizedTextAndVisionConfig.with_args(allow_new=True)
    DUMMY_INPUT_GENERATOR_CLASSES = (DummyTextInputGenerator, ViltDummyPictures)
    DEFAULT_ONNX_OPSET = OPSET
    ATOL_FOR_VALIDATION = 1e-4
    _MODEL_PATCHER = ViltPatcher

    @property
    def inputs(self) -> Mapping[str, dict[int, str]]:
        return {
            "input_ids": {0: "batch_size", 1: "sequence_length"},
            "attention_mask": {0: "batch_size", 1: "sequence_length"},
            "pixel_values": {0: "batch_size", 2: "height", 3: "width"},
            "pixel_mask": {0: "batch_size", 1: "height", 2: "width"},
        }

    @property
    def outputs(self) -> Mapping[str, dict[int, str]]:
        return {"logits": {0: "batch_size"}}


def export(model: ViltForQuestionAnswering, target: Path) -> None:
    """Write one ONNX file; weights over 2 GB, which ONNX keeps outside the file, are not expected of a ViLT.

    Raises ValueError when the graph has random operators or is not a single file.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        onnx_export_from_model(
            model,
            scratch,
            task=TASK,
            opset=OPSET,
            custom_onnx_configs={"model": ViltOnnxConfig(model.config, task=TASK)},
            do_validation=False,  # `models.vilt.parity` compares with the stock model, over more cases
            preprocessors=None,
        )
        files = sorted(p.name for p in Path(scratch).iterdir() if p.suffix not in (".json", ".txt"))
        if files != ["model.onnx"]:
            raise ValueError(f"expected one file model.onnx, the export wrote {files}")
        graph = onnx.load(Path(scratch) / "model.onnx")
    random = {node.op_type for node in graph.graph.node} & RANDOM_OPERATORS
    if random:
        raise ValueError(f"the exported graph draws random numbers: {sorted(random)}")
    onnx.save(graph, target)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path, help="folder with config.json and model.safetensors")
    parser.add_argument("--out", type=Path, required=True, help="model folder; model.onnx is written there")
    arguments = parser.parse_args()
    target = arguments.out / "model.onnx"
    export(load_model(arguments.checkpoint), target)
    print(f"{target} {target.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
