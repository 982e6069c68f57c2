"""The request's picture, however it was sent; its base64 is decoded later, by the gateway."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

from service.api.form_body import Part
from service.api.json_body import parse_json_field
from service.errors import Code, VQAError
from service.gateway import Picture
from service.images import decode_base64, parse_data_url

_DATA_SCHEME = "data:"
_SCHEME = re.compile(r"\s*[A-Za-z][A-Za-z0-9+.-]*:")
_TEXT_PROBE = 512


def take_picture(fields: dict[str, Any]) -> Picture:
    """Take the picture out of a request's fields.

    Raises:
        VQAError: `missing_field`, `invalid_field`, `unknown_field` or `url_not_allowed`.
    """
    value = fields.pop("image", None)
    if isinstance(fields.get("image_base64"), Part):
        # A form's own field; JSON has `image.base64`, and there this key is as unknown as any other.
        part: Part = fields.pop("image_base64")
        if value is not None:
            raise VQAError(Code.INVALID_FIELD, "Give image or image_base64, not both.", field="image_base64")
        text = part.text()
        return Picture(_text_loader(text, "image_base64"), "image_base64", len(text))
    if isinstance(value, Part):
        return _form_picture(value)
    if value is None and "image_base64" in fields:
        detail = 'This key is for forms. In JSON send "image": {"base64": …}.'
        raise VQAError(Code.UNKNOWN_FIELD, detail, field="image_base64")
    if value is None:
        raise VQAError(Code.MISSING_FIELD, "The picture is missing.", field="image")
    return _json_picture(value)


def _form_picture(part: Part) -> Picture:
    """A form's `image`: a file's bytes, or, sent as plain text, a data URL, base64 or the JSON object."""
    if part.filename is not None or not _may_be_text(part.data):
        return Picture(partial(bytes, part.data), size=len(part.data))
    text = part.data.decode("ascii")
    if text.lstrip().startswith("{"):
        return _json_picture(parse_json_field("image", text))
    return Picture(_text_loader(text, "image"), size=len(text))


def _may_be_text(data: bytearray) -> bool:
    """Whether bytes sent without a file name may be base64, a data URL or JSON: ASCII with no control characters."""
    return len(data) > 0 and data.isascii() and not any(b < 0x20 and b not in b"\t\r\n" for b in data[:_TEXT_PROBE])


def _json_picture(value: Any) -> Picture:
    """JSON's `image`: `{"base64": …}`, `{"url": …}` or a data URL."""
    if isinstance(value, str):
        return Picture(_text_loader(value, "image", bare=False), size=len(value))
    if isinstance(value, dict):
        unknown = next((key for key in value if key not in ("base64", "url")), None)
        if unknown is not None:
            raise VQAError(Code.UNKNOWN_FIELD, "The image takes base64 or url.", field=f"image.{unknown[:100]}")
        if len(value) == 1:
            [(key, text)] = value.items()
            field = f"image.{key}"
            if not isinstance(text, str):
                raise VQAError(Code.INVALID_FIELD, "This field must be a string.", field=field)
            # Some clients send a data URL where an address is meant to be.
            return Picture(_text_loader(text, field, bare=key == "base64", address=key == "url"), field, len(text))
    raise VQAError(
        Code.INVALID_FIELD,
        'The image must be a data URL, {"base64": …} or {"url": …}; in a form, a file.',
        field="image",
    )


def _text_loader(text: str, field: str, *, bare: bool = True, address: bool = False) -> Callable[[], bytes]:
    """What gives the bytes behind a text: a data URL or, where `bare` allows it, base64.

    Args:
        text: as the caller sent it.
        field: where, for error messages.
        bare: whether base64 with nothing in front is meant.
        address: whether anything but a data URL is an address.

    Raises:
        VQAError: `url_not_allowed` for any other URL, whatever its scheme; `invalid_field` for what is neither.
    """
    head = text[:64]
    if head.lstrip()[: len(_DATA_SCHEME)].lower() == _DATA_SCHEME:
        return partial(parse_data_url, text)
    if address or _SCHEME.match(head):
        raise _url_not_allowed(field)
    if bare:
        return partial(decode_base64, text)
    raise VQAError(
        Code.INVALID_FIELD,
        'As a string the image must be a data URL; bare base64 goes into {"base64": …}.',
        field=field,
    )


def _url_not_allowed(field: str) -> VQAError:
    """The same words for every address, so that nothing can be learnt of what it leads to."""
    return VQAError(
        Code.URL_NOT_ALLOWED, "This server fetches no pictures by address. Send the picture's bytes.", field=field
    )
