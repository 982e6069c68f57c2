from __future__ import annotations

import copy
import json
import math

import pytest

from service.answers import Calibration, CalibrationError, Evidence, ScoreKind
from service.images import STATISTICS
from tests.support.bodies import changed

DOMAIN = {
    "kind": "gaussian_mixture",
    "pictures": 100,
    "statistics": ["brightness"],
    "center": [0.5],
    "scale": [0.1],
    "weights": [1.0],
    "means": [[0.0]],
    "factors": [[[1.0]]],
    "threshold": 5.0,
}
FITTED = {
    "version": 1,
    "fitted_on": "text",
    "questions": 4000,
    "target": "vqa_accuracy(always)",
    "confidence": {
        "quantity": "top_mass",
        "maps": {
            "default": {"kind": "isotonic", "x": [0, 1], "y": [0.2, 0.8]},
            "yes/no": {"kind": "logistic", "a": 1, "b": 0},
        },
    },
    "answerability": {
        "kind": "logistic",
        "features": ["unanswerable_logit", "top_logit"],
        "weights": [-2.0, 0.5],
        "bias": 0.25,
        "threshold": 0.5,
    },
}


def seen(top, unanswerable=0.0, **statistics):
    """Evidence of an answer with this mass."""
    masses = tuple(sorted((top, unanswerable), reverse=True))
    return Evidence(masses, top, 0.0, unanswerable, statistics)


def test_maps_by_type():
    calibration = Calibration.load(FITTED)
    assert calibration.confidence is not None
    assert calibration.confidence(seen(0.5), "other") == pytest.approx(0.5)
    assert calibration.confidence(seen(1.0), "number") == pytest.approx(0.8)
    assert calibration.confidence(seen(0.3), "yes/no") == pytest.approx(0.3)


def test_answerability_by_the_product_of_odds():
    fitted = Calibration.load(FITTED).answerability
    assert fitted is not None
    odds = (0.2 / 0.8) ** -2.0 * (0.6 / 0.4) ** 0.5 * math.exp(0.25)
    assert fitted(seen(0.6, 0.2)) == pytest.approx(odds / (1 + odds), abs=1e-12)
    one = copy.deepcopy(FITTED)
    one["answerability"] |= {"features": ["top_logit"], "weights": [1.0], "bias": 0}
    assert Calibration.load(one).answerability(seen(0.6, 0.39)) == pytest.approx(0.6)
    # a mass below 1e-4 (the least probable of ten listed answers may have been cut off there) counts as 1e-4
    assert Calibration.load(one).answerability(seen(0.0)) == pytest.approx(1e-4, rel=1e-6)


def test_answerability_by_the_picture():
    body = copy.deepcopy(FITTED)
    body["answerability"] |= {"features": ["sharpness", "top_logit"], "weights": [2.0, 1.0], "bias": -3.0}
    fitted = Calibration.load(body).answerability
    odds = math.exp(2.0 * 1.25 - 3.0) * 0.6 / 0.4
    assert fitted(seen(0.6, sharpness=1.25)) == pytest.approx(odds / (1 + odds), abs=1e-12)
    with pytest.raises(KeyError, match="sharpness"):
        fitted(seen(0.6))


def test_answerability_as_a_map_of_the_mass_that_is_not_unanswerable():
    steps = {"kind": "isotonic", "mass": "answerable", "x": [0.1, 0.5, 0.9], "y": [0.02, 0.4, 0.98], "threshold": 0.5}
    calibration = Calibration.load(FITTED | {"answerability": steps})
    for unanswerable, expected in ((1.0, 0.02), (0.9, 0.02), (0.7, 0.21), (0.5, 0.4), (0.3, 0.69), (0.0, 0.98)):
        assert calibration.answerability(seen(0.05, unanswerable)) == pytest.approx(expected)
    assert not calibration.reads_pictures


def test_whether_it_reads_pictures():
    assert not Calibration.load(FITTED).reads_pictures
    assert Calibration.load(FITTED | {"domain": DOMAIN}).reads_pictures
    for name in STATISTICS:
        body = copy.deepcopy(FITTED)
        body["answerability"]["features"][1] = name
        assert Calibration.load(body).reads_pictures
        body = copy.deepcopy(FITTED)
        body["confidence"]["maps"]["number"] = {"kind": "linear", "features": [name], "weights": [1], "bias": 0}
        assert Calibration.load(body).reads_pictures
        linear = {"features": [name], "weights": [1], "bias": 0}
        for part, narrowed in (("answerability", linear), ("confidence", {"default": {"kind": "linear", **linear}})):
            body = copy.deepcopy(FITTED)
            body[part]["narrowed"] = narrowed
            assert Calibration.load(body).reads_pictures
    body = copy.deepcopy(FITTED)
    body["confidence"]["maps"]["number"] = {"kind": "linear", "features": ["entropy"], "weights": [1], "bias": 0}
    assert not Calibration.load(body).reads_pictures
    bare = {key: FITTED[key] for key in ("version", "fitted_on", "questions", "target")}
    assert not Calibration.load(bare).reads_pictures


