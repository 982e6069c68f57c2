"""API keys: who may ask, who is told nothing, and a file of keys that cannot be used."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.datastructures import Headers

from service.api.keys import ApiKeys
from service.errors import Code, SettingsError, VQAError
from tests.support.backends import ScriptedBackend
from tests.support.logs import json_log
from tests.support.pictures import drawn_circle
from tests.support.serving import Running, serving

ACME, ACME_TOO, ZOO = "acme-key-0123456789", "acme-key-abcdefghij", "zoo-key:with=signs/0123"
FILE = f"# who may ask\n\nacme:{ACME}\n  acme : {ACME_TOO}\r\nzoo:{ZOO}\nzoo:{ZOO}\n"
WRONG = "wrong-key-0123456789"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("keys") / "keys"
    path.write_text(FILE)
    return path


@pytest.fixture(scope="module")
def locked(path: Path) -> Iterator[Running]:
    with serving({"classifier": ScriptedBackend()}, api_keys=path) as running:
        yield running


def of(**headers: str) -> Headers:
    return Headers({name.replace("_", "-"): value for name, value in headers.items()})


@pytest.mark.parametrize(
    ("headers", "tenant"),
    [
        (of(authorization=f"Bearer {ACME}"), "acme"),
        (of(authorization=f"bEARER  {ACME_TOO} "), "acme"),
        (of(authorization=f"Bearer {ZOO}"), "zoo"),
        (of(x_api_key=ZOO), "zoo"),
        (of(authorization="Basic eDp5", x_api_key=ACME), "acme"),
    ],
)
def test_a_key_names_its_tenant(path: Path, headers: Headers, tenant: str) -> None:
    assert ApiKeys.load(path).tenant_of(headers) == tenant


@pytest.mark.parametrize(
    "headers",
    [
        of(),
        of(authorization=""),
        of(authorization=f"Bearer {WRONG}"),
        of(authorization=f"Bearer {ACME[:-1]}"),
        of(authorization=f"Bearer {ACME}x"),
        of(authorization=f"Bearer {ACME} {ACME}"),
        of(authorization=ACME),
        of(authorization=f"Basic {ACME}"),
        of(authorization=f"Bearer {WRONG}", x_api_key=ACME),
        of(x_api_key=""),
        of(x_api_key=f"acme:{ACME}"),
        of(x_api_key=ACME.upper()),
        of(x_api_key="ÿ" * 20),
    ],
)
def test_missing_and_wrong_are_told_in_the_same_words(path: Path, headers: Headers) -> None:
    with pytest.raises(VQAError) as caught:
        ApiKeys.load(path).tenant_of(headers)
    assert caught.value.code is Code.UNAUTHORIZED
    with pytest.raises(VQAError) as missing:
        ApiKeys.load(path).tenant_of(of())
    assert caught.value.detail == missing.value.detail


def test_no_file_is_no_lock() -> None:
    keys = ApiKeys.load(None)
    assert keys.tenant_of(of()) == keys.tenant_of(of(x_api_key=WRONG)) == ""


def test_no_key_is_kept_as_it_is(path: Path) -> None:
    assert ACME not in repr(vars(ApiKeys.load(path)))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no key"),
        ("# nobody\n", "no key"),
        (f"{ACME}\n", "line 1"),
        (f"acme:{ACME}\n:{ZOO}\n", "line 2"),
        ("acme:short-secret-k\n", "16 characters"),
        ("acme:\n", "line 1"),
        (f"a b:{ACME}\n", "line 1"),
        (f"acme:{ACME} and more\n", "line 1"),
        ("acme:schlüssel-0123456789\n", "line 1"),
        (f"acme:{ACME}\nzoo:{ACME}\n", "line 2.*another tenant"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_and_not_quoted(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "keys"
    path.write_text(text, "utf-8")
    with pytest.raises(SettingsError, match=rf"api_keys \(VQA_API_KEYS\).*{why}") as caught:
        ApiKeys.load(path)
    for secret in (ACME, "short-secret-k", "schl"):
        assert secret not in str(caught.value)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"acme:\xff\xff")
    for name in ("missing", "binary", "."):
        with pytest.raises(SettingsError, match=r"api_keys.*cannot be read"):
            ApiKeys.load(tmp_path / name)


def test_the_server_does_not_start_with_it(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="api_keys"), serving(api_keys=tmp_path / "missing"):
        pass


def ask(running: Running, route: str = "/answer", **headers: str) -> object:
    return running.client.post(
        route, files={"image": drawn_circle()}, data={"question": "is it red?"}, headers=dict(of(**headers))
    )


@pytest.mark.parametrize("route", ["/answer", "/answers"])
def test_over_http(locked: Running, route: str) -> None:
    assert ask(locked, route, authorization=f"Bearer {ACME}").status_code == 200
    assert ask(locked, route, x_api_key=ZOO).status_code == 200
    documents = []
    for headers in ({}, {"authorization": f"Bearer {WRONG}"}):
        refused = ask(locked, route, **headers)
        assert refused.status_code == 401
        assert refused.headers["www-authenticate"] == "Bearer"
        assert refused.headers["content-type"] == "application/problem+json"
        documents.append(refused.json() | {"request_id": ""})
    assert documents[0] == documents[1]
    assert documents[0]["code"] == "unauthorized"


def test_what_probes_and_scrapers_need_stays_open(locked: Running) -> None:
    for path in ("/livez", "/readyz", "/metrics", "/models", "/openapi.json", "/"):
        assert locked.client.get(path).status_code == 200
    assert locked.metric("vqa_problems_total", code="unauthorized") >= 0


def test_the_body_is_not_waited_for(locked: Running) -> None:
    """Nor is `Expect: 100-continue` answered with a go-ahead."""
    head = (
        "POST /answer HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n"
        "Expect: 100-continue\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", locked.port), timeout=10) as connection:
        connection.sendall(head.encode())
        assert connection.recv(4096).startswith(b"HTTP/1.1 401 ")


def test_no_key_reaches_a_log(path: Path) -> None:
    with json_log() as stream, serving({"classifier": ScriptedBackend()}, api_keys=path) as running:
        ask(running, authorization=f"Bearer {ACME}")
        ask(running, authorization=f"Bearer {WRONG}")
        ask(running, x_api_key=WRONG)
    text = stream.getvalue()
    assert [json.loads(line).get("code") for line in text.splitlines()].count("unauthorized") == 2
    for key in (ACME, WRONG):
        assert key not in text
