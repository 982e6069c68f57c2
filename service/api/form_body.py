"""`multipart/form-data` in memory: every part is kept as bytes, none is ever spooled to a disk."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from service.answers import MAX_CHOICES
from service.errors import Code, VQAError

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks

# Choices may be sent as repeated fields: as many as there may be choices, and a few more.
MAX_PARTS = MAX_CHOICES + 128
MAX_HEADERS = 16
MAX_HEADER_BYTES = 4096

# The parser warns about what it refuses, with bytes of the body; the caller is told, and nobody else.
logging.getLogger("python_multipart").setLevel(logging.CRITICAL)


@dataclass(slots=True)
class Part:
    """One part of a form: its field, its file name (None for a plain field) and its bytes."""

    name: str
    filename: str | None
    # Not in `repr`: the bytes of a picture belong in no message, and writing them out takes milliseconds.
    data: bytearray = field(default_factory=bytearray, repr=False)

    def text(self) -> str:
        """The bytes as UTF-8 text.

        Raises:
            VQAError: `invalid_field`.
        """
        try:
            return self.data.decode("utf-8")
        except UnicodeDecodeError:
            raise VQAError(Code.INVALID_FIELD, "This field must be text in UTF-8.", field=self.name) from None


async def parse_form(chunks: AsyncIterator[bytes], content_type: str) -> list[Part]:
    """The parts of a form, in order.

    Args:
        chunks: the body as it arrives.
        content_type: the request's header, which names the boundary.

    Raises:
        VQAError: `bad_multipart`, and whatever `chunks` raises.
    """
    _, parameters = parse_options_header(content_type.encode("latin-1", "replace"))
    boundary = parameters.get(b"boundary", b"")
    if not boundary:
        raise _bad("the Content-Type header names no boundary. Let your HTTP client write this header itself")
    collector = _Collector()
    try:
        parser = MultipartParser(
            boundary,
            collector.callbacks(),
            max_header_count=MAX_HEADERS,
            max_header_size=MAX_HEADER_BYTES,
        )
        async for chunk in chunks:
            parser.write(chunk)
        parser.finalize()
    except FormParserError:
        # The parser's own message may quote the body.
        raise _bad(
            "it does not begin with the boundary that the Content-Type header names, or a part's headers are malformed "
            f"(at most {MAX_HEADERS} of {MAX_HEADER_BYTES} bytes each)"
        ) from None
    if not collector.ended:
        raise _bad("it ends before its closing boundary, so it was cut short")
    return collector.parts


class _Collector:
    """Keeps what the parser reports."""

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self.ended = False
        self._headers: dict[bytes, bytes] = {}
        self._name = bytearray()
        self._value = bytearray()

    def callbacks(self) -> MultipartCallbacks:
        """The parser's callbacks by name."""
        return {
            "on_part_begin": self._headers.clear,
            "on_header_field": lambda data, start, end: self._name.extend(data[start:end]),
            "on_header_value": lambda data, start, end: self._value.extend(data[start:end]),
            "on_header_end": self._header_end,
            "on_headers_finished": self._headers_finished,
            "on_part_data": lambda data, start, end: self.parts[-1].data.extend(memoryview(data)[start:end]),
            "on_end": self._end,
        }

    def _header_end(self) -> None:
        self._headers[bytes(self._name).lower()] = bytes(self._value)
        self._name.clear()
        self._value.clear()

    def _headers_finished(self) -> None:
        kind, parameters = parse_options_header(self._headers.get(b"content-disposition", b""))
        if kind != b"form-data" or b"name" not in parameters:
            raise _bad("a part has no Content-Disposition: form-data with a name")
        encoding = self._headers.get(b"content-transfer-encoding", b"binary").strip().lower()
        if encoding not in (b"binary", b"8bit", b"7bit"):
            raise _bad("a part has a Content-Transfer-Encoding, which is not undone. Send its bytes as they are")
        if len(self.parts) == MAX_PARTS:
            raise _bad(f"it has more than {MAX_PARTS} parts")
        filename = parameters.get(b"filename")
        self.parts.append(
            Part(
                parameters[b"name"].decode("utf-8", "replace"),
                None if filename is None else filename.decode("utf-8", "replace"),
            )
        )

    def _end(self) -> None:
        self.ended = True


def _bad(why: str) -> VQAError:
    return VQAError(Code.BAD_MULTIPART, f"The body is not usable multipart/form-data: {why}.")
