"""Replies as they look, for the OpenAPI document; a test holds them against the schemas."""

from __future__ import annotations

from typing import Any

from service.errors import Code

REQUEST_ID = "9f1c2ab04e7d4c7f8a55c2f1c3b0a9d2"

ANSWER_EXAMPLE: dict[str, Any] = {
    "id": REQUEST_ID,
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
    "request_id": REQUEST_ID,
    "field": "questions[1].question",
}

ANSWERS_EXAMPLE: dict[str, Any] = {
    "id": REQUEST_ID,
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

# For each code what a detail says, and which field it names.
PROBLEM_EXAMPLES: dict[Code, tuple[str, str | None]] = {
    Code.BAD_REQUEST: ("Invalid HTTP request received.", None),
    Code.UNAUTHORIZED: ("Send a key that this server knows, as 'Authorization: Bearer KEY' or 'X-API-Key: KEY'.", None),
    Code.UNSUPPORTED_CONTENT_TYPE: (
        "The Content-Type must be application/json or multipart/form-data, not 'text/plain'.",
        None,
    ),
    Code.BODY_TOO_LARGE: ("The body is larger than 29,360,128 bytes.", None),
    Code.BODY_TIMEOUT: ("The body did not arrive within 30 s.", None),
    Code.INVALID_JSON: ("The body is not valid JSON: Expecting value (line 1, column 14).", None),
    Code.BAD_MULTIPART: (
        "The body is not usable multipart/form-data: it ends before its closing boundary, so it was cut short.",
        None,
    ),
    Code.UNKNOWN_FIELD: ("This field is not known. Known beside image: answer_set, choices, ….", "colour"),
    Code.MISSING_FIELD: ("This field is missing.", "question"),
    Code.INVALID_FIELD: ("Input should be less than or equal to 1.", "max_risk"),
    Code.IMAGE_EMPTY: ("The picture has no bytes. Check that the file was read before sending.", "image"),
    Code.IMAGE_UNDECODABLE: ("The JPEG picture cannot be decoded: its header is incomplete.", "image"),
    Code.IMAGE_TRUNCATED: ("The JPEG picture ends inside its pixel data. Send the whole file.", "image"),
    Code.IMAGE_TOO_LARGE: (
        "The picture announces 50000 x 50000 = 2,500,000,000 pixels; at most 67,108,864 are accepted. "
        "Send a smaller copy.",
        "image",
    ),
    Code.UNSUPPORTED_MEDIA_TYPE: ("The bytes are an HTML page, not a picture. Accepted: JPEG, PNG, ….", "image"),
    Code.INVALID_BASE64: (
        "The picture is not valid base64: there is a character (U+002A) that base64 does not have, at offset 17.",
        "image.base64",
    ),
    Code.URL_NOT_ALLOWED: ("This server fetches no pictures by address. Send the picture's bytes.", "image.url"),
    Code.QUESTION_EMPTY: ("The question has no visible character. Ask something.", "question"),
    Code.QUESTION_TOO_LONG: ("The question has 10,000 characters; the limit is 1,000.", "question"),
    Code.QUESTION_INVALID: (
        "The question holds the control character U+0000 at position 4. Send plain text.",
        "question",
    ),
    Code.CHOICES_INVALID: (
        "choices[0] and choices[1] are the same answer once normalised. Leave one out.",
        "choices[1]",
    ),
    Code.CHOICES_OUTSIDE_VOCABULARY: (
        "The classifier does not know 'a mongoose'. Leave them out, or use a policy that may use a generator.",
        "choices[1]",
    ),
    Code.UNKNOWN_ANSWER_SET: (
        "There is no such answer set. There are: yes-no, numbers, colors.",
        "answer_set",
    ),
    Code.UNKNOWN_MODEL: ("No model of this name is served. Served: vilt-shapes.", "model"),
    Code.NOT_CALIBRATED: (
        "This model has no fitted confidence, so no risk can be kept to. Leave max_risk out.",
        "max_risk",
    ),
    Code.GENERATOR_UNAVAILABLE: (
        "No generator is configured on this server, and open answers need one.",
        "answer_set",
    ),
    Code.CLASSIFIER_UNAVAILABLE: ("No classifier is configured on this server.", "policy"),
    Code.NOT_READY: ("The classifier is starting.", None),
    Code.SATURATED: ("256 questions are under way and the limit is 256. Try again shortly.", None),
    Code.DRAINING: ("The service is shutting down. Ask another replica.", None),
    Code.DEADLINE_EXCEEDED: ("There was no answer within 2000 ms.", None),
    Code.BACKEND_INVALID_SCORES: ("The model gave scores that are not numbers.", None),
    Code.BACKEND_FAILED: ("The classifier failed on this question.", None),
    Code.INTERNAL_ERROR: ("The service has a fault; it was logged under this request id.", None),
}
