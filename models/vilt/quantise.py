"""An int8 copy of a model folder: `python -m models.vilt.quantise models/vilt-shapes --out build/vilt-shapes-int8`.

Dynamic quantisation of the weights of matrix products and embeddings, a scale for each channel. Activations are scaled
by the batch, so a question's scores depend a little on its neighbours: the manifest says `precision = "int8"`, and
serving asks one question at a time. The calibration is copied: it is the fp32 model's.
"""

from __future__ import annotations

import argparse
import logging
import shutil
import tempfile
from pathlib import Path

import onnx
from onnxruntime.quantization import QuantType, quantize_dynamic

from service.backends.digests import rewrite_digests
from service.backends.manifest import ManifestError, ModelManifest, read_manifest

OPERATORS = ["MatMul", "Gemm", "Gather"]
GRAPH = "model.onnx"
OF_THE_ORIGINAL = (GRAPH, "checkpoint", "examples", "parity.json", "evaluation.json", "curve.csv", "MODEL_CARD.md")


def quantise(source: Path, target: Path) -> None:
    """Quantise a graph."""
    graph = onnx.load(source)
    # The exporter's shapes are of the example that it traced; the quantiser stumbles over them.
    del graph.graph.value_info[:]
    # It advises on the root logger to fuse operators first, which gains nothing here (models/vilt/export.py).
    logging.getLogger().addFilter(_no_advice)
    with tempfile.TemporaryDirectory() as scratch:
        plain = Path(scratch) / "plain.onnx"
        onnx.save(graph, plain)
        quantize_dynamic(plain, target, op_types_to_quantize=OPERATORS, per_channel=True, weight_type=QuantType.QInt8)


def _no_advice(record: logging.LogRecord) -> bool:
    return "pre-processing before quantization" not in record.getMessage()


def quantised_copy(folder: Path, made: Path, name: str) -> ModelManifest:
    """Make an int8 copy of a model folder, without what tells of the original.

    Args:
        folder: the fp32 model's.
        made: the folder to make.
        name: the copy's.

    Raises:
        ManifestError: the folder cannot be used, or is of an int8 model already.
    """
    if read_manifest(folder).source.precision == "int8":
        raise ManifestError(f"{folder}: it is an int8 model already")
    shutil.copytree(folder, made, ignore=shutil.ignore_patterns(*OF_THE_ORIGINAL))
    quantise(folder / GRAPH, made / GRAPH)
    return rewrite_digests(made, name, "int8")


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
        try:
            quantised_copy(given.folder, made, given.out.resolve().name)
        except ManifestError as error:
            parser.error(str(error))
        made.rename(given.out)
    sizes = [(path / GRAPH).stat().st_size / 1e6 for path in (given.folder, given.out)]
    print(f"{given.out}: {sizes[1]:.2f} MB, was {sizes[0]:.2f} MB")


if __name__ == "__main__":
    main()
