"""The command line as a person types it, in a process of its own where exit codes matter."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from service.cli.main import cli
from service.settings import Settings
from tests.support.pictures import drawn_circle
from tests.support.process import VQA
from tests.support.serving import Running


def run(*arguments: str, text: str | None = None) -> Result:
    return CliRunner().invoke(cli, arguments, input=text)


def process(*arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([VQA, *arguments], input=stdin, capture_output=True, timeout=60)


@pytest.fixture(scope="module")
def picture(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("pictures") / "circle.png"
    path.write_bytes(drawn_circle("blue"))
    return str(path)


class TestNormalise:
    def test_json_lines(self) -> None:
        lines = ["Two  dogs.", "it's a\nline", "\u00e9\ud83d", ""]
        result = run("normalise", "--json", text="".join(json.dumps(line) + "\n" for line in lines))
        assert result.exit_code == 0, result.output
        got = [json.loads(line) for line in result.output.splitlines()]
        assert len(got) == len(lines)
        assert got[:2] == ["2 dogs", "it's line"]

    def test_plain_and_arguments(self) -> None:
        assert run("normalise", text="The cat.\nNone\n").output == "cat\n0\n"
        assert run("normalise", "--json", text='\ufeff"two"\n').output == '"2"\n'
        assert run("normalise", "A dog!", "yes").output == "dog\nyes\n"
        assert run("normalise", "--code", "2016", "A dog!").output == "dog\n"

    def test_what_is_no_text_is_refused_with_its_line(self) -> None:
        done = process("normalise", stdin=b"fine\n\xff\n")
        assert done.returncode == 1
        assert b"line 2: not UTF-8" in done.stderr
        assert b"Traceback" not in done.stderr

    @pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
    def test_it_can_be_written_to_any_terminal(self, encoding: str) -> None:
        environment = os.environ | {"PYTHONIOENCODING": encoding}
        done = subprocess.run([VQA, "normalise", "\u2603"], capture_output=True, env=environment)
        assert (done.returncode, done.stderr) == (0, b"")
        assert done.stdout.strip() in ("\u2603".encode(), b"\\u2603")

    def test_a_full_disk_is_one_line(self) -> None:
        with Path("/dev/full").open("w") as full:
            done = subprocess.run([VQA, "normalise", "cat"], stdout=full, stderr=subprocess.PIPE)
        assert done.returncode == 1
        assert b"No space left" in done.stderr
        assert b"Traceback" not in done.stderr

    @pytest.mark.parametrize("line", ["not json", "5", "{}", "[" * 100_000])
    def test_what_is_no_json_string_is_refused_with_its_line(self, line: str) -> None:
        result = run("normalise", "--json", text=f'"ok"\n{line}\n')
        assert result.exit_code == 1
        assert "line 2" in result.output


class TestAsk:
    def test_here(self, picture: str) -> None:
        result = run("ask", picture, "what color is the circle?")
        assert result.exit_code == 0, result.output
        assert result.stdout.startswith("blue\tconfidence ")
        assert "demonstration model" in result.stderr

    def test_as_json_with_choices(self, picture: str) -> None:
        reply = json.loads(run("ask", picture, "what color is the shape?", "--choices", "Red, Blue", "--json").stdout)
        assert reply["answer"] == "Blue"
        assert reply["route"]["policy"] == "auto"

    def test_at_a_server(self, picture: str, served: Running) -> None:
        result = run("ask", picture, "what color is the circle?", "--server", served.url)
        assert result.stdout.startswith("blue\t")

    def test_from_standard_input(self) -> None:
        done = process("ask", "-", "what color is the circle?", stdin=drawn_circle("red"))
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(b"red\t")

    def test_an_abstention_says_so(self, picture: str) -> None:
        result = run("ask", picture, "what color is the circle?", "--max-risk", "0")
        assert result.stdout.startswith(("(abstained; best guess: blue)", "blue\tconfidence 1.000"))

    @pytest.mark.parametrize(
        ("arguments", "says"),
        [
            (("nowhere.png", "q"), "cannot read nowhere.png"),
            (("PICTURE", ""), "question_empty (question)"),
            (("PICTURE", "q", "--answer-set", "open"), "generator_unavailable (answer_set)"),
            (("PICTURE", "q", "--classifier", "nope"), "no model named 'nope'"),
            (("PICTURE", "q", "--server", "http://127.0.0.1:9"), "no usable reply"),
            (("PICTURE", "q", "--server", "SERVED", "--answer-set", "nope"), "unknown_answer_set (answer_set)"),
        ],
    )
    def test_failures_are_one_line(self, picture: str, served: Running, arguments: tuple[str, ...], says: str) -> None:
        words = [{"PICTURE": picture, "SERVED": served.url}.get(word, word) for word in arguments]
        done = process("ask", *words)
        error = done.stderr.decode()
        assert done.returncode == 1
        assert says in error
        assert "Traceback" not in error
        assert error.count("\n") == 1


@pytest.mark.parametrize("reply", [b"{}", b"[]", b"null", b'"x"', b"<html>", b""])
@pytest.mark.parametrize("status", [200, 301, 404, 500])
def test_a_server_that_is_none_of_ours_is_one_line(picture: str, status: int, reply: bytes) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status)
            self.send_header("Content-Length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

        def log_message(self, *arguments: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        result = run("ask", picture, "is it red?", "--server", f"http://127.0.0.1:{server.server_port}")
        thread.join()
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit)
    assert "no usable reply" in result.output


class TestModels:
    def test_list(self) -> None:
        rows = json.loads(run("models", "list", "--json").output)
        assert "vilt-shapes" in {row["name"] for row in rows}
        assert "vilt-shapes" in run("models", "list").output

    def test_show(self) -> None:
        details = json.loads(run("models", "show", "vilt-shapes", "--json").output)
        assert "unanswerable" in details["labels"]
        assert "model.onnx" in details["files"]
        assert "revision" in run("models", "show", "vilt-shapes").output

    def test_verify(self) -> None:
        assert run("models", "verify", "vilt-shapes").output == "vilt-shapes: ok\n"
        assert json.loads(run("models", "verify", "vilt-shapes", "--json").output)["ok"] is True

    def test_verify_finds_a_changed_file(self, root: Path, tmp_path: Path) -> None:
        shutil.copytree(root / "models" / "vilt-shapes", tmp_path / "vilt-shapes")
        labels = tmp_path / "vilt-shapes" / "labels.json"
        labels.write_text(labels.read_text().replace("red", "rad"))
        result = run("models", "verify", "vilt-shapes", "--models-dir", str(tmp_path))
        assert result.exit_code == 1
        assert "labels.json: SHA-256" in result.output

    def test_verify_finds_a_graph_that_does_not_load(self, root: Path, tmp_path: Path) -> None:
        import hashlib

        folder = tmp_path / "vilt-shapes"
        shutil.copytree(root / "models" / "vilt-shapes", folder)
        old = hashlib.sha256((folder / "model.onnx").read_bytes()).hexdigest()
        (folder / "model.onnx").write_bytes(b"not a graph")
        new = hashlib.sha256(b"not a graph").hexdigest()
        manifest = folder / "model.toml"
        manifest.write_text(manifest.read_text().replace(old, new))
        result = run("models", "verify", "vilt-shapes", "--models-dir", str(tmp_path), "--json")
        assert result.exit_code == 1
        assert json.loads(result.output)["faults"]

    def test_an_unknown_model_names_those_there_are(self) -> None:
        done = process("models", "verify", "nope")
        assert done.returncode == 1
        assert b"vilt-shapes" in done.stderr


def test_every_command_has_help_with_an_example() -> None:
    for words in (
        ("serve",),
        ("ask",),
        ("normalise",),
        ("models",),
        ("models", "list"),
        ("models", "show"),
        ("models", "verify"),
    ):
        result = run(*words, "--help")
        assert result.exit_code == 0
        assert "Example: " in result.output, words


def test_every_setting_is_a_flag_of_serve() -> None:
    text = run("serve", "--help").output
    for name in Settings.model_fields:
        assert f"--{name.replace('_', '-')}" in text
        assert f"VQA_{name.upper()}" in text


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--port", "99999"), "port (VQA_PORT)"),
        (("--classifier", "nope"), "no model named 'nope'"),
        (("--models-dir", "/nonexistent"), "/nonexistent"),
        (("--max-batch-size", "0"), "max_batch_size (VQA_MAX_BATCH_SIZE)"),
        (("--host", "256.1.1.1", "--port", "0"), "cannot listen on 256.1.1.1"),
    ],
)
def test_serve_refuses_to_start_and_names_what_is_wrong(arguments: tuple[str, ...], says: str) -> None:
    done = process("serve", *arguments)
    assert done.returncode == 1
    assert says in done.stderr.decode()
    assert "Traceback" not in done.stderr.decode()
