"""`vqa score` as a person and as a script meet it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.support.process import VQA

FOLDER = Path(__file__).resolve().parents[1] / "golden" / "vqa_official_format"
FILES = ["--annotations", FOLDER / "annotations.json", "--results", FOLDER / "results.json"]


def score(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([VQA, "score", *map(str, arguments)], capture_output=True, text=True, timeout=60)


def test_one_json_object_and_nothing_else():
    result = score("--dataset", "vqav2", *FILES, "--json")
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    assert document["accuracy"] == 68.68
    assert {"per_answer_type", "per_question_type"} <= document.keys()
    assert "evalQA" not in document


def test_a_table_for_a_person():
    result = score("--dataset", "vqav2", *FILES)
    assert result.returncode == 0, result.stderr
    assert "68.68 %" in result.stdout
    assert "answer type: yes/no" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--dataset", "vqav3", *FILES], 2, "'vqav3' is not one of"),
        (["--dataset", "vqav2", "--results", FOLDER / "results.json"], 2, "Missing option '--annotations'"),
        (["--dataset", "advqa", *FILES, "--like", "m4c"], 2, "m4c has no evaluator for advqa"),
        (["--dataset", "advqa", *FILES, "--pairs", FOLDER / "questions.json"], 2, "--pairs is not for advqa"),
        (["--dataset", "vqav2", *FILES, "--like", "m4c", "--code", "2016"], 2, "--code makes no difference to m4c"),
        (["--dataset", "vqav2", *FILES[:3], FOLDER / "nothing.json"], 1, "nothing.json: it cannot be read"),
        (["--dataset", "vqav2", *FILES[:3], FOLDER / "questions.json"], 1, "not an array of objects but an object"),
    ],
)
def test_mistakes_are_one_clear_line(arguments, code, message):
    result = score(*arguments)
    assert result.returncode == code
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("name", ["vqa-01", "vqa-02", "vqa-04", "vqa-05"])
def test_the_collected_cases_under_always(tmp_path, name):
    cases = Path(__file__).resolve().parents[1] / "cases" / "metrics" / f"{name}_vectors.jsonl"
    rows = [json.loads(line) for line in cases.read_text("utf-8").split("\n") if line]
    annotations = [
        {
            "question_id": number,
            "question_type": "what",
            "answer_type": "other",
            "answers": [{"answer": answer, "answer_id": i} for i, answer in enumerate(row["answers"], 1)],
        }
        for number, row in enumerate(rows)
    ]
    results = [{"question_id": number, "answer": row["prediction"]} for number, row in enumerate(rows)]
    (tmp_path / "annotations.json").write_text(json.dumps({"annotations": annotations}))
    (tmp_path / "results.json").write_text(json.dumps(results))
    files = ["--annotations", tmp_path / "annotations.json", "--results", tmp_path / "results.json"]
    scored = score("--dataset", "vqav2", *files, "--code", "always", "--per-question", "--json")
    given = json.loads(scored.stdout)["evalQA"]
    assert given == {str(number): round(100 * row["expected_accuracy"], 2) for number, row in enumerate(rows)}


def test_the_questions_of_gqa_are_its_annotations():
    folder = FOLDER.parent / "gqa_format"
    files = ["--results", folder / "a_predictions.json", "--choices", folder / "a_choices.json"]
    scored = [
        score("--dataset", "gqa", name, folder / "a_all_questions.json", *files)
        for name in ("--annotations", "--questions")
    ]
    expected = json.loads((folder / "a_expected.json").read_text())["--consistency"]["stdout"]
    assert [result.stdout for result in scored] == [expected, expected]


@pytest.fixture
def odd(tmp_path):
    """Files whose types are markup and letters that few streams can show."""
    answers = [{"answer": "yes", "answer_id": n} for n in range(10)]
    rows = [
        {"question_id": n, "question_type": kind, "answer_type": "\u00e9\U0001f642", "answers": answers}
        for n, kind in enumerate(["[/x]", "[red]a"])
    ]
    (tmp_path / "annotations.json").write_text(json.dumps(rows))
    (tmp_path / "results.json").write_text(json.dumps([{"question_id": n, "answer": "yes"} for n in range(2)]))
    return ["--annotations", tmp_path / "annotations.json", "--results", tmp_path / "results.json"]


def test_names_are_no_markup(odd):
    shown = score("--dataset", "vqav2", *odd)
    assert shown.returncode == 0, shown.stderr
    assert "question type: [/x]" in shown.stdout
    assert "question type: [red]a" in shown.stdout


def test_json_is_json_where_the_stream_knows_few_letters(odd, monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    document = json.loads(score("--dataset", "vqav2", *odd, "--json").stdout)
    assert document["per_answer_type"] == {"\u00e9\U0001f642": 100.0}


def test_without_a_standard_output(odd):
    command = [VQA, "score", "--dataset", "vqav2", *map(str, odd)]
    closed = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", *command], capture_output=True, text=True, timeout=60)
    assert closed.returncode == 0
    assert closed.stderr == ""
