"""A request's body to a picture and questions: JSON and forms become the same thing here."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import Request

from service.api.body import BodyHold, stream_body
from service.api.form_body import Part, parse_form
from service.api.json_body import parse_json, parse_json_object
from service.api.schema import AnswerBody, AnswersBody, QuestionItem
from service.errors import Code, VQAError
from service.gateway import Ask, Picture
from service.gateway.question import DEFAULT_TOP_K
from service.images import decode_base64, parse_data_url
from service.settings import Settings

Model = TypeVar("Model", bound=BaseModel)

_DATA_SCHEME = "data:"
_SCHEME = re.compile(r"\s*[A-Za-z][A-Za-z0-9+.-]*:")
_OPTIONS = ("choices", "answer_set", "policy", "model", "max_risk", "top_k")
_NUMBERS = {"max_risk": float, "top_k": int, "timeout_ms": int}


@dataclass(frozen=True, slots=True)
class Incoming:
    """A request as it was read; a question that was refused already keeps its place as its error."""

    picture: Picture
    asks: list[Ask | VQAError]
    timeout_ms: int | None


async def read_answer(request: Request, hold: BodyHold, settings: Settings) -> Incoming:
    """Read `POST /answer`.

    Raises:
        VQAError: what is wrong with the body, with the field.
    """
    fields = await _read_fields(request, hold, settings, many=False)
    picture = _take_picture(fields)
    body = _validate(AnswerBody, fields)
    return Incoming(picture, [_ask(body, body.priority)], body.timeout_ms)


async def read_answers(request: Request, hold: BodyHold, settings: Settings) -> Incoming:
    """Read `POST /answers`.

    Raises:
        VQAError: what is wrong with the body as a whole, with the field.
    """
    fields = await _read_fields(request, hold, settings, many=True)
    picture = _take_picture(fields)
    body = _validate(AnswersBody, fields)
    if len(body.questions) > settings.max_questions:
        raise VQAError(
            Code.INVALID_FIELD,
            f"{len(body.questions)} questions are more than the limit of {settings.max_questions}. Send them in parts.",
            field="questions",
            extra={"limit": settings.max_questions},
        )
    return Incoming(picture, [_item(raw, body) for raw in body.questions], body.timeout_ms)


async def _read_fields(request: Request, hold: BodyHold, settings: Settings, *, many: bool) -> dict[str, Any]:
    """The body's fields; `image` is a JSON value or a form's `Part`."""
    content_type = request.headers.get("content-type", "")
    media_type = content_type.partition(";")[0].strip().lower()
    chunks = stream_body(request, hold, limit=settings.max_body_bytes, timeout_s=settings.body_timeout_s)
    if media_type == "multipart/form-data":
        return _form_fields(await parse_form(chunks, content_type), many=many)
    if media_type == "application/json":
        data = bytearray()
        async for chunk in chunks:
            data += chunk
        return parse_json_object(data)
    named = f"not {media_type[:80]!r}" if media_type else "and the request has none"
    raise VQAError(
        Code.UNSUPPORTED_CONTENT_TYPE,
        f"The Content-Type must be application/json or multipart/form-data, {named}.",
    )


def _form_fields(parts: Sequence[Part], *, many: bool) -> dict[str, Any]:
    """A form as the JSON keys it stands for. Empty optional fields count as absent, as HTML forms send them."""
    repeatable = {"choices", "question"} if many else {"choices"}
    grouped: dict[str, list[Part]] = {}
    for part in parts:
        grouped.setdefault(part.name, []).append(part)
    fields: dict[str, Any] = {}
    for name, group in grouped.items():
        if len(group) > 1 and name not in repeatable:
            raise VQAError(Code.INVALID_FIELD, "This field occurs more than once.", field=name[:100])
        if name in ("image", "image_base64"):
            fields[name] = group[0]
        elif many and name == "question":
            fields["questions"] = [part.text() for part in group]
        elif name == "choices":
            if texts := [part.text() for part in group if part.data]:
                fields[name] = _form_choices(texts)
        elif many and name == "questions":
            fields[name] = _json_field(name, group[0].text())
        elif (text := group[0].text()) or name == "question":
            fields[name] = _form_value(name, text)
    return fields


def _form_choices(texts: list[str]) -> Any:
    """Choices of a form: repeated fields, or one field with a JSON list or with commas."""
    if len(texts) > 1:
        return texts
    if texts[0].lstrip().startswith("["):
        return _json_field("choices", texts[0])
    return [choice.strip() for choice in texts[0].split(",")]


def _json_field(name: str, text: str) -> Any:
    try:
        return parse_json(text)
    except VQAError as error:
        raise VQAError(Code.INVALID_FIELD, error.detail.replace("The body", "This field"), field=name) from None


def _form_value(name: str, text: str) -> Any:
    if name not in _NUMBERS:
        return text
    try:
        return _NUMBERS[name](text.strip())
    except ValueError:
        kind = "a whole number" if _NUMBERS[name] is int else "a number"
        raise VQAError(Code.INVALID_FIELD, f"This field must be {kind}.", field=name) from None


def _take_picture(fields: dict[str, Any]) -> Picture:
    """Take the picture out of the fields; its base64 is decoded later, in a decoding thread."""
    alias = fields.pop("image_base64", None) if isinstance(fields.get("image_base64"), Part) else None
    value = fields.pop("image", None)
    if alias is not None and value is not None:
        raise VQAError(Code.INVALID_FIELD, "Give image or image_base64, not both.", field="image_base64")
    if isinstance(alias, Part):
        return Picture(_text_loader(alias.text()), "image_base64")
    if isinstance(value, Part):
        return _form_picture(value)
    if value is None:
        raise VQAError(Code.MISSING_FIELD, "The picture is missing.", field="image")
    return _json_picture(value)


def _form_picture(part: Part) -> Picture:
    """A form's `image`: a file's bytes, or, sent as plain text, a data URL, base64 or the JSON object."""
    if part.filename is not None or not _is_text(part.data):
        return Picture(partial(bytes, part.data))
    text = part.data.decode("ascii")
    if text.lstrip().startswith("{"):
        return _json_picture(_json_field("image", text))
    return Picture(_text_loader(text))


def _is_text(data: bytearray) -> bool:
    """Whether bytes sent without a file name may be base64, a data URL or JSON: ASCII with no control characters."""
    return len(data) > 0 and data.isascii() and not any(byte < 0x20 and byte not in b"\t\r\n" for byte in data[:512])


def _json_picture(value: Any) -> Picture:
    """JSON's `image`: `{"base64": …}`, `{"url": …}` or a data URL."""
    if isinstance(value, str):
        return Picture(_text_loader(value, bare=False))
    if isinstance(value, dict):
        unknown = sorted(set(value) - {"base64", "url"})
        if unknown:
            raise VQAError(Code.UNKNOWN_FIELD, "The image takes base64 or url.", field=f"image.{unknown[0][:100]}")
        if len(value) == 1:
            [(key, text)] = value.items()
            if not isinstance(text, str):
                raise VQAError(Code.INVALID_FIELD, "This field must be a string.", field=f"image.{key}")
            if key == "url":
                raise _url_not_allowed("image.url")
            return Picture(_text_loader(text), "image.base64")
    raise VQAError(
        Code.INVALID_FIELD,
        'The image must be a data URL, {"base64": …} or {"url": …}; in a form, a file.',
        field="image",
    )


