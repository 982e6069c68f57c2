"""Every way the service can fail: one exception, one table of codes.

A code is stable: clients switch on it, so a code is never renamed. The table gives the HTTP status and the title that
go with it; a door (HTTP, command line) turns a `VQAError` into its own shape and decides nothing itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple, Self


class Code(StrEnum):
    """Stable machine-readable names of what went wrong."""

    # the request as a whole
    BAD_REQUEST = "bad_request"
    UNAUTHORIZED = "unauthorized"
    NOT_FOUND = "not_found"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    UNSUPPORTED_CONTENT_TYPE = "unsupported_content_type"
    HEAD_TOO_LARGE = "head_too_large"
    BODY_TOO_LARGE = "body_too_large"
    BODY_TIMEOUT = "body_timeout"
    INVALID_JSON = "invalid_json"
    BAD_MULTIPART = "bad_multipart"
    UNKNOWN_FIELD = "unknown_field"
    MISSING_FIELD = "missing_field"
    INVALID_FIELD = "invalid_field"
    # the picture
    IMAGE_EMPTY = "image_empty"
    IMAGE_UNDECODABLE = "image_undecodable"
    IMAGE_TRUNCATED = "image_truncated"
    IMAGE_TOO_LARGE = "image_too_large"
    UNSUPPORTED_MEDIA_TYPE = "unsupported_media_type"
    INVALID_BASE64 = "invalid_base64"
    URL_NOT_ALLOWED = "url_not_allowed"
    # the question and what may answer it
    QUESTION_EMPTY = "question_empty"
    QUESTION_TOO_LONG = "question_too_long"
    QUESTION_INVALID = "question_invalid"
    CHOICES_INVALID = "choices_invalid"
    CHOICES_OUTSIDE_VOCABULARY = "choices_outside_vocabulary"
    UNKNOWN_ANSWER_SET = "unknown_answer_set"
    UNKNOWN_MODEL = "unknown_model"
    NOT_CALIBRATED = "not_calibrated"
    GENERATOR_UNAVAILABLE = "generator_unavailable"
    CLASSIFIER_UNAVAILABLE = "classifier_unavailable"
    # the service's own state
    CLIENT_CLOSED_REQUEST = "client_closed_request"
    NOT_READY = "not_ready"
    SATURATED = "saturated"
    DRAINING = "draining"
    DEADLINE_EXCEEDED = "deadline_exceeded"
    BACKEND_INVALID_SCORES = "backend_invalid_scores"
    BACKEND_FAILED = "backend_failed"
    INTERNAL_ERROR = "internal_error"


class Problem(NamedTuple):
    """What HTTP says for a code: the status and a title that is the same for every occurrence (RFC 9457)."""

    status: int
    title: str


# nginx's status for "the client hung up before the reply"; it is counted and never sent to anyone.
CLIENT_CLOSED_REQUEST_STATUS = 499

PROBLEMS: dict[Code, Problem] = {
    Code.BAD_REQUEST: Problem(HTTPStatus.BAD_REQUEST, "The request is malformed"),
    Code.UNAUTHORIZED: Problem(HTTPStatus.UNAUTHORIZED, "The key is missing or not known"),
    Code.NOT_FOUND: Problem(HTTPStatus.NOT_FOUND, "No such resource"),
    Code.METHOD_NOT_ALLOWED: Problem(HTTPStatus.METHOD_NOT_ALLOWED, "This method is not allowed here"),
    Code.UNSUPPORTED_CONTENT_TYPE: Problem(
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "The body's content type is not accepted"
    ),
    Code.HEAD_TOO_LARGE: Problem(
        HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "The request's line and headers are larger than the limit"
    ),
    Code.BODY_TOO_LARGE: Problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "The body is larger than the limit"),
    Code.BODY_TIMEOUT: Problem(HTTPStatus.REQUEST_TIMEOUT, "The body did not arrive in time"),
    Code.INVALID_JSON: Problem(HTTPStatus.BAD_REQUEST, "The body is not valid JSON"),
    Code.BAD_MULTIPART: Problem(HTTPStatus.BAD_REQUEST, "The body is not valid multipart/form-data"),
    Code.UNKNOWN_FIELD: Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "A field is not known"),
    Code.MISSING_FIELD: Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "A field is missing"),
    Code.INVALID_FIELD: Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "A field has a value that is not allowed"),
    Code.IMAGE_EMPTY: Problem(HTTPStatus.BAD_REQUEST, "The picture is empty"),
    Code.IMAGE_UNDECODABLE: Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "The picture cannot be decoded"),
    Code.IMAGE_TRUNCATED: Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "The picture is cut short"),
    Code.IMAGE_TOO_LARGE: Problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "The picture is larger than the limit"),
    Code.UNSUPPORTED_MEDIA_TYPE: Problem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "The bytes are not a supported picture"),
    Code.INVALID_BASE64: Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "The picture is not valid base64"),
    Code.URL_NOT_ALLOWED: Problem(HTTPStatus.FORBIDDEN, "This picture address is not allowed"),
    Code.QUESTION_EMPTY: Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "The question is empty"),
    Code.QUESTION_TOO_LONG: Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "The question is too long"),
    Code.QUESTION_INVALID: Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "The question holds characters that are not text"),
    Code.CHOICES_INVALID: Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "The choices cannot be used"),
    Code.CHOICES_OUTSIDE_VOCABULARY: Problem(
        HTTPStatus.UNPROCESSABLE_ENTITY, "The classifier does not know some of the choices"
    ),
    Code.UNKNOWN_ANSWER_SET: Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "No answer set has this name"),
    Code.UNKNOWN_MODEL: Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "No model that is served has this name"),
    Code.NOT_CALIBRATED: Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "The model has no fitted calibration"),
    Code.GENERATOR_UNAVAILABLE: Problem(HTTPStatus.NOT_IMPLEMENTED, "No generator is configured"),
    Code.CLASSIFIER_UNAVAILABLE: Problem(HTTPStatus.NOT_IMPLEMENTED, "No classifier is configured"),
    Code.CLIENT_CLOSED_REQUEST: Problem(CLIENT_CLOSED_REQUEST_STATUS, "The client closed the connection"),
    Code.NOT_READY: Problem(HTTPStatus.SERVICE_UNAVAILABLE, "The service is starting"),
    Code.SATURATED: Problem(HTTPStatus.SERVICE_UNAVAILABLE, "The service is saturated"),
    Code.DRAINING: Problem(HTTPStatus.SERVICE_UNAVAILABLE, "The service is shutting down"),
    Code.DEADLINE_EXCEEDED: Problem(HTTPStatus.GATEWAY_TIMEOUT, "The deadline has passed"),
    Code.BACKEND_INVALID_SCORES: Problem(HTTPStatus.BAD_GATEWAY, "The model gave scores that are not numbers"),
    Code.BACKEND_FAILED: Problem(HTTPStatus.BAD_GATEWAY, "The model failed"),
    Code.INTERNAL_ERROR: Problem(HTTPStatus.INTERNAL_SERVER_ERROR, "The service has a fault"),
}


class VQAError(Exception):
    """Something that a caller must be told, with its stable code.

    Args:
        code: which problem it is.
        detail: one or two sentences for a person: what is wrong and what to do. May quote a choice or a content
            type, shortened, and never the question or the picture.
        field: the request field at fault, as the caller wrote it (`question`, `image.base64`, `choices[3]`).
        retry_after_s: seconds after which trying again makes sense, where it does.
        extra: further members of the problem document (limits, sizes); JSON-serialisable.
    """

    def __init__(
        self,
        code: Code,
        detail: str,
        *,
        field: str | None = None,
        retry_after_s: float | None = None,
        extra: dict[str, object] | None = None,
    ) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.field = field
        self.retry_after_s = retry_after_s
        self.extra = extra or {}

    @property
    def status(self) -> int:
        """The HTTP status that goes with the code."""
        return int(PROBLEMS[self.code].status)

    @property
    def title(self) -> str:
        """The title that goes with the code, the same for every occurrence."""
        return PROBLEMS[self.code].title

    def at(self, field: str) -> Self:
        """The same error at `field`, unless it names one already. A copy: callers may share the original."""
        if self.field is not None:
            return self
        return self._placed(field)

    def below(self, place: str) -> Self:
        """The same error with its field, where it has one, as a part of `place` (`questions[3]`). A copy."""
        return self if self.field is None else self._placed(f"{place}.{self.field}" if self.field else place)

    def _placed(self, field: str) -> Self:
        return type(self)(self.code, self.detail, field=field, retry_after_s=self.retry_after_s, extra=dict(self.extra))


class ImageError(VQAError):
    """A picture that is refused; `code` is one of the image codes."""


class SettingsError(ValueError):
    """A setting has a value that cannot be used; the message names the setting."""


class MissingExtraError(ModuleNotFoundError):
    """A library of an extra is not installed; the message names the extra.

    Args:
        library: what is missing (`rapidfuzz`).
        extra: the extra of this package that holds it.
    """

    def __init__(self, library: str, extra: str = "eval") -> None:
        super().__init__(f"{library} is not installed; it comes with the extra [{extra}]: make install", name=library)


class DataError(ValueError):
    """A data file cannot be used.

    Args:
        path: the file.
        what: what is wrong and, where that is not plain, what to do.
        place: where in the file: `line 3`, `line 3, column 7`, `[41].answer`.
    """

    def __init__(self, path: Path | str, what: str, place: str | None = None) -> None:
        super().__init__(f"{path}: {place}: {what}" if place else f"{path}: {what}")
        self.path = str(path)
        self.what = what
        self.place = place


@contextmanager
def needs(library: str) -> Iterator[None]:
    """Import a library of the extra `eval` within this block; where it is missing, the error says what to install.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingExtraError(library) from error


def one_line(message: str) -> str:
    """A message with line ends and other control characters, as names of files may hold them, as escapes."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in message)
