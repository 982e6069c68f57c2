"""Exact accuracy over HTTP on the official test split of easy-VQA (9,673 questions, 1,000 pictures).

    python -m loadtest.easy_vqa [--url http://127.0.0.1:8000] [--questions N] [--json]

Starts `vqa serve` on a free port and stops it afterwards, unless a URL is given. Each picture is sent once, with all
its questions, to `POST /answers`.
"""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import httpx
from easy_vqa import get_test_image_paths, get_test_questions
from rich.progress import track

CLIENTS = 4
MOST_A_REQUEST = 64
START_S = 90


def kind_of(question: str) -> str:
    """The kind of an easy-VQA question: colour, shape, or yes/no, plain or negated."""
    words = question.replace("?", "").split()
    if words[0] == "what":
        return "colour" if "color" in words else "shape"
    return "yes/no negated" if {"no", "not"} & set(words) else "yes/no"


@contextmanager
def server() -> Iterator[str]:
    """The address of a server of our own, ready; stopped afterwards."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(Path(sys.executable).with_name("vqa")), "serve", "--port", str(port), "--log-level", "warning"]
    process = subprocess.Popen(command)
    try:
        url = f"http://127.0.0.1:{port}"
        deadline = time.monotonic() + START_S
        while not _ready(url):
            if process.poll() is not None or time.monotonic() > deadline:
                raise click.ClickException("the server did not become ready")
            time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.wait(30)


def _ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz").status_code == httpx.codes.OK
    except httpx.TransportError:
        return False


async def ask_all(url: str, questions: list[tuple[str, str, int]], pictures: dict[int, bytes]) -> list[dict[str, Any]]:
    """One row a question: what was asked, what is right, what was answered and how surely."""
    by_picture: dict[int, list[tuple[str, str]]] = defaultdict(list)
    for question, answer, picture in questions:
        by_picture[picture].append((question, answer))
    rows: list[dict[str, Any]] = []
    gate = asyncio.Semaphore(CLIENTS)
    async with httpx.AsyncClient(base_url=url, timeout=60) as client:

        async def ask(picture: int, pairs: list[tuple[str, str]]) -> None:
            data = pictures[picture]
            for start in range(0, len(pairs), MOST_A_REQUEST):
                part = pairs[start : start + MOST_A_REQUEST]
                async with gate:
                    fields = {"questions": json.dumps([question for question, _ in part])}
                    reply = await client.post("/answers", files={"image": data}, data=fields)
                reply.raise_for_status()
                for (question, answer), item in zip(part, reply.json()["results"], strict=True):
                    result = item["result"]
                    rows.append(
                        {
                            "kind": kind_of(question),
                            "right": answer,
                            "answer": result["answer"],
                            "confidence": result["confidence"],
                        }
                    )

        tasks = [asyncio.ensure_future(ask(*item)) for item in by_picture.items()]
        for task in track(tasks, "easy-VQA test", disable=not sys.stderr.isatty()):
            await task
    return rows


def summary(rows: list[dict[str, Any]], seconds: float) -> dict[str, Any]:
    """Exact accuracy, over all and by kind, the share called unanswerable, and questions a second."""
    right: Counter[str] = Counter(row["kind"] for row in rows if row["answer"] == row["right"])
    total: Counter[str] = Counter(row["kind"] for row in rows)
    return {
        "questions": len(rows),
        "accuracy": sum(right.values()) / len(rows),
        "by_kind": {kind: right[kind] / count for kind, count in sorted(total.items())},
        "unanswerable": sum(row["answer"] == "unanswerable" for row in rows) / len(rows),
        "questions_per_second": len(rows) / seconds,
    }


@click.command()
@click.option("--url", help="A server that runs already.")
@click.option("--questions", type=click.IntRange(1), help="Only the first so many.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def main(url: str | None, questions: int | None, as_json: bool) -> None:
    """Ask a server the official easy-VQA test questions and print how many it gets exactly right."""
    texts, answers, pictures = get_test_questions()
    asked = list(zip(texts, answers, pictures, strict=True))[:questions]
    if url is None:
        with server() as own:
            result = _run(own, asked)
    else:
        result = _run(url, asked)
    if as_json:
        click.echo(json.dumps(result))
        return
    click.echo(f"easy-VQA test: {result['accuracy']:.4f} exact over {result['questions']} questions")
    for kind, accuracy in result["by_kind"].items():
        click.echo(f"  {kind:15} {accuracy:.4f}")
    click.echo(f"  called unanswerable: {result['unanswerable']:.4f}")
    click.echo(f"  {result['questions_per_second']:.0f} questions/s with {CLIENTS} clients")


def _run(url: str, asked: list[tuple[str, str, int]]) -> dict[str, Any]:
    pictures = {number: Path(path).read_bytes() for number, path in get_test_image_paths().items()}
    started = time.perf_counter()
    rows = asyncio.run(ask_all(url, asked, pictures))
    return summary(rows, time.perf_counter() - started)


if __name__ == "__main__":
    main()