def test_the_domain_is_part_of_it():
    calibration = Calibration.load(FITTED | {"domain": DOMAIN})
    assert calibration.domain.outside({"brightness": 0.9})  # four standard deviations away
    assert not calibration.domain.outside({"brightness": 0.6})
    assert calibration.id != Calibration.load(FITTED).id
    assert Calibration.load(FITTED).domain is None
    with pytest.raises(CalibrationError, match=r"domain\.scale"):
        Calibration.load(FITTED | {"domain": DOMAIN | {"scale": [0]}})


def test_either_part_may_be_absent():
    bare = {key: FITTED[key] for key in ("version", "fitted_on", "questions", "target")}
    calibration = Calibration.load({**bare, "notes": {"made": "by hand"}})
    assert calibration.confidence is None
    assert calibration.answerability is None
    assert calibration.domain is None
    assert (calibration.fitted_on, calibration.questions, calibration.target) == (
        "text", 4000, "vqa_accuracy(always)",
    )  # fmt: skip


def test_from_a_file_and_its_id(tmp_path):
    path = tmp_path / "calibration.json"
    path.write_text(json.dumps(dict(reversed(FITTED.items())), indent=2))
    calibration = Calibration.load(path)
    assert calibration == Calibration.load(FITTED)
    assert calibration.id == Calibration.load(str(path)).id == Calibration.load(FITTED).id
    assert len(calibration.id) == 12
    assert Calibration.load({**FITTED, "questions": 4001}).id != calibration.id


def test_scores_of_another_kind_are_not_what_was_fitted():
    fitted = Calibration.load(FITTED).confidence
    assert fitted.applies_to(ScoreKind.SOFTMAX)
    assert fitted.applies_to(ScoreKind.SIGMOID)
    named = Calibration.load({**FITTED, "confidence": FITTED["confidence"] | {"score_kind": "sigmoid"}}).confidence
    assert not named.applies_to(ScoreKind.SOFTMAX)
    assert named.applies_to(ScoreKind.SIGMOID)


@pytest.mark.parametrize(
    ("path", "value", "names"),
    [
        ("version", 2, "version"),
        ("version", None, "version"),
        ("fitted_on", "", "fitted_on"),
        ("fitted_on", None, "fitted_on"),
        ("questions", -1, "questions"),
        ("questions", 1.5, "questions"),
        ("target", 3, "target"),
        ("confidense", {}, "calibration.confidense"),
        ("confidence", [], "confidence must be an object"),
        ("confidence.quantity", "probability", "confidence.quantity"),
        ("confidence.score_kind", "logits", "confidence.score_kind"),
        ("confidence.maps", None, "confidence.maps"),
        ("confidence.maps.default", None, "confidence.maps.default"),
        ("confidence.maps.color", {}, "confidence.maps.color"),
        ("confidence.maps.number", {"kind": "x"}, "confidence.maps.number.kind"),
        ("answerability.kind", "beta", "answerability.kind"),
        ("answerability", {"kind": "isotonic", "x": [0, 1], "y": [0, 1], "threshold": 0.5}, r"answerability\.mass"),
        ("answerability", {"kind": "isotonic", "x": [0], "y": [1], "mass": "all"}, r"answerability\.mass"),
        ("answerability", {"kind": "isotonic", "x": [0], "y": [1], "mass": "answerable"}, r"answerability\.threshold"),
        ("answerability", {"kind": "isotonic", "narrowed": {}}, r"answerability\.narrowed"),
        (
            "confidence.maps.number",
            {"kind": "isotonic", "x": [0], "y": [1], "mass": "answerable"},
            r"confidence\.maps\.number\.mass",
        ),
        ("answerability.features", [], "answerability.features"),
        ("answerability.features", ["top_logit", "blur"], r"answerability.features\[1\]"),
        ("answerability.features", ["top_logit", "top_logit"], r"answerability.features\[1\]"),
        ("answerability.features", [["top_logit"], "top_logit"], r"answerability.features\[0\]"),
        ("answerability.weights", [1.0], "answerability.weights"),
        ("answerability.weights", [1.0, math.nan], "calibration|answerability.weights"),
        ("answerability.bias", None, "answerability.bias"),
        ("answerability.threshold", 1.5, "answerability.threshold"),
        ("answerability.extra", 1, "answerability.extra"),
        ("answerability.features", ["top_logit", "brightness", "contrast"], "answerability.weights"),
        ("domain", [], "domain must be an object"),
        ("domain", {"kind": "gaussian"}, "domain.kind"),
        ("domain", {"kind": "gaussian_mixture", "area": 1}, "domain.area"),
    ],
)
def test_a_calibration_that_cannot_be_used_names_the_key(path, value, names):
    with pytest.raises(CalibrationError, match=names):
        Calibration.load(changed(FITTED, path, value))


def test_a_file_that_cannot_be_used_is_named(tmp_path):
    path = tmp_path / "broken.json"
    path.write_text("{")
    with pytest.raises(CalibrationError, match=r"broken\.json is not JSON"):
        Calibration.load(path)
    path.write_text("[]")
    with pytest.raises(CalibrationError, match=r"broken\.json: .*object"):
        Calibration.load(path)
    path.write_bytes(b"\xff")
    with pytest.raises(CalibrationError, match="not JSON"):
        Calibration.load(path)
    with pytest.raises(OSError, match="absent"):
        Calibration.load(tmp_path / "absent.json")
