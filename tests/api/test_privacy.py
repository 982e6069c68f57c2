"""Questions, pictures and base64 never reach a disk or a log."""

from __future__ import annotations

import base64
import io
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from service.telemetry.logs import MAX_RECORD_CHARS
from tests.support.cases import CASES, cases
from tests.support.logs import json_log
from tests.support.pictures import encoded
from tests.support.serving import serving

# Audit events that name a file or a folder that is made, opened, moved or linked.
WRITING = {"open", "os.mkdir", "os.rename", "os.link", "os.symlink", "tempfile.mkstemp", "tempfile.mkdtemp"}
_watched: list[str] | None = None


def _audit(event: str, arguments: tuple[object, ...]) -> None:
    if _watched is None or event not in WRITING:
        return
    if event == "open":
        path, mode, flags = (*arguments, None, None, None)[:3]
        writes = int(flags or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND)
        if not writes or str(path) in ("/dev/null",):
            return
        arguments = (path, mode)
    _watched.append(f"{event} {arguments}")


sys.addaudithook(_audit)


@contextmanager
def watching_disk() -> Iterator[list[str]]:
    """Everything that the process opens for writing, from any thread."""
    global _watched
    _watched = []
    try:
        yield _watched
    finally:
        _watched = None


def big_noise() -> bytes:
    """Three megabytes, above every spooling threshold that frameworks have."""
    return encoded(Image.fromarray(np.random.default_rng(3).integers(0, 256, (1000, 1000, 3), dtype=np.uint8)))


def test_the_watch_sees_a_write(tmp_path: Path) -> None:
    with watching_disk() as writes:
        (tmp_path / "x").write_text("x")
    assert writes


def test_no_picture_byte_touches_a_disk() -> None:
    pictures = [case.data for case in cases("image")] + [big_noise()]
    with serving() as running:
        with watching_disk() as writes:
            for data in pictures:
                running.client.post("/answer", files={"image": ("a", io.BytesIO(data))}, data={"question": "what?"})
                text = base64.b64encode(data).decode()
                running.client.post("/answer", json={"image": {"base64": text}, "question": "what?"})
        assert writes == []


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """All records of the service, as JSON lines."""
    with json_log() as stream:
        yield stream


def test_no_question_or_picture_reaches_a_log(logged: io.StringIO) -> None:
    marker = "zebracrossing"
    picture = base64.b64encode(big_noise()).decode()
    with serving() as running:
        post = running.client.post
        post("/answer", json={"image": {"base64": picture}, "question": f"is the {marker} red?", "choices": [marker]})
        post("/answer", json={"image": f"data:{marker};base64,{picture}", "question": marker, marker: marker})
        post("/answer", json={"image": {"url": f"https://{marker}/"}, "question": marker})
        post("/answer", content=f'{{"question": "{marker}'.encode(), headers={"Content-Type": "application/json"})
        post(f"/{marker}?{marker}={marker}")
        for case in cases("requests"):
            post("/answer", content=case.data, headers={"Content-Type": "application/json"})
            post("/answer", content=case.data, headers={"Content-Type": "multipart/form-data; boundary=x"})
    text = logged.getvalue()
    assert text.count("\n") >= 5
    assert marker not in text
    assert picture[:40] not in text
    for line in text.splitlines():
        assert len(line) < 2 * MAX_RECORD_CHARS
        json.loads(line)


def test_a_binary_body_on_a_json_route_is_not_echoed(logged: io.StringIO) -> None:
    """API-08."""
    data = (CASES / "requests" / "png_bytes_as_json.bin").read_bytes() * 4000
    with serving() as running:
        reply = running.client.post("/answer", content=data, headers={"Content-Type": "application/json"})
    assert reply.status_code == 400
    assert len(reply.content) < 4096
    assert "IHDR" not in reply.text
    assert "IHDR" not in logged.getvalue()
    assert max(map(len, logged.getvalue().splitlines())) < 8192
