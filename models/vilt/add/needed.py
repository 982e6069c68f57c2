"""What an interpreter must have to add a model; imports nothing of it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import find_spec

READING = ("huggingface_hub", "numpy", "onnxruntime", "PIL", "pydantic_settings", "tokenizers", "tqdm")
"""To read a request and a source, and to leave a model that is there."""
EXPORTING = ("torch", "optimum", "transformers", "onnx", "safetensors", "jinja2", "yaml")
"""To make a model."""


def lacking(packages: Sequence[str]) -> str:
    """What this interpreter lacks of them, and what to do; empty where it has all."""
    missing = [name for name in packages if find_spec(name) is None]
    if not missing:
        return ""
    return f"{sys.executable} has no {', '.join(missing)}; make the export environment: make install-export"
