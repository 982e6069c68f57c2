"""`vqa ask`: one question about one picture, here or at a server."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import click
import httpx

from service.api.replies import answer_reply
from service.api.schema import AnswerReply, ProblemDocument
from service.cli.options import settings_options
from service.gateway import Picture, Question
from service.gateway.build import build_gateway
from service.settings import load_settings
from service.telemetry.metrics import Metrics

SERVER_TIMEOUT_S = 60


@click.command(epilog='Example: vqa ask models/vilt-shapes/examples/red-circle.png "what color is the circle?"')
@click.argument("image", type=click.Path(path_type=Path))
@click.argument("question")
@click.option("--choices", help="The only answers allowed, separated by commas.")
@click.option("--answer-set", help="A named set instead: yes-no, numbers, colors or open.")
@click.option("--max-risk", type=float, help="Abstain where the risk of a wrong answer may exceed this.")
@click.option("--top-k", type=click.IntRange(1, 100), default=5, show_default=True, help="Most candidates.")
@click.option("--server", metavar="URL", help="Ask this server instead of loading the model here.")
@click.option("--json", "as_json", is_flag=True, help="Print the whole reply as JSON.")
@settings_options("classifier", "models_dir", "policy")
def ask(
    image: Path,
    question: str,
    choices: str | None,
    answer_set: str | None,
    max_risk: float | None,
    top_k: int,
    server: str | None,
    as_json: bool,
    **flags: Any,
) -> None:
    """Ask QUESTION about the picture in the file IMAGE (`-` reads standard input)."""
    data = _read(image)
    options: dict[str, Any] = {"answer_set": answer_set, "max_risk": max_risk, "top_k": top_k}
    if choices is not None:
        options["choices"] = [choice.strip() for choice in choices.split(",")]
    reply = _ask_server(server, data, question, options, flags) if server else _ask_here(data, question, options, flags)
    if as_json:
        click.echo(json.dumps(reply, ensure_ascii=False))
        return
    click.echo(_sentence(reply))
    for warning in reply["warnings"]:
        click.echo(f"warning: {warning['message']}", err=True)


def _ask_here(data: bytes, question: str, options: dict[str, Any], flags: dict[str, Any]) -> dict[str, Any]:
    settings = load_settings(**flags)
    gateway = build_gateway(settings, Metrics(), measured=False)

    async def run() -> dict[str, Any]:
        try:
            await gateway.start()
        except ExceptionGroup as group:
            raise click.ClickException(str(group.exceptions[0])) from group
        try:
            choices = options.pop("choices", None)
            asked = Question(question, choices=None if choices is None else tuple(choices), **options)
            reply = await gateway.answer(Picture(lambda: data), asked)
            return answer_reply(reply, "local").model_dump()
        finally:
            await gateway.stop()

    return asyncio.run(run())


def _ask_server(
    server: str, data: bytes, question: str, options: dict[str, Any], flags: dict[str, Any]
) -> dict[str, Any]:
    fields: dict[str, Any] = {"question": question, "policy": flags.get("policy"), **options}
    form = {name: json.dumps(v) if isinstance(v, list) else str(v) for name, v in fields.items() if v is not None}
    try:
        files = {"image": ("image", data)}
        response = httpx.post(f"{server.rstrip('/')}/answer", data=form, files=files, timeout=SERVER_TIMEOUT_S)
        if response.status_code == httpx.codes.OK:
            return AnswerReply.model_validate_json(response.content).model_dump()
        problem = ProblemDocument.model_validate_json(response.content)
    except UnicodeError as error:
        raise click.ClickException("the question holds bytes that are not text") from error
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        reason = error if isinstance(error, httpx.HTTPError | httpx.InvalidURL) else "it is no VQA service's"
        raise click.ClickException(f"no usable reply from {server}: {reason}") from error
    place = f" ({problem.field})" if problem.field else ""
    raise click.ClickException(f"{problem.code}{place}: {problem.detail}")


def _read(image: Path) -> bytes:
    if str(image) == "-":
        if sys.stdin is None:
            raise click.ClickException("there is no standard input; name a file")
        return sys.stdin.buffer.read()
    try:
        return image.read_bytes()
    except OSError as error:
        raise click.ClickException(f"cannot read {image}: {error.strerror}") from error


def _sentence(reply: dict[str, Any]) -> str:
    """A reply in one line for a person."""
    best = f"best guess: {reply['candidates'][0]['answer']}" if reply["candidates"] else "no candidate"
    said = f"(abstained; {best})" if reply["abstained"] else str(reply["answer"])
    sure = "not calibrated" if reply["confidence"] is None else f"confidence {reply['confidence']:.3f}"
    return f"{said}\t{sure}"
