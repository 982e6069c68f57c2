"""The model card of an added model, written from what was found and measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from huggingface_hub.repocard import metadata_load
from jinja2 import Environment, StrictUndefined

from models.vilt.add.agreement import MADE
from service.answers import is_unanswerable
from service.backends.manifest import ModelManifest
from service.backends.processor import ViltProcessor

TEMPLATE = Path(__file__).with_name("card.md.jinja")
UNKNOWN = "unknown"


def licence_of(readme: Path) -> str:
    """The licence that a hub's README names in its front matter; "unknown" where it names none."""
    try:
        named = (metadata_load(readme) or {}).get("license") if readme.is_file() else None
    except (ValueError, AttributeError, yaml.YAMLError):
        return UNKNOWN
    if isinstance(named, list):
        named = ", ".join(map(str, named))
    return str(named) if named else UNKNOWN


def card(manifest: ModelManifest, labels: Sequence[str], made: Mapping[str, Any]) -> str:
    """The text of MODEL_CARD.md.

    Args:
        manifest: the model's.
        labels: its answers.
        made: how it was made, as `summary` tells.
    """
    environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False)
    processor = ViltProcessor.load(manifest.path(manifest.processor.file))
    return environment.from_string(TEMPLATE.read_text("utf-8")).render(
        name=manifest.model.name,
        description=manifest.model.description,
        source=manifest.source.checkpoint,
        revision=manifest.source.revision,
        hub="/" in manifest.source.checkpoint,
        precision=manifest.source.precision,
        licence=manifest.model.license,
        scores=manifest.scores.kind,
        max_tokens=manifest.tokenizer.max_tokens,
        shortest_edge=processor.shortest_edge,
        longest_edge=processor.longest_edge,
        labels=labels,
        unanswerable=[label for label in labels if is_unanswerable(label)],
        megabytes=made["megabytes"],
        parity=made["parity"],
        agreement=made["agreement"],
        no_photographs=made["agreement"] is not None and made["agreement"]["about"] == MADE,
    )
