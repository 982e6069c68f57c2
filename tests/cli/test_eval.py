"""`vqa eval` as a person runs it, here and at a server."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.eval_runs import QUESTIONS_EACH, SHAPES, lines, of_lines, of_shapes, read_terminal, run
from tests.support.pictures import drawn_circle
from tests.support.process import VQA
from tests.support.serving import Running
from tests.support.stub_service import problem, stub_service


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
        for name, view in outcome["views"].items():
            counts = view["counts"]
            # Nothing is answered of a picture that shows nothing; noise is no drawing, and held back.
            withheld = counts["unanswerable"] + counts["abstained"]
            assert (withheld == asked) == (name in ("blank", "noise"))
            assert (counts["abstained"] == asked) == (name == "noise")
            assert counts["asked"] == asked == counts["answered"] + counts["abstained"]
            assert (counts["failed"], counts["failed_by_code"]) == (0, {})
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

    def test_again_asks_nothing_and_says_the_same(self, shapes: Path, done: tuple[Path, dict], tmp_path: Path) -> None:
        out = tmp_path / "run"
        shutil.copytree(done[0], out)
        before = (out / "results.json").read_bytes(), lines(out / "predictions.jsonl")
        again = run(*of_shapes(shapes, out), "--code", "2016")
        assert again.returncode == 0, again.stderr
        assert ((out / "results.json").read_bytes(), lines(out / "predictions.jsonl")) == before
        assert re.search(r"accuracy +\d+\.\d\d %", again.stdout)
        assert "mean confidence" in again.stdout

    def test_a_further_view_is_asked_alone(self, shapes: Path, tmp_path: Path) -> None:
        out = tmp_path / "run"
        assert run(*of_shapes(shapes, out)).returncode == 0
        before = (out / "predictions.jsonl").read_bytes(), (out / "results.json").read_bytes()
        further = run(*of_shapes(shapes, out), "--blind", "blank", "--json")
        assert further.returncode == 0, further.stderr
        views = json.loads(further.stdout)["views"]
        assert [view["speed"]["questions"] for view in views.values()] == [0, SHAPES * QUESTIONS_EACH]
        assert ((out / "predictions.jsonl").read_bytes(), (out / "results.json").read_bytes()) == before
        assert views["blank"]["scores"]["accuracy"] < views["sighted"]["scores"]["accuracy"]
        assert "blank" in (out / "report.html").read_text()
        # Without it the next time, it stays in the outcome; unless it was left half way.
        again = run(*of_shapes(shapes, out), "--json")
        assert list(json.loads(again.stdout)["views"]) == ["sighted", "blank"]
        journal = out / "predictions-blank.jsonl"
        journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:-1]))
        again = run(*of_shapes(shapes, out), "--json")
        assert list(json.loads(again.stdout)["views"]) == ["sighted"]

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

    def test_the_report_agrees_with_the_outcome(self, done: tuple[Path, dict]) -> None:
        out, outcome = done
        figures = json.loads((out / "report.json").read_text())
        official = {view["view"]: view["official_accuracy"] for view in figures["views"]}
        assert official == {name: view["scores"]["accuracy"] for name, view in outcome["views"].items()}
        for view in figures["views"]:
            assert 100 * view["accuracy"]["mean"] == pytest.approx(view["official_accuracy"], abs=0.006)
            counts = outcome["views"][view["view"]]["counts"]
            assert {"asked": view["questions"], **{name: view[name] for name in counts if name != "asked"}} == counts


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
                "unanswerable": 2 if view is blank else 0,
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

    @pytest.mark.parametrize(
        ("arguments", "code", "says"),
        [
            (["--only", "kind"], 2, "must be KEY=VALUE"),
            (["--only", "kind=x"], 1, "'kind'"),
            (["--model", "nope"], 1, "no model named 'nope'"),
            (["--policy", "generator"], 1, "policy"),
            (["--server", "http://127.0.0.1:9"], 1, "no usable reply"),
            (["--server", "nonsense"], 1, "'nonsense' is no address of a server"),
            (["--server", "127.0.0.1:8000"], 1, "'127.0.0.1:8000' is no address of a server"),
            (["--server", "http://127.0.0.1:99999"], 1, "Port out of range"),
            (["--server", ""], 2, "'--server': it is empty"),
            (["--out", ""], 2, "'--out': it is empty"),
            (["--image-name", ""], 2, "'--image-name': it is empty"),
            (["--image-name", "{image.__class__}"], 2, "{image.__class__} is no plain field"),
            (["--patience", "nan"], 2, "it is no number"),
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

    def test_inputs_within_the_folder_of_the_run_are_refused(self, mixed: Path, tmp_path: Path) -> None:
        before = mixed.read_bytes()
        refused = run(*of_lines(mixed, tmp_path), "--fresh")
        assert refused.returncode == 2
        assert "--annotations lies within --out" in refused.stderr
        assert mixed.read_bytes() == before

    def test_a_name_with_a_line_end_is_said_in_one_line(self, tmp_path: Path) -> None:
        path = tmp_path / "questions.jsonl"
        path.write_text(json.dumps({"image": "a\nb\0.png", "question": "what?", "answers": ["x"]}))
        done = run(*of_lines(path, tmp_path / "run"))
        assert (done.returncode, done.stderr.count("\n")) == (1, 1)
        assert "a\\nb\\x00.png" in done.stderr

    def test_types_that_look_like_markup_are_shown_as_they_are(self, tmp_path: Path) -> None:
        (tmp_path / "a.png").write_bytes(drawn_circle())
        row = {"image": "a.png", "question": "what color is the circle?", "answers": ["red"]}
        path = tmp_path / "questions.jsonl"
        path.write_text("".join(json.dumps(row | {"answer_type": kind}) + "\n" for kind in ("[/x]", "[red]a")))
        done = run(*of_lines(path, tmp_path / "run"))
        assert done.returncode == 0, done.stderr
        assert "[/x]" in done.stdout
        assert "[red]a" in done.stdout

    def test_names_and_types_that_utf8_cannot_hold_end_no_run(self, tmp_path: Path) -> None:
        (tmp_path / "a.png").write_bytes(drawn_circle())
        row = {"image": "a.png", "question": "what color is the circle?", "answers": ["red"]}
        path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/questions\xff.jsonl"))
        path.write_text(json.dumps(row | {"question_type": "\ud800 kind"}) + "\n")
        out = tmp_path / "run"
        done = run(*of_lines(path, out), "--json")
        assert done.returncode == 0, done.stderr
        document = json.loads((out / "evaluation.json").read_text("utf-8"))
        assert json.loads(done.stdout)["views"] == document["views"]
        assert list(document["views"]["sighted"]["scores"]["per_question_type"]) == ["\ud800 kind"]
        assert json.loads((out / "run.json").read_text("utf-8"))["facts"]["files"]["annotations"] == str(path)
        assert (out / "report.html").exists()
        again = run(*of_lines(path, out), "--json")
        assert (again.returncode, lines(out / "predictions.jsonl")) == (0, 1)

    def test_nothing_is_said_to_be_kept_where_nothing_was_answered(self, mixed: Path, tmp_path: Path) -> None:
        refusal = (401, {}, problem(401, "unauthorized"))
        with stub_service(lambda *_: refusal) as stub:
            done = run(*of_lines(mixed, tmp_path / "run"), "--server", stub.url)
        assert done.returncode == 1
        assert "unauthorized" in done.stderr
        assert "kept" not in done.stderr

    def test_a_path_that_is_no_service_is_said_in_a_line(self, mixed: Path, tmp_path: Path, served: Running) -> None:
        done = run(*of_lines(mixed, tmp_path / "run"), "--server", f"{served.url}/v9")
        assert (done.returncode, done.stderr.count("\n")) == (1, 1)
        assert "replied to GET /models with status 404" in done.stderr

    @pytest.mark.parametrize(
        ("dataset", "option", "missing"),
        [("vqav2", "--questions", "--annotations"), ("vqav2", None, "--annotations"), ("pope", None, "--annotations")],
    )
    def test_a_file_that_is_not_given_is_wrong_usage(
        self, shapes: Path, tmp_path: Path, dataset: str, option: str | None, missing: str
    ) -> None:
        given = [option, str(shapes / "questions.json")] if option else []
        done = run("--dataset", dataset, *given, "--out", str(tmp_path / "run"))
        assert done.returncode == 2
        assert f"give it with {missing}" in done.stderr or f"give them with {missing}" in done.stderr
        assert not (tmp_path / "run").exists()

    @pytest.mark.parametrize(("module", "library"), [("jinja2", "jinja2"), ("sklearn", "scikit-learn")])
    def test_a_library_that_is_missing_is_named_before_any_work(
        self, shapes: Path, tmp_path: Path, module: str, library: str
    ) -> None:
        absent = tmp_path / "absent"
        absent.mkdir()
        (absent / f"{module}.py").write_text(f"raise ModuleNotFoundError('No module named {module}', name='{module}')")
        path = os.pathsep.join(filter(None, (str(absent), os.environ.get("PYTHONPATH"))))
        done = run(*of_shapes(shapes, tmp_path / "run"), PYTHONPATH=path)
        assert done.returncode == 1
        assert f"{library} is not installed; it comes with the extra [eval]" in done.stderr
        assert not (tmp_path / "run").exists()


class TestShown:
    def test_away_from_a_terminal_lines_are_plain_and_few(self, long: Path, tmp_path: Path) -> None:
        done = run(*of_lines(long, tmp_path))
        assert done.stderr.endswith("writing the report\n")
        assert done.stderr.count("\n") <= 2
        assert not {"\r", "\x1b"} & set(done.stderr + done.stdout)
        assert run(*of_lines(long, tmp_path), "--quiet").stderr == ""

    def test_a_terminal_shows_a_bar_and_the_result_stays_clean(self, shapes: Path, tmp_path: Path) -> None:
        ours, theirs = pty.openpty()
        command = [VQA, "eval", *of_shapes(shapes, tmp_path), "--json"]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=theirs, env=os.environ | {"TERM": "xterm", "COLUMNS": "100"}
        )
        os.close(theirs)
        shown = read_terminal(ours)
        out, _ = process.communicate(timeout=60)
        assert process.returncode == 0
        assert json.loads(out)["dataset"] == "vqav2"
        assert b"sighted" in shown
        assert b"36/36" in shown
