"""Picture addresses (SSRF-01, 03, 05, 07): fetching is off, so each is refused alike and nothing is contacted."""

from __future__ import annotations

import json
import socket
import threading
import time

import pytest

from tests.support.cases import cases
from tests.support.serving import Running

URLS = [json.loads(line)["url"] for case in cases("ssrf") for line in case.data.decode("utf-8").splitlines()]


@pytest.mark.parametrize("url", URLS)
def test_every_address_is_refused_with_the_same_words(served: Running, url: str) -> None:
    started = time.perf_counter()
    reply = served.client.post("/answer", json={"image": {"url": url}, "question": "what is it?"})
    assert time.perf_counter() - started < 2
    assert reply.status_code == 403
    problem = reply.json()
    assert problem["code"] == "url_not_allowed"
    assert problem["field"] == "image.url"
    assert problem["detail"] == "This server fetches no pictures by address. Send the picture's bytes."


@pytest.mark.parametrize("url", ["http://127.0.0.1/x.png", "FILE:///etc/passwd", " https://example.org/a", "ftp://h/x"])
def test_an_address_as_a_string_is_refused_too(served: Running, url: str) -> None:
    for reply in (
        served.client.post("/answer", json={"image": url, "question": "what is it?"}),
        served.client.post("/answer", files={"image": (None, url), "question": (None, "what is it?")}),
    ):
        assert (reply.status_code, reply.json()["code"]) == (403, "url_not_allowed")


def test_nothing_is_contacted(served: Running) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.settimeout(0.5)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/x.png"
        contacted = threading.Event()

        def accept() -> None:
            try:
                listener.accept()[0].close()
                contacted.set()
            except TimeoutError:
                pass

        watcher = threading.Thread(target=accept)
        watcher.start()
        served.client.post("/answer", json={"image": {"url": url}, "question": "what is it?"})
        watcher.join()
        assert not contacted.is_set()
