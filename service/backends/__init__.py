"""Who can answer: each backend turns a prepared picture and a question into a `Posterior`.

`base` says what a backend is; `classifier` is ViLT in ONNX Runtime. Nothing above this room may assume that a backend
runs in this process: a picture is prepared by the backend itself and handed back to it, opaque in between.
"""

from service.backends.base import Backend, Health, ModelInfo, Notice, Pace, Scored, State
from service.backends.manifest import ManifestError, ModelManifest, list_models, load_manifest, read_labels

__all__ = [
    "Backend",
    "Health",
    "ManifestError",
    "ModelInfo",
    "ModelManifest",
    "Notice",
    "Pace",
    "Scored",
    "State",
    "list_models",
    "load_manifest",
    "read_labels",
]
