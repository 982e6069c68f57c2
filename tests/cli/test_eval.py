"""`vqa eval` as a person runs it: whole, stopped, killed, resumed, here and at a server."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from easy_vqa import get_test_image_paths, get_test_questions

from models.shapes.examples import Split, draw_split
from models.shapes.vqav2 import write
from tests.support.pictures import drawn_circle
from tests.support.serving import Running
from tests.support.stub_service import Reply, answered, problem, stub_service

VQA = str(Path(sys.executable).with_name("vqa"))
SHAPES, QUESTIONS_EACH = 12, 3
LONG = 900


@pytest.fixture(scope="module")
def shapes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Drawn shapes in the format of VQA v2."""
    folder = tmp_path_factory.mktemp("shapes")
    write(folder, Split.VAL, draw_split(Split.VAL, 0, SHAPES, QUESTIONS_EACH))
    return folder


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Enough questions of easy-VQA's test split that a run can be stopped on its way, as one's own."""
    path = tmp_path_factory.mktemp("long") / "questions.jsonl"
    pictures = get_test_image_paths()
    rows = list(zip(*get_test_questions(), strict=True))[:LONG]
    path.write_text(
        "".join(json.dumps({"image": pictures[n], "question": q, "answers": [a]}) + "\n" for q, a, n in rows)
    )
    return path


def of_shapes(folder: Path, out: Path) -> list[str]:
    files = ["--questions", str(folder / "questions.json"), "--annotations", str(folder / "annotations.json")]
    return ["--dataset", "vqav2", *files, "--out", str(out)]


def of_lines(path: Path, out: Path) -> list[str]:
    return ["--dataset", "jsonl", "--annotations", str(path), "--out", str(out)]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([VQA, "eval", *arguments], capture_output=True, text=True, timeout=120)


def lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


@pytest.fixture(scope="module")
def done(shapes: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict]:
    out = tmp_path_factory.mktemp("runs") / "new" / "run"
    views = ["--blind", "noise", "--blind", "blank", "--blind", "shuffled"]
    finished = run(*of_shapes(shapes, out), *views, "--json")
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.count("\n") == 1
    return out, json.loads(finished.stdout)


class TestWhole:
    def test_the_outcome_has_all_views_counted_and_scored(self, done: tuple[Path, dict]) -> None:
        out, outcome = done
        assert list(outcome["views"]) == ["sighted", "blank", "shuffled", "noise"]
        asked = SHAPES * QUESTIONS_EACH
        for view in outcome["views"].values():
            assert view["counts"] == {
                "asked": asked,
                "answered": asked,
                "abstained": 0,
                "failed": 0,
                "failed_by_code": {},
            }
            assert view["scores"]["questions"] == asked
        accuracy = {name: view["scores"]["accuracy"] for name, view in outcome["views"].items()}
        assert accuracy["sighted"] > 90
        assert accuracy["blank"] < accuracy["shuffled"] < accuracy["sighted"]
        assert json.loads((out / "evaluation.json").read_text()) == outcome
        assert outcome["run"]["fingerprint"]["models"][0]["id"] == "vilt-shapes"

    def test_the_results_are_in_the_official_format_and_score_the_same(
        self, shapes: Path, done: tuple[Path, dict]
    ) -> None:
        out, outcome = done
        annotations = shapes / "annotations.json"
        ids = [row["question_id"] for row in json.loads(annotations.read_text())["annotations"]]
        for name, view in outcome["views"].items():
            results = out / ("results.json" if name == "sighted" else f"results-{name}.json")
            assert [row["question_id"] for row in json.loads(results.read_text())] == ids
            command = [VQA, "score", "--dataset", "vqav2", "--json", "--annotations", str(annotations)]
            scored = subprocess.run([*command, "--results", str(results)], capture_output=True, text=True)
            assert json.loads(scored.stdout) == view["scores"]

    def test_the_table_has_a_row_for_each_question_and_view(self, shapes: Path, done: tuple[Path, dict]) -> None:
        from pyarrow import parquet

        out, outcome = done
        rows = parquet.read_table(out / "predictions.parquet").to_pylist()
        assert len(rows) == 4 * SHAPES * QUESTIONS_EACH
        for name, view in outcome["views"].items():
            of_view = [row for row in rows if row["view"] == name]
            mean = sum(row["accuracy"] for row in of_view) / len(of_view)
            assert round(100 * mean, 2) == pytest.approx(view["scores"]["accuracy"], abs=0.011)
        first = rows[0]
        assert (first["question_id"], first["view"]) == (1000, "sighted")
        assert Path(first["image"]).exists()
        assert len(first["answers"]) == 10
        probabilities = [candidate["probability"] for candidate in first["candidates"]]
        assert first["top_probability"] == probabilities[0]
        assert first["margin"] == probabilities[0] - probabilities[1]
        assert 0 <= first["entropy"] < 2.31  # ln 10
        assert first["warnings"] == ["demo_model"]
        sizes = {(row["question_id"], row["view"]): (row["width"], row["height"]) for row in rows}
        for (question_id, view), size in sizes.items():
            if view in ("blank", "noise"):
                assert size == sizes[question_id, "sighted"]
        pictures = {(row["question_id"], row["view"]): row["image_sha256"] for row in rows}
        for row in rows:
            if row["view"] != "sighted":
                assert row["image_sha256"] != pictures[row["question_id"], "sighted"]

    def test_again_asks_nothing_and_says_the_same(self, shapes: Path, done: tuple[Path, dict]) -> None:
        out, _ = done
        before = (out / "results.json").read_bytes(), lines(out / "predictions.jsonl")
        again = run(*of_shapes(shapes, out), "--code", "2016")
        assert again.returncode == 0, again.stderr
        assert ((out / "results.json").read_bytes(), lines(out / "predictions.jsonl")) == before
        assert re.search(r"accuracy +\d+\.\d\d %", again.stdout)
        assert "mean confidence" in again.stdout

    def test_another_run_is_refused_and_what_differs_is_named(
        self, shapes: Path, done: tuple[Path, dict], tmp_path: Path
    ) -> None:
        out = tmp_path / "run"
        shutil.copytree(done[0], out)
        annotations = json.loads((shapes / "annotations.json").read_text())
        annotations["annotations"][0]["answers"][0]["answer"] = "other"
        (tmp_path / "images").symlink_to(shapes / "images")
        shutil.copy(shapes / "questions.json", tmp_path)
        (tmp_path / "annotations.json").write_text(json.dumps(annotations))
        refused = run(*of_shapes(tmp_path, out))
        assert refused.returncode == 1
        assert "files.annotations was " in refused.stderr
        assert "files.questions" not in refused.stderr
        refused = run(*of_shapes(shapes, out), "--seed", "1", "--limit", "2")
        assert "limit was null and is 2; " in refused.stderr
        assert "seed was 0 and is 1" in refused.stderr
        assert lines(out / "predictions.jsonl") == SHAPES * QUESTIONS_EACH
        assert run(*of_shapes(shapes, out), "--limit", "2", "--fresh").returncode == 0
        assert lines(out / "predictions.jsonl") == 2
        assert not (out / "results-noise.json").exists()


@pytest.fixture(scope="module")
def whole(long: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The results of a run that nothing stopped."""
    out = tmp_path_factory.mktemp("whole")
    assert run(*of_lines(long, out), "--quiet").returncode == 0
    return (out / "results.json").read_bytes()


