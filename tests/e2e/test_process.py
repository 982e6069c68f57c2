"""`vqa serve` as a real process: listening, answering, draining, and running with next to no rights."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import psutil

from service.backends.cpus import available_cpus
from tests.support.pictures import drawn_circle
from tests.support.process import VQA, raw_question, vqa_serve, wait_until


def test_a_right_answer_and_a_clean_end() -> None:
    with vqa_serve() as served:
        reply = served.ask()
        assert (reply.status_code, reply.json()["answer"]) == (200, "red")
        assert served.client.get("/livez").status_code == 200
        served.process.send_signal(signal.SIGTERM)
        served.process.wait(20)
    # uvicorn ends itself with the signal that it got, after everything was stopped in order.
    assert served.process.returncode == -signal.SIGTERM
    assert served.logged("stopped"), served.log
    assert not any("Traceback" in line for line in served.log), served.log


def test_sigterm_finishes_what_was_accepted() -> None:
    """A request whose body is still arriving was accepted: its answer comes, then the process ends."""
    with vqa_serve() as served:
        head, body = raw_question()
        with socket.create_connection(("127.0.0.1", served.port), timeout=20) as connection:
            connection.sendall(head + body[:100])
            wait_until(lambda: "vqa_buffered_bytes 100.0" in served.client.get("/metrics").text, served)
            served.process.send_signal(signal.SIGTERM)
            time.sleep(0.5)
            assert served.process.poll() is None, "it must wait for the request"
            connection.sendall(body[100:])
            reply = b"".join(iter(lambda: connection.recv(65536), b""))
        assert reply.startswith(b"HTTP/1.1 200"), reply
        served.process.wait(20)
    assert served.logged("stopped"), served.log


def test_a_drain_that_takes_too_long_ends_with_a_503() -> None:
    """The client is told to ask elsewhere, not cut off, and the log holds no traceback."""
    with vqa_serve("--drain-timeout-s", "1") as served:
        head = b"POST /answer HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{"
        with socket.create_connection(("127.0.0.1", served.port), timeout=20) as connection:
            connection.sendall(head)
            wait_until(lambda: "vqa_buffered_bytes 1.0" in served.client.get("/metrics").text, served)
            served.process.send_signal(signal.SIGTERM)
            reply = b"".join(iter(lambda: connection.recv(65536), b""))
        assert reply.startswith(b"HTTP/1.1 503"), reply
        assert b'"draining"' in reply
        assert b"retry-after" in reply.lower()
        served.process.wait(20)
    assert not any("Traceback" in line for line in served.log), served.log


def test_nothing_is_written_to_the_home_folder(tmp_path: Path) -> None:
    """Official builds of ONNX Runtime keep a device's id there and report to their maker, unless told not to.

    Under CI they keep still by themselves, so those variables are taken away.
    """
    told = {name: "" for name in os.environ if name.startswith(("ORT_", "XDG_"))}
    with vqa_serve(HOME=str(tmp_path), CI="", TF_BUILD="", GITHUB_ACTIONS="", **told) as served:
        assert served.ask().json()["answer"] == "red"
        time.sleep(1)
        connections = psutil.Process(served.process.pid).net_connections()
        assert {c.laddr.port for c in connections} == {served.port}
    assert list(tmp_path.rglob("*")) == []


def test_threads_stay_within_what_is_allowed() -> None:
    """ORT-01: no thread pool of the host's size; the number is visible; no affinity warning in the log."""
    with vqa_serve("--threads", "1", "--decode-threads", "1") as served:
        assert served.ask().status_code == 200
        threads = psutil.Process(served.process.pid).num_threads()
        assert threads <= 1 + 16, threads
        assert 'vqa_backend_threads{backend="classifier"} 1.0' in served.client.get("/metrics").text
    assert not any("affinity" in line.lower() for line in served.log)
    with vqa_serve("--threads", "64") as served:
        allowed = available_cpus()
        assert f'vqa_backend_threads{{backend="classifier"}} {allowed}.0' in served.client.get("/metrics").text


def test_a_model_that_cannot_be_loaded_ends_the_process(tmp_path: Path, root: Path) -> None:
    import shutil

    shutil.copytree(root / "models" / "vilt-shapes", tmp_path / "vilt-shapes")
    (tmp_path / "vilt-shapes" / "labels.json").write_text('["red"]')
    done = subprocess.run(
        [VQA, "serve", "--port", "0", "--models-dir", str(tmp_path)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert "labels.json: SHA-256" in done.stderr


def test_a_taken_port_is_a_clear_error() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = subprocess.run([VQA, "serve", "--port", port], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert f"cannot listen on 127.0.0.1:{port}" in done.stderr


def test_json_logs_carry_the_request_id() -> None:
    import json

    with vqa_serve("--log-format", "json") as served:
        served.client.post(
            "/answer", files={"image": drawn_circle()}, data={"question": "?"}, headers={"X-Request-Id": "r-1"}
        )
        wait_until(lambda: any("POST /answer" in line for line in served.log), served, 5)
        record = next(json.loads(line) for line in served.log if "POST /answer" in line)
    assert record["request_id"] == "r-1"
    assert record["status"] == 200
    assert record["seconds"] > 0
