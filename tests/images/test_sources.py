"""Base64 and data URLs."""

from __future__ import annotations

import base64
import re
import string
import time
from urllib.parse import quote, quote_from_bytes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.errors import Code
from service.images import ImageError, decode_base64, parse_data_url

BLANKS = " \t\r\n\f\v"
UNRESERVED = string.ascii_letters + string.digits + "-._~"


def refusal(text: str) -> ImageError:
    with pytest.raises(ImageError) as caught:
        decode_base64(text)
    return caught.value


@given(
    st.binary(min_size=1),
    st.booleans(),
    st.booleans(),
    st.lists(st.tuples(st.integers(0, 500), st.sampled_from(BLANKS))),
)
def test_every_spelling_gives_the_bytes_back(
    data: bytes, urlsafe: bool, padded: bool, blanks: list[tuple[int, str]]
) -> None:
    text = (base64.urlsafe_b64encode if urlsafe else base64.b64encode)(data).decode()
    text = text if padded else text.rstrip("=")
    for at, blank in blanks:
        text = text[:at] + blank + text[at:]
    assert decode_base64(text) == data
    assert parse_data_url(f"data:image/png;base64,{text}") == data
    assert parse_data_url(f"data:;base64,{quote(text, safe='')}") == data


@given(st.text())
def test_any_text_is_decoded_or_refused(text: str) -> None:
    try:
        data = decode_base64(text)
    except ImageError as error:
        code = str(error.code)
    else:
        code = "ok"
        if not text.lower().lstrip().startswith("data:"):
            canonical = base64.b64encode(data).decode().rstrip("=")[:-1]
            dense = re.sub(r"\s", "", text).replace("-", "+").replace("_", "/")
            assert dense.startswith(canonical)
    assert code in {"ok", "invalid_base64", "image_empty"}


@pytest.mark.parametrize("text", ["", " ", "\r\n\t", "data:image/png;base64,", "data:,", "data:;base64,  \n"])
def test_nothing_is_empty(text: str) -> None:
    assert refusal(text).code == "image_empty"


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("YWJj!WJj", 4),
        ("YWJj\r\n YW*j", 9),
        ("YWJjé", 4),
        ("\ud800YWJj", 0),
        ("YW+_", 2),
        ("YW_+", 3),
        ("ab-/", 3),
        ("YQ==YQ==", 2),
        ("data:image/png;base64,YW!j", 24),
        ("YWJjZ", 5),
        ("YQ===", 5),
        ("=", 0),
        ("\0YWJj", 0),
        ("YWJj\N{NO-BREAK SPACE}YWJj", 4),
    ],
)
def test_what_is_wrong_is_located(text: str, offset: int) -> None:
    error = refusal(text)
    assert error.code == "invalid_base64"
    assert error.status == 422
    assert error.extra["offset"] == offset
    assert f"offset {offset}" in error.detail


def test_the_alphabets_may_not_be_mixed() -> None:
    assert "mixed" in refusal("YW+_").detail


@pytest.mark.parametrize(
    "url",
    [
        "data:image/png;base64,YWJj",
        "DATA:IMAGE/PNG;BASE64,YWJj",
        "Data:;charset=utf-8;Base64,YWJj",
        "data:;base64;charset=utf-8,YWJj",
        "data:image/png; charset=utf-8 ; base64 ,YWJj",
        "  data:;base64,YWJj",
        "data:text/html,abc",
        "data:,%61%62%63",
        "data:;base64,YWJ%6A",
    ],
)
def test_data_urls(url: str) -> None:
    assert parse_data_url(url) == b"abc"
    assert decode_base64(url) == b"abc"


def test_percent_encoded_bytes() -> None:
    data = bytes(range(256))
    assert parse_data_url("data:image/gif," + quote(data, safe="")) == data


@pytest.mark.parametrize(
    "url", ["data:", "data:image/png;base64", "data:" + ";x" * 2000 + ",YWJj", "data:,é", "http://x/y,z", ""]
)
def test_bad_data_urls(url: str) -> None:
    with pytest.raises(ImageError) as caught:
        parse_data_url(url)
    assert caught.value.code == "invalid_base64"


def test_a_base64_media_type_is_no_encoding() -> None:
    # "base64" stands where the media type is, so the data is percent-encoded.
    assert parse_data_url("data:base64,YWJj") == b"YWJj"


def test_20_mib_are_decoded_quickly() -> None:
    data = bytes(range(256)) * (20 * 2**12)
    for text in (
        base64.b64encode(data).decode(),
        base64.encodebytes(data).decode(),
        base64.urlsafe_b64encode(data).decode(),
    ):
        started = time.process_time()
        assert decode_base64(text) == data
        assert time.process_time() - started < 1.5
    started = time.process_time()
    assert refusal(base64.b64encode(data).decode() + "!").code == "invalid_base64"
    assert time.process_time() - started < 1.5


@given(st.binary(min_size=1, max_size=300), st.text(st.sampled_from(UNRESERVED), max_size=20))
def test_percent_escapes_give_back_every_byte(data: bytes, escaped: str) -> None:
    """Against the standard library's own quoting; some of the letters that need no escape get one too."""
    text = quote_from_bytes(data, safe="")
    for letter in escaped:
        text = re.sub(rf"(?<!%)(?<!%.){re.escape(letter)}", f"%{ord(letter):02x}", text)
    assert parse_data_url(f"data:image/png,{text}") == data
    encoded = base64.b64encode(data)
    assert parse_data_url(f"data:;base64,{quote_from_bytes(encoded, safe='')}") == data


@pytest.mark.parametrize("text", ["data:,%", "data:,a%4", "data:,%zz", "data:,%%41", "data:;base64,QUJD%3"])
def test_a_broken_escape_is_refused(text: str) -> None:
    with pytest.raises(ImageError) as refused:
        parse_data_url(text)
    assert refused.value.code is Code.INVALID_BASE64
