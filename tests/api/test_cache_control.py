"""What a request's `Cache-Control` asks for, however it is written."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import Headers

from service.api.cache_control import freshness
from service.gateway.question import Freshness


def of(*values: str) -> Freshness:
    return freshness(Headers(raw=[(b"cache-control", value.encode("latin-1")) for value in values]))


CACHED, FRESH, PRIVATE = Freshness.CACHED, Freshness.FRESH, Freshness.PRIVATE


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("", CACHED),
        ("no-cache", FRESH),
        ("No-Cache", FRESH),
        ("no-store", PRIVATE),
        ("max-age=0", FRESH),
        ("MAX-AGE=000", FRESH),
        ('max-age="0"', FRESH),
        ("max-age = 0", FRESH),
        ("max-age=60", CACHED),
        ("max-age=", CACHED),
        ("max-age", CACHED),
        ("max-age=never", CACHED),
        ("no-cache, no-store", PRIVATE),
        ("no-store,no-cache", PRIVATE),
        (" ,, no-cache ,", FRESH),
        ("only-if-cached, max-stale=5", CACHED),
        ("no-cached", CACHED),
        ("x-no-store", CACHED),
        ('community="no-store, no-cache"', CACHED),
        ('community="a \\" b, no-store", no-cache', FRESH),
        ('no-cache="set-cookie, x", foo', FRESH),
        ('broken="no-such, no-store', PRIVATE),
        ("@@@, no-cache", FRESH),
        ("a=b c, no-store", PRIVATE),
        ("no-store;q=1", PRIVATE),
        ("\xff\xff, no-store", PRIVATE),
    ],
)
def test_directives(value: str, wanted: Freshness) -> None:
    assert of(value) is wanted


def test_several_headers_are_one_list() -> None:
    assert of("max-age=0", "no-store") is PRIVATE
    assert of("x=y", "no-cache") is FRESH
    assert freshness(Headers({})) is CACHED


@given(st.text(st.characters(max_codepoint=255)))
def test_anything_is_read(value: str) -> None:
    assert of(value) in Freshness


@pytest.mark.parametrize("part", [",", 'a="', 'a="\\', "a=", "a ", '"', " ", '\\"', 'a="\\",'])
def test_a_long_one_takes_no_time(part: str) -> None:
    started = time.process_time()
    of(part * (16_000 // len(part)))
    assert time.process_time() - started < 0.5


def test_what_each_allows() -> None:
    assert [(f.looks_up, f.stores) for f in (CACHED, FRESH, PRIVATE)] == [(True, True), (False, True), (False, False)]
