"""`vqa serve --workers 2`: every worker answers, all are counted together, and none is left behind."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil
from prometheus_client.mmap_dict import MmapedDict
from prometheus_client.parser import text_string_to_metric_families

from tests.support.pictures import drawn_circle
from tests.support.process import VQA, Served, raw_question, vqa_serve, wait_until


@contextmanager
def two_workers(*flags: str, **environment: str) -> Iterator[Served]:
    with vqa_serve("--workers", "2", *flags, **environment) as served:
        wait_until(lambda: served.logged("ready") == 2, served)
        yield served


def workers(served: Served) -> list[psutil.Process]:
    """Its worker processes (multiprocessing's resource tracker is a child, too)."""
    children = psutil.Process(served.process.pid).children()
    return [child for child in children if runs(child) and "--multiprocessing-fork" in child.cmdline()]


def runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def poll(condition: Callable[[], object], served: Served, seconds: float = 30) -> None:
    """Wait for the condition, whether or not the parent lives."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, served.log
        time.sleep(0.05)


def ask(served: Served) -> int:
    """One question over a connection of its own, so that any worker may take it."""
    files, data = {"image": drawn_circle()}, {"question": "what color is it?"}
    return httpx.post(f"{served.url}/answer", files=files, data=data, timeout=30).status_code


def scrape(served: Served) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(httpx.get(f"{served.url}/metrics", timeout=30).text)
        for sample in family.samples
    }


def total(served: Served, name: str, **labels: str) -> float:
    wanted = set(labels.items())
    return sum(value for (found, have), value in scrape(served).items() if found == name and wanted <= have)


def answered(folder: Path, worker: psutil.Process) -> float:
    """Questions that one worker has counted, from its own file."""
    values = MmapedDict.read_all_values_from_file(str(folder / f"counter_{worker.pid}.db"))
    return sum(value for key, value, *_ in values if '"vqa_questions_total"' in key)


@contextmanager
def half_a_request(served: Served) -> Iterator[tuple[socket.socket, bytes]]:
    """A connection over which 100 bytes of a body have come, and the rest."""
    head, body = raw_question()
    with socket.create_connection(("127.0.0.1", served.port), timeout=30) as connection:
        connection.sendall(head + body[:100])
        wait_until(lambda: total(served, "vqa_buffered_bytes") == 100, served)
        yield connection, body[100:]


def holder(served: Served, connection: socket.socket) -> psutil.Process:
    """The worker that has accepted the connection."""
    port = connection.getsockname()[1]
    return next(w for w in workers(served) if any(c.raddr and c.raddr.port == port for c in w.net_connections()))


def test_each_worker_answers_with_a_session_of_its_own(tmp_path: Path) -> None:
    """ORT-03."""
    with two_workers("--metrics-dir", str(tmp_path)) as served:
        both = workers(served)
        assert len(both) == 2

        def round_of_questions() -> bool:
            with ThreadPoolExecutor(20) as clients:
                assert set(clients.map(lambda _: ask(served), range(20))) == {200}
            return all(answered(tmp_path, worker) for worker in both)

        # The kernel wakes whom it likes; each accepts once the other is busy.
        wait_until(round_of_questions, served)
        assert sum(answered(tmp_path, worker) for worker in both) % 20 == 0
        assert len(workers(served)) == 2


def test_every_scrape_counts_all_workers_and_no_dead_one(tmp_path: Path) -> None:
    """OPS-01, and that a killed worker is replaced."""
    for stale in ("counter_99999.db", "histogram_99999.db", "gauge_livesum_99999.db"):
        (tmp_path / stale).write_bytes(b"an earlier run's")
    (tmp_path / "somebodys.db").write_bytes(b"no metrics")
    with two_workers("--metrics-dir", str(tmp_path)) as served:
        assert not list(tmp_path.glob("*_99999.db"))
        assert (tmp_path / "somebodys.db").read_bytes() == b"no metrics"
        with ThreadPoolExecutor(8) as clients:
            assert set(clients.map(lambda _: ask(served), range(40))) == {200}
        # A request is counted just after its reply.
        wait_until(lambda: total(served, "vqa_http_requests_total", route="/answer") == 40, served)
        for _ in range(10):
            assert total(served, "vqa_questions_total") == 40
            assert total(served, "vqa_http_requests_total", route="/answer", status="200") == 40
            assert total(served, "vqa_stage_seconds_count", stage="finish") == 40
            assert total(served, "vqa_questions_in_flight") == 0
            assert total(served, "vqa_backend_up") == 1
        with half_a_request(served) as (connection, _):
            before = scrape(served)
            victim = holder(served, connection)
            victim.kill()
            poll(lambda: not runs(victim), served)
            after = scrape(served)
            assert after["vqa_buffered_bytes", frozenset()] == 0
            assert after["vqa_questions_in_flight", frozenset()] == 0
            assert not list(tmp_path.glob(f"gauge_*_{victim.pid}.db"))
        for series, value in before.items():
            if series[0].endswith(("_total", "_count", "_bucket", "_sum")):
                assert after[series] >= value, series
        wait_until(lambda: served.logged("ready") == 3 and len(workers(served)) == 2, served)
        assert victim.pid not in {worker.pid for worker in workers(served)}
        assert any(f"worker {victim.pid} ended with SIGKILL" in line for line in served.log)
        assert ask(served) == 200
        assert total(served, "vqa_questions_total") == 41


def test_sigterm_drains_every_worker() -> None:
    with two_workers() as served, half_a_request(served) as (connection, rest):
        served.process.send_signal(signal.SIGTERM)
        # The port is closed to newcomers while the request that was accepted is waited for.
        wait_until(lambda: refuses(served.port), served)
        wait_until(lambda: served.logged("stopped") == 1, served)
        connection.sendall(rest)
        reply = b"".join(iter(lambda: connection.recv(65536), b""))
        assert reply.startswith(b"HTTP/1.1 200"), reply
        served.process.wait(30)
    assert served.process.returncode == 0
    assert served.logged("stopped") == 2
    assert not any("Traceback" in line for line in served.log), served.log


def refuses(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except ConnectionRefusedError:
        return True
    return False


def test_ctrl_c_ends_all_and_leaves_nothing(tmp_path: Path) -> None:
    """A terminal sends it to every process."""
    with two_workers(TMPDIR=str(tmp_path)) as served:
        assert ask(served) == 200
        [folder] = tmp_path.glob("vqa-metrics-*")
        assert list(folder.glob("counter_*.db"))
        both = workers(served)
        for process in (served.process, *both):
            process.send_signal(signal.SIGINT)
        served.process.wait(30)
    assert served.process.returncode == 0
    assert not any(map(runs, both))
    assert not any("Traceback" in line for line in served.log), served.log
    assert list(tmp_path.iterdir()) == []


def test_workers_do_not_outlive_their_parent(tmp_path: Path) -> None:
    """They would hold the port, and nobody would ever stop them."""
    with two_workers("--metrics-dir", str(tmp_path)) as served:
        both = workers(served)
        served.process.kill()
        poll(lambda: not any(map(runs, both)), served)
        assert refuses(served.port)


def test_a_model_that_no_worker_can_load_ends_the_service(tmp_path: Path, root: Path) -> None:
    shutil.copytree(root / "models" / "vilt-shapes", tmp_path / "vilt-shapes")
    (tmp_path / "vilt-shapes" / "labels.json").write_text('["red"]')
    done = fails("--workers", "2", "--models-dir", str(tmp_path))
    assert "labels.json: SHA-256" in done.stderr
    assert done.stderr.count("Started server process") <= 2, "none is started again"


def test_what_is_wrong_is_said_before_a_worker_starts(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for flags, message in {
            ("--workers", "8"): "setting workers (VQA_WORKERS): each of 8 would get max_in_flight 32",
            ("--workers", "2", "--classifier", "no-such"): "no-such",
            ("--workers", "2", "--metrics-dir", str(file)): f"setting metrics_dir (VQA_METRICS_DIR): {file}",
            ("--workers", "2", "--port", port): f"cannot listen on 127.0.0.1:{port}",
        }.items():
            done = fails(*flags)
            assert message in done.stderr
            assert "process" not in done.stderr, "no worker was started"


def fails(*flags: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([VQA, "serve", "--port", "0", *flags], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1, done.stderr
    return done


def test_a_worker_that_takes_anothers_place_refuses_nothing_while_it_starts() -> None:
    with two_workers() as served, ThreadPoolExecutor(2) as pool:
        statuses: list[int] = []

        def keep_asking() -> None:
            while served.logged("ready") < 3:
                try:
                    statuses.append(ask(served))
                except httpx.TransportError:
                    continue  # it was with the one that died

        asking = [pool.submit(keep_asking) for _ in range(2)]
        poll(lambda: len(statuses) > 5, served)
        workers(served)[0].kill()
        for each in asking:
            each.result(60)
        assert set(statuses) == {200}
