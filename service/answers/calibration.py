"""A fitted calibration, loaded with its model.

    {"version": 1, "fitted_on": "text", "questions": 4000, "target": "vqa_accuracy(always)",
     "confidence": {"quantity": "top_mass", "score_kind": "softmax",
                    "maps": {"default": MAP, "yes/no": MAP, "number": MAP, "other": MAP},
                    "narrowed": {"default": MAP, ...}},
     "answerability": {"kind": "logistic", "features": ["unanswerable_logit", "top_logit"],
                       "weights": [w1, w2], "bias": b, "threshold": 0.5,
                       "narrowed": {"features": ["unanswerable_logit"], "weights": [w], "bias": b}},
     "domain": DOMAIN,
     "notes": anything}

`confidence`, `answerability` and `domain` may each be absent: not fitted. Of `maps`, `default` is needed; a type
without a map takes it. `score_kind` and `notes` are optional. For MAP see `maps`, for DOMAIN `domain`.

- `narrowed` is for questions whose caller narrowed the answers down (choices, a named set): the same, of what means the
  same then, the masses of the best answerable member and of "unanswerable". Without it the others serve those, too.
- `top_mass` is the absolute mass (`Posterior.mass`) of the best answerable member: what the model believes of
  its answer before the answer set flatters it. Its map gives the expected VQA accuracy of that answer.
- Answerability is the probability that the question can be answered: logistic(weights . features + bias), over
  features of the posterior and statistics of the picture (`evidence`); or `{"kind": "isotonic", "mass": "answerable",
  "x": [...], "y": [...], "threshold"}`, a map of the mass that is not "unanswerable". At `threshold` and above the
  question counts as answerable.
- A picture outside the domain is not of the kind that the model knows: its answer is held back.

Where `score_kind` is named, a posterior of another kind is not calibrated by it: a sigmoid score of 0.8 and a
softmax probability of 0.8 are different quantities.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from service.answers.answer_types import AnswerType
from service.answers.domain import Domain, read_domain
from service.answers.evidence import Evidence
from service.answers.maps import (
    LINEAR_KEYS,
    CalibrationError,
    CalibrationMap,
    EdgedMap,
    LinearMap,
    check_keys,
    read_linear,
    read_map,
    read_number,
    read_object,
)
from service.answers.posterior import ScoreKind
from service.images.statistics import STATISTICS

VERSION: Final = 1
DEFAULT: Final = "default"
_MAP_NAMES: Final = {DEFAULT, AnswerType.YES_NO, AnswerType.NUMBER, AnswerType.OTHER}


@dataclass(frozen=True)
class Confidence:
    """The fitted maps from `top_mass` to expected VQA accuracy, by answer type."""

    maps: Mapping[str, CalibrationMap]
    score_kind: ScoreKind | None
    narrowed: Mapping[str, CalibrationMap] | None = None

    def applies_to(self, score_kind: ScoreKind) -> bool:
        """Whether masses made of scores of this kind are the quantity that was fitted."""
        return self.score_kind in (None, score_kind)

    def __call__(self, evidence: Evidence, answer_type: str) -> float:
        """The expected VQA accuracy, in [0, 1]."""
        maps = self.narrowed if evidence.narrowed and self.narrowed is not None else self.maps
        fitted = maps.get(answer_type, maps[DEFAULT])
        return min(max(fitted.of(evidence), 0.0), 1.0)


@dataclass(frozen=True)
class Answerability:
    """The fitted probability that a question can be answered."""

    model: CalibrationMap
    threshold: float
    narrowed: LinearMap | None = None

    def __call__(self, evidence: Evidence) -> float:
        """The probability, in [0, 1]."""
        return (self.narrowed or self.model if evidence.narrowed else self.model).of(evidence)


@dataclass(frozen=True)
class Calibration:
    """What was fitted for a model, and on what.

    Attributes:
        id: a digest of the file's content, whatever its layout; 12 hexadecimal digits.
        fitted_on: the data it was fitted on, in words.
        questions: how many questions.
        target: what was fitted to.
        confidence: None if not fitted.
        answerability: None if not fitted.
        domain: None if not fitted.
    """

    id: str
    fitted_on: str
    questions: int
    target: str
    confidence: Confidence | None
    answerability: Answerability | None
    domain: Domain | None = None

    @cached_property
    def reads_pictures(self) -> bool:
        """Whether any of it is judged by statistics of the picture."""
        fitted: list[CalibrationMap] = []
        if self.confidence is not None:
            fitted += [*self.confidence.maps.values(), *(self.confidence.narrowed or {}).values()]
        if self.answerability is not None:
            fitted += [each for each in (self.answerability.model, self.answerability.narrowed) if each is not None]
        plain = [each.inner if isinstance(each, EdgedMap) else each for each in fitted]
        features = {name for each in plain if isinstance(each, LinearMap) for name in each.features}
        return self.domain is not None or bool(features & set(STATISTICS))

    def applies_to(self, score_kind: ScoreKind) -> bool:
        """Whether it was fitted on scores of this kind; where the file does not say, any."""
        return self.confidence is None or self.confidence.applies_to(score_kind)

    @classmethod
    def load(cls, source: Path | str | Mapping[str, object]) -> Calibration:
        """From a file, or from what such a file holds.

        Raises:
            CalibrationError: it is no such calibration; the message names the key.
            OSError: the file cannot be read.
        """
        if isinstance(source, Mapping):
            return cls._read(source)
        path = Path(source)
        try:
            value = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise CalibrationError(f"{path.name} is not JSON: {error}") from error
        try:
            return cls._read(read_object(value, "the calibration"))
        except CalibrationError as error:
            raise CalibrationError(f"{path.name}: {error}") from error

    @classmethod
    def _read(cls, body: Mapping[str, object]) -> Calibration:
        known = {"version", "fitted_on", "questions", "target", "confidence", "answerability", "domain", "notes"}
        check_keys(body, known, "calibration")
        if body.get("version") != VERSION:
            raise CalibrationError(f"version must be {VERSION}")
        questions = read_number(body.get("questions"), "questions")
        if questions < 0 or questions != int(questions):
            raise CalibrationError("questions must be a whole number and not negative")
        confidence, answerability, domain = (body.get(key) for key in ("confidence", "answerability", "domain"))
        return cls(
            id=_digest(body),
            fitted_on=_read_text(body, "fitted_on"),
            questions=int(questions),
            target=_read_text(body, "target"),
            confidence=None if confidence is None else _read_confidence(confidence),
            answerability=None if answerability is None else _read_answerability(answerability),
            domain=None if domain is None else read_domain(domain, "domain"),
        )


def _digest(body: Mapping[str, object]) -> str:
    try:
        canonical = json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise CalibrationError(f"calibration is not JSON: {error}") from error
    return hashlib.sha256(canonical.encode("utf-8")).hexdigest()[:12]


def _read_text(body: Mapping[str, object], key: str) -> str:
    value = body.get(key)
    if not isinstance(value, str) or not value.strip():
        raise CalibrationError(f"{key} must be a text, and not blank")
    return value


def _read_confidence(value: object) -> Confidence:
    at = "confidence"
    body = read_object(value, at)
    check_keys(body, {"quantity", "score_kind", "maps", "narrowed"}, at)
    if body.get("quantity") != "top_mass":
        raise CalibrationError(f"{at}.quantity must be top_mass")
    kind = body.get("score_kind")
    if kind is not None and kind not in list(ScoreKind):
        raise CalibrationError(f"{at}.score_kind must be one of {', '.join(ScoreKind)}")
    narrowed = None if body.get("narrowed") is None else _read_maps(body.get("narrowed"), f"{at}.narrowed")
    maps = _read_maps(body.get("maps"), f"{at}.maps")
    return Confidence(maps, None if kind is None else ScoreKind(str(kind)), narrowed)


def _read_maps(value: object, at: str) -> dict[str, CalibrationMap]:
    maps = read_object(value, at)
    check_keys(maps, set(_MAP_NAMES), at)
    if DEFAULT not in maps:
        raise CalibrationError(f"{at}.{DEFAULT} is missing")
    return {name: read_map(entry, f"{at}.{name}") for name, entry in maps.items()}


def _read_answerability(value: object) -> Answerability:
    at = "answerability"
    body = read_object(value, at)
    model: CalibrationMap
    if body.get("kind") == "isotonic":
        check_keys(body, {"kind", "mass", "x", "y", "threshold"}, at)
        model = read_map({key: part for key, part in body.items() if key != "threshold"}, at, "answerable")
    elif body.get("kind") == "logistic":
        check_keys(body, {"kind", "threshold", "narrowed", *LINEAR_KEYS}, at)
        model = read_linear(body, at)
    else:
        raise CalibrationError(f"{at}.kind must be logistic or isotonic")
    threshold = read_number(body.get("threshold"), f"{at}.threshold")
    if not 0 <= threshold <= 1:
        raise CalibrationError(f"{at}.threshold must be within 0 and 1")
    narrowed = body.get("narrowed")
    if narrowed is None:
        return Answerability(model, threshold)
    fallback = read_object(narrowed, f"{at}.narrowed")
    check_keys(fallback, set(LINEAR_KEYS), f"{at}.narrowed")
    return Answerability(model, threshold, read_linear(fallback, f"{at}.narrowed"))