def _text_loader(text: str, *, bare: bool = True) -> Callable[[], bytes]:
    """What gives the bytes behind a text: a data URL or, where `bare` allows it, base64.

    Raises:
        VQAError: `url_not_allowed` for any other URL, whatever its scheme; `invalid_field` for what is neither.
    """
    head = text[:64]
    if head.lstrip()[: len(_DATA_SCHEME)].lower() == _DATA_SCHEME:
        return partial(parse_data_url, text)
    if _SCHEME.match(head):
        raise _url_not_allowed("image")
    if bare:
        return partial(decode_base64, text)
    raise VQAError(
        Code.INVALID_FIELD,
        'As a string the image must be a data URL; bare base64 goes into {"base64": …}.',
        field="image",
    )


def _url_not_allowed(field: str) -> VQAError:
    """The same words for every address, so that nothing can be learnt of what it leads to."""
    return VQAError(
        Code.URL_NOT_ALLOWED,
        "This server fetches no pictures by address. Send the picture's bytes.",
        field=field,
    )


def _item(raw: Any, shared: AnswersBody) -> Ask | VQAError:
    """One of many questions; what is wrong with it stays its own problem."""
    if isinstance(raw, str):
        raw = {"question": raw}
    if not isinstance(raw, dict):
        return VQAError(Code.INVALID_FIELD, "A question must be a string or an object.")
    try:
        item = _validate(QuestionItem, raw)
    except VQAError as error:
        return error
    for name in _OPTIONS:
        # An item's choices stand in for a shared answer set, and the other way round.
        if getattr(item, name) is None and not (name in _SETS and any(getattr(item, other) for other in _SETS)):
            setattr(item, name, getattr(shared, name))
    return _ask(item, shared.priority)


_SETS = ("choices", "answer_set")


def _ask(item: QuestionItem, priority: Any) -> Ask:
    return Ask(
        question=item.question,
        choices=None if item.choices is None else tuple(item.choices),
        answer_set=item.answer_set,
        policy=item.policy,
        model=item.model,
        max_risk=item.max_risk,
        top_k=item.top_k or DEFAULT_TOP_K,
        priority=priority or "interactive",
    )


def _validate(model: type[Model], fields: dict[str, Any]) -> Model:
    """The fields as a model of the contract.

    Raises:
        VQAError: `unknown_field`, `missing_field` or `invalid_field`, for the first field that is wrong.
    """
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    field = _field_path(first["loc"])
    if first["type"] == "extra_forbidden":
        known = ", ".join(sorted(model.model_fields))
        raise VQAError(Code.UNKNOWN_FIELD, f"This field is not known. Known beside image: {known}.", field=field)
    if first["type"] == "missing":
        raise VQAError(Code.MISSING_FIELD, "This field is missing.", field=field)
    raise VQAError(Code.INVALID_FIELD, f"{first['msg']}.", field=field)


def _field_path(location: tuple[int | str, ...]) -> str:
    path = ""
    for part in location:
        path += f"[{part}]" if isinstance(part, int) else f".{part[:100]}" if path else part[:100]
    return path
