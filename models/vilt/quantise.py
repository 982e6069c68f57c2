"""An int8 copy of a model folder: `python -m models.vilt.quantise models/vilt-shapes --out build/vilt-shapes-int8`.

Dynamic quantisation of the weights of matrix products and embeddings, a scale for each channel. Activations are scaled
by the batch, so a question's scores depend a little on its neighbours. The calibration is copied: it is the fp32
model's.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

import onnx
from onnxruntime.quantization import QuantType, quantize_dynamic

from service.backends.digests import rewrite_digests

OPERATORS = ["MatMul", "Gemm", "Gather"]
OF_THE_ORIGINAL = ("checkpoint", "examples", "parity.json", "evaluation.json", "curve.csv", "MODEL_CARD.md")


def quantise(source: Path, target: Path) -> None:
    """Quantise a graph."""
    graph = onnx.load(source)
    # The exporter's shapes are of the example that it traced; the quantiser stumbles over them.
    del graph.graph.value_info[:]
    with tempfile.TemporaryDirectory() as scratch:
        plain = Path(scratch) / "plain.onnx"
        onnx.save(graph, plain)
        quantize_dynamic(plain, target, op_types_to_quantize=OPERATORS, per_channel=True, weight_type=QuantType.QInt8)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="model folder")
    parser.add_argument("--out", type=Path, required=True, help="model folder to make; its name is the model's")
    given = parser.parse_args()
    if given.out.exists():
        parser.error(f"--out: {given.out} is there already")
    given.out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=given.out.parent, prefix=".new-") as scratch:
        made = Path(scratch) / "model"
        shutil.copytree(given.folder, made, ignore=shutil.ignore_patterns(*OF_THE_ORIGINAL))
        quantise(given.folder / "model.onnx", made / "model.onnx")
        rewrite_digests(made, name=given.out.resolve().name)
        made.rename(given.out)
    sizes = [(path / "model.onnx").stat().st_size / 1e6 for path in (given.folder, given.out)]
    print(f"{given.out}: {sizes[1]:.2f} MB, was {sizes[0]:.2f} MB")


if __name__ == "__main__":
    main()
