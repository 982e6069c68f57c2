"""Calibrating a model folder: fit to its predictions, write the file, and rewrite the manifest's digests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from service.answers import Calibration, ScoreKind
from service.backends import ModelManifest
from service.backends.digests import check_all_but_calibration, with_calibration
from service.errors import DataError
from service.evaluation.calibrating.fit import fit
from service.evaluation.calibrating.samples import read_samples
from service.files import json_bytes

CALIBRATION_FILE: Final = "calibration.json"


def calibrate(
    predictions: Path,
    manifest: ModelManifest,
    fitted_on: str,
    advance: Callable[[int], None] = lambda _: None,
) -> dict[str, Any]:
    """Fit a model's calibration to its predictions and put it into the model's folder.

    Args:
        predictions: a folder of `vqa eval`, or its predictions.parquet.
        manifest: the model's.
        fitted_on: what the questions are, in words; they must not have been trained on.
        advance: told of each so many pictures that were looked at.

    Returns:
        A report: what was chosen, with the scores of what was not, and the ids of calibration and revision.

    Raises:
        DataError: the predictions cannot be used, or are another model's.
        ManifestError: a file of the model, its calibration apart, is not what its manifest says.
        MissingExtraError: a library of the extra `eval` is not installed.
    """
    check_all_but_calibration(manifest)  # before the work, and again when it is written
    samples = read_samples(predictions, advance)
    others = sorted({name for name, _ in samples.models} - {manifest.model.name})
    if others:
        raise DataError(predictions, f"these are predictions of {', '.join(others)}, not of {manifest.model.name}")
    calibration, report = fit(samples, fitted_on, ScoreKind(manifest.scores.kind))
    read = Calibration.load(calibration)
    changed = with_calibration(manifest, CALIBRATION_FILE, json_bytes(calibration, indent=1))
    asked = sorted({revision for _, revision in samples.models})
    named = {"model": changed.model.name, "calibration": read.id, "revision": changed.revision}
    return {**named, "revisions_asked": asked, **report}
