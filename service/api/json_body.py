"""Strict JSON: UTF-8 (a byte-order mark is forgiven), no key twice, an object at the top, NaN nowhere."""

from __future__ import annotations

import json
from typing import Any

from service.errors import Code, VQAError

# 64 questions with a few thousand choices each stay below.
MAX_VALUES = 300_000


def parse_json_object(data: bytes | bytearray) -> dict[str, Any]:
    """The object in a request body.

    Raises:
        VQAError: `invalid_json`, or `invalid_field` for a key that occurs twice.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise VQAError(
            Code.INVALID_JSON, f"The body is not UTF-8 (at byte {error.start}). Send JSON in UTF-8."
        ) from None
    value = parse_json(text)
    if not isinstance(value, dict):
        raise VQAError(Code.INVALID_JSON, "The body must be a JSON object.")
    return value


def parse_json(text: str) -> Any:
    """Any JSON value, read as strictly.

    Raises:
        VQAError: `invalid_json` or `invalid_field`.
    """
    # Twenty megabytes of brackets would become gigabytes of objects; a picture in base64 holds none of these marks.
    if sum(map(text.count, ",:[{")) > MAX_VALUES:
        raise VQAError(Code.INVALID_JSON, f"The body holds more than {MAX_VALUES:,} values.")
    try:
        return json.loads(text, parse_constant=_not_json, object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise VQAError(Code.INVALID_JSON, f"The body is not valid JSON: {error.msg} ({where}).") from None
    except RecursionError:
        raise VQAError(Code.INVALID_JSON, "The body is nested too deeply.") from None
    except ValueError:
        # Python refuses to read integers of thousands of digits.
        raise VQAError(Code.INVALID_JSON, "The body holds a number that is too long.") from None


def parse_json_field(name: str, text: str) -> Any:
    """A form's field that holds JSON.

    Raises:
        VQAError: `invalid_field`.
    """
    try:
        return parse_json(text)
    except VQAError as error:
        raise VQAError(Code.INVALID_FIELD, error.detail.replace("The body", "This field"), field=name) from None


def _is_text(key: str) -> bool:
    try:
        key.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


class _NotJson:
    """Stands for NaN and the infinities. No field takes it, so whoever checks the fields says where it was."""


def _not_json(_: str) -> _NotJson:
    return _NotJson()


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if not _is_text(key):
            raise VQAError(Code.INVALID_JSON, "A key holds an unpaired surrogate, which is not text.")
        if key in found:
            raise VQAError(
                Code.INVALID_FIELD, "This key occurs twice; it is not clear which is meant.", field=key[:100]
            )
        found[key] = value
    return found