class TestStopped:
    @staticmethod
    def begun(long: Path, out: Path, at_least: int) -> subprocess.Popen[str]:
        command = [VQA, "eval", *of_lines(long, out), "--concurrency", "1"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while lines(out / "predictions.jsonl") < at_least:
            assert process.poll() is None, process.communicate()
            time.sleep(0.002)
        return process

    def test_killed_again_and_again_it_gives_the_same_results(self, long: Path, whole: bytes, tmp_path: Path) -> None:
        for at_least in (1, 200, 500):
            process = self.begun(long, tmp_path, at_least)
            process.kill()
            process.communicate()
            assert at_least <= lines(tmp_path / "predictions.jsonl") < LONG
        assert not (tmp_path / "results.json").exists()
        assert run(*of_lines(long, tmp_path)).returncode == 0
        assert (tmp_path / "results.json").read_bytes() == whole
        assert lines(tmp_path / "predictions.jsonl") == LONG, "nothing was asked twice"

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_a_signal_ends_it_in_order(self, long: Path, whole: bytes, tmp_path: Path, number: signal.Signals) -> None:
        process = self.begun(long, tmp_path, 50)
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
        assert (process.returncode, out) == (128 + number, "")
        stopped = re.fullmatch(r"stopped with (\d+) of 900 questions answered\. .* the same command again .*\n", err)
        assert stopped, err
        assert int(stopped[1]) == lines(tmp_path / "predictions.jsonl")
        resumed = run(*of_lines(long, tmp_path), "--json")
        assert resumed.returncode == 0
        assert (tmp_path / "results.json").read_bytes() == whole
        assert json.loads(resumed.stdout)["views"]["sighted"]["speed"]["questions"] == LONG - int(stopped[1])

    def test_a_second_signal_ends_it_at_once(self, long: Path, tmp_path: Path) -> None:
        came, release = threading.Event(), threading.Event()

        def reply(_: int, questions: list[str]) -> Reply:
            came.set()
            release.wait(60)
            return 200, {}, {"results": [answered("x")] * len(questions)}

        with stub_service(reply) as stub:
            command = [VQA, "eval", *of_lines(long, tmp_path), "--server", stub.url]
            process = subprocess.Popen(command, stderr=subprocess.PIPE)
            assert came.wait(30)
            process.send_signal(signal.SIGTERM)
            time.sleep(0.5)
            assert process.poll() is None, "what is under way may finish"
            process.send_signal(signal.SIGINT)
            assert process.wait(5) == 130
            release.set()
        process.communicate()

    def test_two_runs_in_one_folder_are_refused(self, long: Path, tmp_path: Path) -> None:
        process = self.begun(long, tmp_path, 1)
        second = run(*of_lines(long, tmp_path))
        process.kill()
        process.communicate()
        assert second.returncode == 1
        assert "another run is at work" in second.stderr


class TestFailures:
    @pytest.fixture
    def mixed(self, tmp_path: Path) -> Path:
        """Good questions, a picture that is cut short, one that is none, and an empty question."""
        rows = []
        for name, data, question in (
            ("a.png", drawn_circle("red"), "what color is the circle?"),
            ("b.png", drawn_circle("red")[:200], "what color is the circle?"),
            ("c.png", b"no picture", "what color is the circle?"),
            ("a.png", drawn_circle("red"), " "),
            ("d.png", drawn_circle("blue"), "what color is the circle?"),
        ):
            (tmp_path / name).write_bytes(data)
            rows.append({"image": name, "question": question or "?", "answers": ["red"]})
        path = tmp_path / "questions.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path

    @pytest.mark.parametrize("at_a_server", [False, True])
    def test_what_cannot_be_answered_fails_alone(
        self, mixed: Path, tmp_path: Path, served: Running, at_a_server: bool
    ) -> None:
        server = ["--server", served.url] if at_a_server else []
        done = run(*of_lines(mixed, tmp_path / "run"), "--json", "--blind", "blank", *server)
        assert done.returncode == 0, done.stderr
        sighted, blank = json.loads(done.stdout)["views"].values()
        codes = {"image_truncated": 1, "unsupported_media_type": 1, "question_empty": 1}
        for view in (sighted, blank):
            assert view["counts"] == {
                "asked": 5,
                "answered": 2,
                "abstained": 0,
                "failed": 3,
                "failed_by_code": codes,
            }
        results = json.loads((tmp_path / "run" / "results.json").read_text())
        assert [row["answer"] for row in results] == ["red", "", "", "", "blue"]
        assert sighted["scores"]["accuracy"] == 20.0

    def test_failed_ones_are_asked_again(self, mixed: Path, tmp_path: Path) -> None:
        run(*of_lines(mixed, tmp_path / "run"))
        size = (tmp_path / "b.png").stat().st_size
        (tmp_path / "b.png").write_bytes(drawn_circle("red")[:size])
        done = run(*of_lines(mixed, tmp_path / "run"), "--json")
        view = json.loads(done.stdout)["views"]["sighted"]
        assert view["speed"]["questions"] == view["counts"]["failed"] == 3

    def test_nothing_answered_is_exit_code_1_with_the_reasons(self, mixed: Path, tmp_path: Path) -> None:
        rows = mixed.read_text().splitlines(keepends=True)
        mixed.write_text("".join(rows[1:3]))
        done = run(*of_lines(mixed, tmp_path / "run"))
        assert done.returncode == 1
        assert re.search(r"image_truncated +1", done.stdout)
        assert "Traceback" not in done.stderr

    def test_a_server_that_stays_away_is_one_line_that_says_how_to_go_on(self, long: Path, tmp_path: Path) -> None:
        def reply(number: int, questions: list[str]) -> Reply:
            if number < 5:
                return 200, {}, {"results": [answered("x")] * len(questions)}
            return 503, {"Retry-After": "0"}, problem(503, "draining")

        with stub_service(reply) as stub:
            done = run(*of_lines(long, tmp_path), "--server", stub.url, "--patience", "0.5")
        assert done.returncode == 1
        assert "draining" in done.stderr
        assert "the same command again goes on" in done.stderr
        assert done.stderr.count("\n") == 1
        answers = sum(map(len, stub.requests[:5]))
        assert lines(tmp_path / "predictions.jsonl") == answers
        with stub_service(lambda _, questions: (200, {}, {"results": [answered("x")] * len(questions)})) as stub:
            assert run(*of_lines(long, tmp_path), "--server", stub.url, "--quiet").returncode == 0
        assert sum(map(len, stub.requests)) == LONG - answers

    def test_a_server_that_changes_its_model_half_way_stops_the_run(self, long: Path, tmp_path: Path) -> None:
        def reply(number: int, questions: list[str]) -> Reply:
            items = [answered("x") for _ in questions]
            if number == 3:
                items[-1]["result"]["model"]["revision"] = "2"
            return 200, {}, {"results": items}

        with stub_service(reply) as stub:
            done = run(*of_lines(long, tmp_path), "--server", stub.url, "--concurrency", "1")
        assert done.returncode == 1
        assert "another model than when the run began: stub, revision 2" in done.stderr
        assert lines(tmp_path / "predictions.jsonl") == sum(map(len, stub.requests[:3]))

    @pytest.mark.parametrize(
        ("arguments", "code", "says"),
        [
            (["--only", "kind"], 2, "must be KEY=VALUE"),
            (["--only", "kind=x"], 1, "'kind'"),
            (["--model", "nope"], 1, "no model named 'nope'"),
            (["--policy", "generator"], 1, "policy"),
            (["--server", "http://127.0.0.1:9"], 1, "no usable reply"),
            (["--server", "nonsense"], 1, "no usable reply"),
            (["--server", "http://127.0.0.1:9", "--threads", "1"], 2, "--threads"),
            (["--api-key-file", "KEYS"], 2, "--server"),
            (["--image-name", "{image}.gone"], 1, "3 of 3 pictures are missing"),
        ],
    )
    def test_what_is_wrong_is_said_before_any_work(
        self, tmp_path: Path, arguments: list[str], code: int, says: str
    ) -> None:
        for name in "abc":
            (tmp_path / f"{name}.png").write_bytes(drawn_circle())
        path = tmp_path / "questions.jsonl"
        rows = [{"image": f"{name}.png", "question": "what?", "answers": ["x"]} for name in "abc"]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        done = run(*of_lines(path, tmp_path / "run"), *(str(path) if word == "KEYS" else word for word in arguments))
        assert done.returncode == code, done.stderr
        assert says in done.stderr
        assert "Traceback" not in done.stderr
        assert not (tmp_path / "run" / "predictions.jsonl").exists()


class TestShown:
    def test_away_from_a_terminal_lines_are_plain_and_few(self, long: Path, tmp_path: Path) -> None:
        done = run(*of_lines(long, tmp_path))
        assert done.stderr.count("\n") <= 1
        assert not {"\r", "\x1b"} & set(done.stderr + done.stdout)
        assert run(*of_lines(long, tmp_path), "--quiet").stderr == ""

    def test_a_terminal_shows_a_bar_and_the_result_stays_clean(self, shapes: Path, tmp_path: Path) -> None:
        ours, theirs = pty.openpty()
        command = [VQA, "eval", *of_shapes(shapes, tmp_path), "--json"]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=theirs, env=os.environ | {"TERM": "xterm", "COLUMNS": "100"}
        )
        os.close(theirs)
        shown = b""
        try:
            while data := os.read(ours, 65536):
                shown += data
        except OSError:
            pass  # the other end was closed
        os.close(ours)
        out, _ = process.communicate(timeout=60)
        assert process.returncode == 0
        assert json.loads(out)["dataset"] == "vqav2"
        assert b"sighted" in shown
        assert b"36/36" in shown
