"""A request's body to a picture and questions: JSON and forms become the same thing here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import Request

from service.api.body import BodyHold, stream_body
from service.api.form_body import parse_form
from service.api.form_fields import form_fields
from service.api.json_body import parse_json_object
from service.api.picture_field import take_picture
from service.api.schema import AnswerBody, AnswersBody, QuestionItem
from service.errors import Code, VQAError
from service.gateway import Picture, Question
from service.gateway.question import DEFAULT_TOP_K
from service.settings import Priority, Settings

Model = TypeVar("Model", bound=BaseModel)

# Four questions with the most choices, or many with a few: more would keep a core busy for seconds.
MAX_CHOICES_IN_ALL = 16_384
_SETS = ("choices", "answer_set")
_OPTIONS = (*_SETS, "policy", "model", "max_risk", "top_k")


@dataclass(frozen=True, slots=True)
class Incoming:
    """A request as it was read.

    Attributes:
        picture: where its bytes come from.
        questions: one that was refused already keeps its place as its error.
        timeout_ms: the caller's deadline.
        shared: options given once for all questions; None where there are none.
    """

    picture: Picture
    questions: list[Question | VQAError]
    timeout_ms: int | None
    shared: Question | None = None


async def read_answer(request: Request, hold: BodyHold, settings: Settings) -> Incoming:
    """Read `POST /answer`.

    Raises:
        VQAError: what is wrong with the body, with the field.
    """
    fields = await _read_fields(request, hold, settings, many=False)
    picture = take_picture(fields)
    body = _validate(AnswerBody, fields)
    return Incoming(picture, [_question(body.question, body, body.priority)], body.timeout_ms)


async def read_answers(request: Request, hold: BodyHold, settings: Settings) -> Incoming:
    """Read `POST /answers`.

    Raises:
        VQAError: what is wrong with the body as a whole, with the field.
    """
    fields = await _read_fields(request, hold, settings, many=True)
    picture = take_picture(fields)
    body = _validate(AnswersBody, fields)
    if len(body.questions) > settings.max_questions:
        raise VQAError(
            Code.INVALID_FIELD,
            f"{len(body.questions)} questions are more than the limit of {settings.max_questions}. Send them in parts.",
            field="questions",
            extra={"limit": settings.max_questions},
        )
    questions = [_item(raw, body) for raw in body.questions]
    distinct = {q.choices for q in questions if isinstance(q, Question) and q.choices}
    if sum(map(len, distinct)) > MAX_CHOICES_IN_ALL:
        raise VQAError(
            Code.INVALID_FIELD,
            f"The questions have more than {MAX_CHOICES_IN_ALL:,} choices in all. Send them in parts.",
            field="questions",
            extra={"limit": MAX_CHOICES_IN_ALL},
        )
    shares = any(getattr(body, name) is not None for name in _OPTIONS)
    return Incoming(picture, questions, body.timeout_ms, _question("", body, body.priority) if shares else None)


async def _read_fields(request: Request, hold: BodyHold, settings: Settings, *, many: bool) -> dict[str, Any]:
    """The body's fields; `image` is a JSON value or a form's `Part`."""
    content_type = request.headers.get("content-type", "")
    media_type = content_type.partition(";")[0].strip().lower()
    chunks = stream_body(request, hold, limit=settings.max_body_bytes, timeout_s=settings.body_timeout_s)
    if media_type == "multipart/form-data":
        known = (AnswersBody if many else AnswerBody).model_fields
        return form_fields(await parse_form(chunks, content_type), known, many=many)
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


def _item(raw: Any, shared: AnswersBody) -> Question | VQAError:
    """One of many questions; what is wrong with it stays its own problem."""
    if isinstance(raw, str):
        raw = {"question": raw}
    if not isinstance(raw, dict):
        return VQAError(Code.INVALID_FIELD, "A question must be a string or an object.", field="")
    try:
        item = _validate(QuestionItem, raw)
    except VQAError as error:
        return error
    names_a_set = any(getattr(item, name) is not None for name in _SETS)
    for name in _OPTIONS:
        # An item's choices stand in for a shared answer set, and the other way round.
        if getattr(item, name) is None and not (names_a_set and name in _SETS):
            setattr(item, name, getattr(shared, name))
    return _question(item.question, item, shared.priority)


def _question(text: str, options: Any, priority: Priority | None) -> Question:
    return Question(
        text=text,
        choices=None if options.choices is None else tuple(options.choices),
        answer_set=options.answer_set,
        policy=options.policy,
        model=options.model,
        max_risk=options.max_risk,
        top_k=options.top_k or DEFAULT_TOP_K,
        priority=priority or "interactive",
    )


def _validate(model: type[Model], fields: dict[str, Any]) -> Model:
    """The fields as a model of the contract.

    Raises:
        VQAError: `unknown_field`, `missing_field` or `invalid_field`, for the first field that is wrong.
    """
    # Looked for first: the validator would write an error for each of a million unknown keys.
    unknown = next((key for key in fields if key not in model.model_fields), None)
    if unknown is not None:
        known = ", ".join(sorted(model.model_fields))
        detail = f"This field is not known. Known beside image: {known}."
        raise VQAError(Code.UNKNOWN_FIELD, detail, field=unknown[:100])
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    field = _field_path(first["loc"])
    if first["type"] == "missing":
        raise VQAError(Code.MISSING_FIELD, "This field is missing.", field=field)
    raise VQAError(Code.INVALID_FIELD, f"{first['msg']}.", field=field)


def _field_path(location: tuple[int | str, ...]) -> str:
    path = ""
    for part in location:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
    return path
