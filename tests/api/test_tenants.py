"""Two tenants with the same picture and the same question share nothing that either can see."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.support.backends import ScriptedBackend
from tests.support.pictures import drawn_circle
from tests.support.serving import Running, serving

KEYS = {"north": "north-key-0123456789", "south": "south-key-0123456789"}


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    file = tmp_path / "keys"
    file.write_text("".join(f"{tenant}:{key}\n" for tenant, key in KEYS.items()))
    return file


def ask(running: Running, tenant: str) -> httpx.Response:
    headers = {"Authorization": f"Bearer {KEYS[tenant]}"}
    return running.client.post(
        "/answer", files={"image": drawn_circle()}, data={"question": "is it red?"}, headers=headers
    )


def test_one_tenants_answer_is_no_hit_for_another(key_file: Path) -> None:
    backend = ScriptedBackend()
    with serving({"classifier": backend}, api_keys=key_file) as running:
        assert not ask(running, "north").json()["cached"]
        other = ask(running, "south").json()
        assert not other["cached"]
        assert other["timings_ms"]["decode"] > 0, "it was decoded for this tenant"
        assert len(backend.asked) == len(backend.prepared) == 2
        assert ask(running, "north").json()["cached"]
        assert ask(running, "south").json()["cached"]


def test_tenants_do_not_join_each_others_computations(key_file: Path) -> None:
    backend, gate = ScriptedBackend(), threading.Event()
    prepare = backend.prepare
    backend.prepare = lambda image: (gate.wait(20), prepare(image))[1]
    with serving({"classifier": backend}, api_keys=key_file) as running, ThreadPoolExecutor(2) as pool:
        replies = [pool.submit(ask, running, tenant) for tenant in KEYS]
        while running.metric("vqa_questions_in_flight") < 2:
            pass
        gate.set()
        assert {reply.result().status_code for reply in replies} == {200}
        assert running.metric("vqa_cache_lookups_total", result="coalesced") == 0
    assert len(backend.asked) == len(backend.prepared) == 2


def test_a_tenants_leaving_ends_nothing_of_anothers(key_file: Path) -> None:
    backend, gate = ScriptedBackend(), threading.Event()
    prepare = backend.prepare
    backend.prepare = lambda image: (gate.wait(20), prepare(image))[1]
    with serving({"classifier": backend}, api_keys=key_file) as running, ThreadPoolExecutor(1) as pool:
        stays = pool.submit(ask, running, "south")
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(
                f"{running.url}/answer",
                files={"image": drawn_circle()},
                data={"question": "is it red?"},
                headers={"X-API-Key": KEYS["north"]},
                timeout=0.3,
            )
        gate.set()
        assert stays.result().json()["answer"] == "yes"
