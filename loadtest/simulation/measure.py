"""Measure what a simulation needs of a model, and write it to `measured.toml`.

    python -m loadtest.simulation.measure --model FOLDER [--model FOLDER] [--out FILE]

Each model gets a section of its own; sections of other models stay. One-thread times are CPU seconds of the thread, so
that what other processes take is not counted; those of all cores together are seconds of the clock, so measure on a
machine that does nothing else.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import click
import httpx
import numpy as np
import tomlkit

from loadtest import report
from loadtest.closed_loop import closed_loop, statuses
from loadtest.pictures import camera, camera_mixed, stamped
from loadtest.questions import post, question
from loadtest.server import EMBEDDED, ROOT, model_folder, running
from loadtest.simulation import redis_limit
from loadtest.simulation.measured import FILE, SIZES
from loadtest.stages import Stages
from loadtest.wire import Client, run
from service.answers import Posterior
from service.backends import ManifestError
from service.backends.classifier import PREPROCESSING
from service.backends.cpus import available_cpus
from service.backends.layout import Way
from service.files import write_whole
from service.gateway.cache import Cached, CacheKey
from service.gateway.cache_codec import encode

SAMPLES = 50
PICTURES = 10
ALONE_TRIES = 3
HITS, HIT_CLIENTS = 4_000, 8
OVERLOAD = ROOT / report.RESULTS / f"overload-{EMBEDDED}.json"


def pictures_of(size: str) -> list[bytes]:
    """Camera-like JPEGs of one size."""
    if size == "mixed":
        return [camera_mixed(seed) for seed in range(SAMPLES)]
    width, height = map(int, size.split("x"))
    return [camera(seed, width, height) for seed in range(PICTURES)]


def stages_of(model: str, cores: int) -> tuple[dict[str, Any], int]:
    """Samples of both stages in milliseconds, sizes in bytes; and the bytes of an answer in the shared cache."""
    stages = Stages.open(model_folder(model), {Way.WIDE: cores, Way.NARROW: 1})
    prepare: dict[str, list[float]] = {}
    size_bytes: dict[str, int] = {}
    for size in SIZES:
        files = pictures_of(size)
        size_bytes[size] = round(float(np.mean([len(file) for file in files])))
        stages.prepare(files[0])  # warm
        prepare[size] = [
            _timed(partial(stages.prepare, files[n % len(files)]), time.thread_time) for n in range(SAMPLES)
        ]
    pixels = [stages.prepare(picture) for picture in pictures_of("mixed")]

    def infer(number: int, way: Way) -> None:
        stages.infer(pixels[number % len(pixels)], question(number), way)

    for way in (Way.WIDE, Way.NARROW):
        infer(0, way)
    # The best of some: whatever else the machine does only ever adds.
    alone = [
        min(_timed(partial(infer, n, Way.WIDE), time.perf_counter) for _ in range(ALONE_TRIES)) for n in range(SAMPLES)
    ]
    # Each core does one all the time: they share the memory's bandwidth as they do under load.
    with ThreadPoolExecutor(cores) as pool:
        busy = list(pool.map(lambda n: _timed(partial(infer, n, Way.NARROW), time.thread_time), range(SAMPLES)))
    entry, shared = entry_bytes(stages)
    figures = {
        "cores": cores,
        "prepare_ms": prepare,
        "inference_alone_ms": alone,
        "inference_busy_ms": busy,
        "picture_bytes": size_bytes,
        "entry_bytes": entry,
        "shared_bytes": shared,
    }
    return figures, shared


def entry_bytes(stages: Stages) -> tuple[int, int]:
    """Bytes of one answer over the model's whole vocabulary: in the memory cache, and encoded for the shared one."""
    vilt, text = stages.vilt, question(0)
    answers = vilt.vocabulary.default_set
    logits = stages.infer(vilt.grey().pixels, text)[0]
    posterior = Posterior.from_logits(logits, vilt.vocabulary.project(answers), answers, stages.manifest.scores.kind)
    cached = Cached(posterior, (), False, 640, 480)
    key = CacheKey("", "0" * 64, text, answers.identity, "", stages.manifest.revision, PREPROCESSING, "auto")
    return cached.nbytes + key.nbytes, len(encode(cached))


def served(model: str) -> dict[str, float]:
    """Seconds until a server is ready, milliseconds of CPU of a question that the cache answers, and time series."""
    picture = stamped(camera(0), 1)
    started = time.perf_counter()
    with running(model) as server:
        start_s = time.perf_counter() - started
        request = post(server.host, picture, question=question(0))

        async def ask(count: int) -> dict[str, int]:
            client = Client(server.url)
            try:
                done = await closed_loop(client, lambda _: request, HIT_CLIENTS, requests=count)
            finally:
                client.close()
            return statuses(done.exchanges)

        run(ask(HITS // 10))
        server.wait_idle()
        before = server.cpu_s()
        if (found := run(ask(HITS))) != {"200": HITS}:
            raise click.ClickException(f"questions that the cache should have answered: {found}")
        front_ms = round((server.cpu_s() - before) / HITS * 1000, 4)
        lines = httpx.get(f"{server.url}/metrics", timeout=30).text.splitlines()
        series = sum(not line.startswith("#") for line in lines)
        return {"start_s": round(start_s, 2), "front_ms": front_ms, "series": series}


def refusal_ms(path: Path = OVERLOAD) -> float:
    """Milliseconds of CPU that a refusal costs, from a measured overload.

    What the server burnt beyond what its answers cost, over the refusals; an answer costs what it did at capacity.
    """
    summary = json.loads(path.read_text())["summary"]
    answers_s: float = summary["goodput_per_s"] * summary["capacity_server_cores"] / summary["capacity_per_s"]
    refusals_per_s: float = summary["refused"] / summary["seconds"]
    server_cores: float = summary["server_cores"]
    return round(max(0.0, server_cores - answers_s) / refusals_per_s * 1000, 4)


def _timed(work: Callable[[], object], clock: Callable[[], float]) -> float:
    started = clock()
    work()
    return round((clock() - started) * 1000, 3)


@click.command()
@click.option("--model", "models", multiple=True, required=True, help="A model's folder or name; repeatable.")
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), default=FILE, help="File to write; default measured.toml."
)
def main(models: tuple[str, ...], out: Path) -> None:
    """Measure service times for the simulation."""
    try:
        document = tomlkit.parse(out.read_text()) if out.exists() else tomlkit.document()
    except (OSError, ValueError) as error:
        raise click.ClickException(f"{out}: {error}") from None
    sections = document.setdefault("models", tomlkit.table(is_super_table=True))
    shared = 0
    for model in models:
        machine = report.Machine()
        cores = available_cpus()
        click.echo(f"{Path(model).name}: preparing, inference", err=True)
        try:
            figures, shared = stages_of(model, cores)
        except ManifestError as error:
            raise click.BadParameter(str(error), param_hint="--model") from None
        click.echo(f"{Path(model).name}: a server", err=True)
        figures |= served(model) | {"refusal_ms": refusal_ms()}
        facts = machine.facts()
        sources = {
            "when": facts["when"],
            "machine": f"{facts['cores']} cores, {facts['cpu']}, onnxruntime {facts['onnxruntime']}",
            "cores_used_by_others": facts["cores_used_by_others"],
            "refusal_from": OVERLOAD.name,
        }
        sections[Path(model).name] = sources | figures
    if (found := redis_limit.measure(shared)) is not None:
        document["redis"] = found
    write_whole(out, tomlkit.dumps(document).encode())
    click.echo(f"{out} written", err=True)


if __name__ == "__main__":
    main()
