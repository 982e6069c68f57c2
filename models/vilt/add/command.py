"""The command line of `vqa models add`: a ViLT checkpoint of the hub's format to a model that can be served."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shlex
import sys
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from models.vilt.add.needed import advice
from models.vilt.add.request import AddError, Request
from models.vilt.add.result import summary
from models.vilt.add.source import hub_commit, hub_source, local_source
from service.backends.manifest import ManifestError, read_manifest
from service.errors import DataError, SettingsError, one_line
from service.evaluation.running.asker import RunError
from service.evaluation.running.stopping import SignalError, ended_by_signals
from service.settings import ENV_PREFIX, load_settings

NEEDED = ("torch", "optimum", "transformers", "onnx")
COMMIT = r"[0-9a-f]{7,40}"
DESCRIPTION = """\
Make a model of a ViLT checkpoint for visual question answering: export it to
ONNX, compare it with PyTorch, quantise it where asked to, and put it among the
models. Needs the export environment: make install-export
"""
EXAMPLES = """\
examples:
  vqa models add dandelin/vilt-b32-finetuned-vqa
  vqa models add dandelin/vilt-b32-finetuned-vqa --int8
  vqa models add checkpoints/my-vilt --name mine --license apache-2.0

A hub's repository goes through the hub's own cache; HF_TOKEN, HF_HOME, HF_ENDPOINT,
HF_HUB_OFFLINE and the proxies' variables are honoured.
"""


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line, checked."""
    parser = argparse.ArgumentParser(
        prog="vqa models add",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("source", metavar="SOURCE", help="a hub id (owner/name), or a checkpoint folder in its format")
    parser.add_argument("--revision", help="branch, tag or commit at the hub; default its main branch")
    parser.add_argument("--name", help="the model's; default the source's, with -int8 behind it for --int8")
    parser.add_argument("--int8", action="store_true", help="8-bit weights and activations: smaller and faster")
    parser.add_argument(
        "--questions", type=Path, metavar="FILE", help="JSON Lines, as for `vqa eval --dataset jsonl`, that show what "
        "int8 changes; default pictures and questions made here, which are no photographs",
    )  # fmt: skip
    parser.add_argument(
        "--agreement-questions", type=int, default=200, metavar="N", help="how many of them; default 200"
    )
    parser.add_argument(
        "--scores", choices=("sigmoid", "softmax"), default="sigmoid",
        help="how the head was trained: a yes or no for each answer, as the hub's (sigmoid, default), or one choice",
    )  # fmt: skip
    parser.add_argument("--license", help="of the weights; default what the checkpoint's README says")
    there = parser.add_mutually_exclusive_group()
    there.add_argument("--force", action="store_true", help="replace a model of this name")
    there.add_argument("--keep", action="store_true", help="leave a model of this name that has the same source")
    parser.add_argument(
        "--models-dir",
        help=f"folder that holds one folder a model [{ENV_PREFIX}MODELS_DIR, default the clone's models]",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object on standard output")
    found = parser.parse_args(given)
    if found.agreement_questions < 1:
        parser.error("--agreement-questions: must be 1 or more")
    if found.questions and not found.int8:
        parser.error("--questions is for --int8")
    return found


def command() -> int:
    """Run the command line; the exit code."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")
    given = arguments()
    begun = time.monotonic()
    try:
        # What libraries print is no result.
        with contextlib.redirect_stdout(sys.stderr):
            out = _added(given)
        result = summary(out) | {"seconds": round(time.monotonic() - begun, 1)}
    except (AddError, DataError, ManifestError, RunError, SettingsError) as error:
        return _fail(str(error))
    except OSError as error:
        reason = error.strerror or str(error)
        return _fail(f"{error.filename}: {reason}" if error.filename else reason)
    except SignalError as error:
        _say("stopped; nothing half made is left")
        return 128 + error.signal
    if given.json:
        print(json.dumps(result))
    else:
        where = [] if given.models_dir is None else ["--models-dir", given.models_dir]
        print(f"{out} is ready: {shlex.join(['vqa', 'serve', '--classifier', result['name'], *where])}")
    return 0


def _added(given: argparse.Namespace) -> Path:
    """Make the model, or leave it; its folder."""
    request = Request(
        source=given.source,
        models_dir=load_settings(models_dir=given.models_dir).models_dir,
        given_name=given.name,
        revision=given.revision,
        precision="int8" if given.int8 else "fp32",
        scores=given.scores,
        licence=given.license,
        questions=given.questions,
        agreement_questions=given.agreement_questions,
        force=given.force,
        keep=given.keep,
    )
    local = request.folder
    if local is not None:
        if request.revision is not None:
            raise AddError("--revision is of a hub's repository, and the source is a folder")
        # Whatever a library may look for, it looks here.
        os.environ["HF_HUB_OFFLINE"] = "1"
    request.check()
    source = None if local is None else local_source(local)
    if request.keep and request.out.exists():
        request.check_same(read_manifest(request.out), source.revision if source else _commit(request))
        _say(f"{request.out} is there already, of the same source")
        return request.out
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        raise AddError(advice(missing))
    source = source or hub_source(request.source, request.revision, _say)
    # Imported once all else is known to be right: it takes seconds.
    from models.vilt.add.making import add

    with ended_by_signals():
        add(request, source, _say)
    return request.out


def _commit(request: Request) -> str | None:
    """The commit that is asked for, or a part of it; None where any will do."""
    if request.revision is None or re.fullmatch(COMMIT, request.revision):
        return request.revision
    return hub_commit(request.source, request.revision, _say)


def _say(text: str) -> None:
    print(one_line(text), file=sys.stderr, flush=True)


def _fail(message: str) -> int:
    _say(f"vqa: {message}")
    return 1
