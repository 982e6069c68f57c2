"""A form's parts as the JSON keys that they stand for."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

from service.api.form_body import Part
from service.api.json_body import parse_json_field
from service.errors import Code, VQAError

_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_NUMBER = re.compile(r"[+-]?[0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]{1,3})?")
_WHOLE_FIELDS = ("top_k", "timeout_ms")
_PICTURE_FIELDS = ("image", "image_base64")


def form_fields(parts: Sequence[Part], known: Collection[str], *, many: bool) -> dict[str, Any]:
    """The fields of a form; pictures stay `Part`s. Empty optional fields count as absent, as HTML forms send them.

    Args:
        parts: in the order in which they came.
        known: the names that a form may have beside the picture's and `question`.
        many: whether the form asks many questions: `question` repeated, or `questions` as a JSON list.

    Raises:
        VQAError: `unknown_field` or `invalid_field`.
    """
    grouped: dict[str, list[Part]] = {}
    for part in parts:
        if part.name not in known and part.name not in (*_PICTURE_FIELDS, "question"):
            hint = " Send the picture as image." if part.filename is not None else ""
            detail = f"This field is not known. Known: image, {', '.join(sorted(known))}.{hint}"
            raise VQAError(Code.UNKNOWN_FIELD, detail, field=part.name[:100])
        grouped.setdefault(part.name, []).append(part)
    if many and {"question", "questions"} <= grouped.keys():
        raise VQAError(
            Code.INVALID_FIELD, "Repeat question, or send questions as a JSON list; not both.", field="question"
        )
    fields: dict[str, Any] = {}
    for name, group in grouped.items():
        if len(group) > 1 and name != "choices" and not (many and name == "question"):
            raise VQAError(Code.INVALID_FIELD, "This field occurs more than once.", field=name[:100])
        value = _field(name, group, many=many)
        if value is not None:
            fields["questions" if many and name == "question" else name] = value
    return fields


def _field(name: str, group: Sequence[Part], *, many: bool) -> Any:
    """One field's value, None where it counts as absent."""
    part = group[0]
    if name in _PICTURE_FIELDS:
        # Browsers send a file input that was left alone as a part with an empty file name.
        untouched = part.filename == "" or name == "image_base64"
        return None if untouched and not part.data else part
    if name == "choices":
        return _choices([each.text() for each in group if each.data])
    if many and name == "question":
        return [each.text() for each in group]
    text = part.text()
    if name == "question":
        return text
    if not text:
        return None
    if many and name == "questions":
        return parse_json_field(name, text)
    if name in _WHOLE_FIELDS:
        return int(_matched(_WHOLE, text, name, "a whole number"))
    return float(_matched(_NUMBER, text, name, "a number")) if name == "max_risk" else text


def _choices(texts: list[str]) -> Any:
    """Choices of a form: repeated fields, or one field with a JSON list or with commas."""
    if len(texts) != 1:
        return texts or None
    if texts[0].lstrip().startswith("["):
        return parse_json_field("choices", texts[0])
    return [choice.strip() for choice in texts[0].split(",")]


def _matched(pattern: re.Pattern[str], text: str, name: str, kind: str) -> str:
    if not pattern.fullmatch(text.strip()):
        raise VQAError(Code.INVALID_FIELD, f"This field must be {kind}.", field=name)
    return text.strip()
