"""Replies as they look, for the OpenAPI document; a test holds them against the schemas."""

from __future__ import annotations

from typing import Any

ANSWER_EXAMPLE: dict[str, Any] = {
    "id": "9f1c2ab04e7d4c7f8a55c2f1c3b0a9d2",
    "answer": "red",
    "confidence": 0.998,
    "calibrated": True,
    "answerable": True,
    "answerability": 0.997,
    "abstained": False,
    "candidates": [{"answer": "red", "probability": 0.9991}, {"answer": "brown", "probability": 0.0004}],
    "off_set": 0.0,
    "raw_answer": "red",
    "answer_type": "other",
    "hints": [],
    "backend": "classifier",
    "route": {"policy": "auto", "reason": "no choices were given, and the classifier is the only backend"},
    "model": {"id": "vilt-shapes", "revision": "0d3f0b7f0a6f1c55", "calibration": "5f6b1c0e9a7d"},
    "image": {
        "sha256": "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
        "width": 64,
        "height": 64,
    },
    "cached": False,
    "warnings": [
        {
            "code": "demo_model",
            "message": "This is a demonstration model: it knows drawn shapes, not photographs.",
        }
    ],
    "timings_ms": {"decode": 0.61, "queue": 0.11, "inference": 2.31, "total": 3.62},
}

_ITEM_PROBLEM: dict[str, Any] = {
    "type": "urn:vqa:problem:question_empty",
    "title": "The question is empty",
    "status": 422,
    "detail": "The question has no visible character. Ask something.",
    "code": "question_empty",
    "request_id": "9f1c2ab04e7d4c7f8a55c2f1c3b0a9d2",
    "field": "questions[1].question",
}

ANSWERS_EXAMPLE: dict[str, Any] = {
    "id": "9f1c2ab04e7d4c7f8a55c2f1c3b0a9d2",
    "results": [{"result": ANSWER_EXAMPLE}, {"problem": _ITEM_PROBLEM}],
}

READY_EXAMPLE: dict[str, Any] = {
    "status": "ready",
    "backends": {"classifier": {"state": "ready", "detail": ""}},
}
NOT_READY_EXAMPLE: dict[str, Any] = {
    "status": "not_ready",
    "backends": {"classifier": {"state": "starting", "detail": ""}},
}

MODELS_EXAMPLE: dict[str, Any] = {
    "models": [
        {
            "id": "vilt-shapes",
            "backend": "classifier",
            "revision": "0d3f0b7f0a6f1c55",
            "calibration": "5f6b1c0e9a7d",
            "demo": True,
            "state": "ready",
        }
    ]
}
