"""Pictures inside text: base64 and data URLs.

Nothing here looks at the picture; wrong labels, wrapped lines and both alphabets are taken as they come, and what is
not base64 is refused with the place where it goes wrong, never decoded to other bytes than were meant.
"""

from __future__ import annotations

import binascii
import re
import string

from service.errors import Code, ImageError

_BLANKS = b" \t\r\n\f\v"
_LETTERS = string.ascii_letters.encode() + string.digits.encode()
_STANDARD, _URLSAFE = _LETTERS + b"+/", _LETTERS + b"-_"
_URLSAFE_TO_STANDARD = bytes.maketrans(b"-_", b"+/")
_NOT_STANDARD = re.compile(r"[^A-Za-z0-9+/= \t\r\n\f\v]")
_NOT_URLSAFE = re.compile(r"[^A-Za-z0-9_= \t\r\n\f\v-]")
_SCHEME = re.compile(r"\s*data:", re.IGNORECASE)
_BROKEN_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")
# Longer than any sensible list of parameters; bounds the search for the comma.
_MAX_HEADER = 1024


def decode_base64(text: str) -> bytes:
    """The bytes that `text` spells in base64.

    Blanks and line ends are ignored, both alphabets (RFC 4648, sections 4 and 5) and missing padding are fine; a
    text that starts with "data:" is read as a data URL.

    Raises:
        ImageError: `image_empty` for no data, `invalid_base64` for anything that is not base64, the two alphabets
            in one text included; the detail and `extra["offset"]` give the offset in `text`.
    """
    if _SCHEME.match(text):
        return parse_data_url(text)
    return _decode(text, text, 0)


def parse_data_url(text: str) -> bytes:
    """The bytes of a data URL (RFC 2397), base64 or percent-encoded; its media type is not looked at.

    Raises:
        ImageError: `image_empty` for no data, `invalid_base64` for a text that is no data URL or bad base64.
    """
    scheme = _SCHEME.match(text)
    if scheme is None:
        raise ImageError(Code.INVALID_BASE64, 'The text is not a data URL: it does not begin with "data:".')
    comma = text.find(",", scheme.end(), scheme.end() + _MAX_HEADER)
    if comma < 0:
        raise ImageError(Code.INVALID_BASE64, "The data URL has no comma in front of its data.")
    parameters = [each.strip().lower() for each in text[scheme.end() : comma].split(";")]
    data = text[comma + 1 :]
    if "base64" in parameters[1:]:
        # Percent escapes of +, / and = are what URL libraries make of base64.
        if "%" in data:
            data = _unescape(data.encode("utf-8", "surrogatepass")).decode("latin-1")
            return _decode(data, data, 0)
        return _decode(data, text, comma + 1)
    if not data.isascii():
        raise ImageError(Code.INVALID_BASE64, "The data URL holds characters that must be percent-encoded.")
    content = _unescape(data.encode("ascii"))
    if not content:
        raise _empty()
    return content


def _unescape(data: bytes) -> bytes:
    """Percent-encoded bytes (RFC 3986, section 2.1) as they are.

    Quoted-printable is the same with another mark, and C code for it is in the standard library; the one for URLs makes
    a Python object of each escape, which is gigabytes for a picture that is all escapes.
    """
    if broken := _BROKEN_ESCAPE.search(data):
        raise _invalid("a percent sign begins no escape", broken.start())
    return binascii.a2b_qp(data.replace(b"=", b"=3D").replace(b"%", b"="))


def _decode(data: str, whole: str, offset: int) -> bytes:
    """Decode `data`, which starts at `offset` of the `whole` text that errors refer to."""
    # Only whole-text operations of the C library: 20 MiB take some tens of milliseconds.
    dense = data.encode("ascii", "replace").translate(None, _BLANKS)
    body = dense.rstrip(b"=")
    if not body:
        if dense:
            raise _invalid("there is only padding", offset)
        raise _empty()
    urlsafe = b"-" in body or b"_" in body
    if body.translate(None, _URLSAFE if urlsafe else _STANDARD):
        raise _wrong_character(data, whole, offset, urlsafe)
    if len(body) % 4 == 1:
        raise _invalid("it is cut short or has one character too many", offset + len(data.rstrip()))
    if len(dense) - len(body) > 2:
        raise _invalid("there is too much padding", offset + len(data.rstrip()))
    if urlsafe:
        body = body.translate(_URLSAFE_TO_STANDARD)
    return binascii.a2b_base64(body + b"=" * (-len(body) % 4))


def _wrong_character(data: str, whole: str, offset: int, urlsafe: bool) -> ImageError:
    """The refusal that names the first character out of place."""
    wrong = (_NOT_URLSAFE if urlsafe else _NOT_STANDARD).search(data)
    if wrong is None:
        return _invalid("padding stands before the end", offset + data.index("="))
    where = offset + wrong.start()
    if whole[where] in "+/":
        return _invalid("the standard and the URL-safe alphabet are mixed", where)
    return _invalid(f"there is a character (U+{ord(whole[where]):04X}) that base64 does not have", where)


def _empty() -> ImageError:
    return ImageError(Code.IMAGE_EMPTY, "The picture has no bytes. Check that the file was read before sending.")


def _invalid(what: str, offset: int) -> ImageError:
    return ImageError(
        Code.INVALID_BASE64, f"The picture is not valid base64: {what}, at offset {offset}.", extra={"offset": offset}
    )
