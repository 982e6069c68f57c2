"""The report on a run: its figures, and a page that is whole, safe and readable."""

from __future__ import annotations

import json
import re
import resource
from collections import Counter
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from service.errors import DataError
from service.evaluation.reporting.predictions import read_run
from service.evaluation.reporting.report import comparison_figures, write_comparison, write_report
from tests.support.runs import drawn_run, row, write_run

VOID = {"meta", "img", "br", "link", "input", "hr"}


class Page(HTMLParser):
    """A page as a browser would read it: elements with their attributes, and the text in each; nesting is checked."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: list[tuple[str, str]] = []
        self._open: list[str] = []
        self.feed(html)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.texts.append((self._open[-1], data))

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def text(self) -> str:
        return " ".join(" ".join(text for tag, text in self.texts if tag != "style").split())


def report(folder: Path) -> tuple[Page, dict[str, Any]]:
    write_report(folder)
    return Page((folder / "report.html").read_text("utf-8")), json.loads((folder / "report.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return drawn_run(tmp_path_factory.mktemp("runs") / "drawn", pictures=80)


@pytest.fixture(scope="module")
def careful(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return drawn_run(tmp_path_factory.mktemp("runs") / "careful", pictures=60, least=0.98)


class TestFiguresOfARealRun:
    def test_accuracy_by_view_and_type_is_that_of_the_rows(self, drawn: Path) -> None:
        _, figures = report(drawn)
        run = read_run(drawn)
        assert [view["view"] for view in figures["views"]] == ["sighted", "blank"]
        for document, view in zip(figures["views"], run.views.values(), strict=True):
            assert document["accuracy"]["mean"] == pytest.approx(view.accuracy.mean())
            assert 100 * document["accuracy"]["mean"] == pytest.approx(document["official_accuracy"], abs=0.005)
            assert document["accuracy"]["low"] < document["accuracy"]["mean"] < document["accuracy"]["high"]
        gap = figures["views"][1]["difference"]
        assert gap["difference"]["mean"] == pytest.approx(run.main.accuracy.mean() - run.views["blank"].accuracy.mean())
        assert gap["first_better"] == 1
        for column in ("answer_type", "question_type"):
            kinds = run.main.texts(column)
            rows = figures[f"by_{column}"]
            assert {r["type"]: r["views"]["sighted"]["questions"] for r in rows} == Counter(kinds)
            for r in rows:
                mine = np.array([kind == r["type"] for kind in kinds])
                assert r["views"]["sighted"]["mean"] == pytest.approx(run.main.accuracy[mine].mean())

    def test_the_other_sections(self, drawn: Path) -> None:
        _, figures = report(drawn)
        view = read_run(drawn).main
        # A few pictures are taken for no drawings; what is held back has no confidence and no answerability.
        told = view.answered
        assert 0.9 * len(view) < told.sum() == len(view) - view.abstained.sum()
        confidence = view.numbers("confidence")[told]
        first, own = figures["calibration"]
        assert (first["score"], own["score"]) == ("confidence", "top_probability")
        assert first["brier_score"] == pytest.approx(np.mean((confidence - view.accuracy[told]) ** 2))
        assert sum(bin_["count"] for bin_ in first["bins"]) == told.sum()
        assert figures["risk_coverage"]["curve"][-1]["risk"] == pytest.approx(1 - view.accuracy[told].mean())
        assert sum(map(sum, figures["confusion"]["counts"])) == len(view)
        found = figures["answerability"]
        counts = [value for name, value in found.items() if name.startswith(("unanswerable_", "answerable_"))]
        assert len(counts) == 4
        assert sum(counts) == found["questions"] == told.sum()
        truth = np.array([max(answers, key=answers.count) == "unanswerable" for answers in view.answers])
        average = average_precision_score(truth[told], 1 - view.numbers("answerability")[told])
        assert found["average_precision"] == pytest.approx(average)
        total = view.numbers("total_ms")[~view.flags("cached")]
        assert figures["timings"]["stages"]["total"]["median_ms"] == pytest.approx(np.median(total))
        assert figures["models"][0]["model"] == "vilt-shapes"

    def test_a_comparison_pairs_the_questions_that_both_have(self, drawn: Path, careful: Path, tmp_path: Path) -> None:
        runs = [read_run(drawn), read_run(careful)]
        page = tmp_path / "both.html"
        write_comparison(runs, page)
        figures = json.loads((tmp_path / "both.json").read_text("utf-8"))
        assert figures == {"format": figures["format"], **json.loads(json.dumps(comparison_figures(runs)))}
        pair = figures["pairs"][0]
        assert (pair["label"], pair["view"]) == ("careful", "sighted")
        # Both drew the same pictures, one of them fewer; it withholds answers, and is right no more often.
        assert pair["pair"]["difference"]["questions"] == len(runs[1].main)
        assert pair["pair"]["second"] == pytest.approx(runs[1].main.accuracy.mean())
        assert pair["pair"]["difference"]["mean"] > 0
        assert pair["pair"]["losses"] == 0
        assert "2 runs compared" in Page(page.read_text("utf-8")).text

    def test_runs_with_nothing_in_common(self, drawn: Path, tmp_path: Path) -> None:
        other = write_run(
            tmp_path / "other", [row("elsewhere"), row("1000", question="the same id, another question?")]
        )
        write_comparison([read_run(drawn), read_run(other)], tmp_path / "page.html")
        assert "no question in common" in Page((tmp_path / "page.html").read_text("utf-8")).text


class TestThePage:
    def test_it_asks_for_nothing_and_runs_nothing(self, drawn: Path) -> None:
        page, _ = report(drawn)
        assert not {"script", "link", "iframe", "object"} & {tag for tag, _ in page.elements}
        html = (drawn / "report.html").read_text("utf-8")
        assert not re.search(r"https?:|url\(|@import", html)
        assert all(image["src"].startswith("data:image/jpeg;base64,") for image in page.all("img"))
        assert len(page.all("img")) >= 12
        assert all(link["href"].startswith("#") for link in page.all("a"))

    def test_it_can_be_heard(self, drawn: Path) -> None:
        page, _ = report(drawn)
        assert page.all("html")[0]["lang"] == "en"
        levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
        assert levels[0] == 1
        assert levels.count(1) == 1
        assert all(below - above <= 1 for above, below in pairwise(levels))
        assert all(image.get("alt") for image in page.all("img"))
        assert len(page.all("caption")) == len(page.all("table")) > 5
        assert all("scope" in cell for cell in page.all("th"))
        ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
        assert len(set(ids)) == len(ids)
        pictures = page.all("svg")
        assert len(pictures) == 3
        for picture in pictures:
            assert picture["role"] == "img"
            assert set(picture["aria-labelledby"].split()) <= set(ids)
        assert {link["href"][1:] for link in page.all("a")} <= set(ids)

    def test_no_chart_leaves_its_frame(self, drawn: Path) -> None:
        page, _ = report(drawn)
        for bar in page.all("rect"):
            assert 44 <= float(bar["x"]) <= float(bar["x"]) + float(bar["width"]) <= 344.1
            assert 10 <= float(bar["y"]) <= float(bar["y"]) + float(bar["height"]) <= 430.1
        for line in page.all("polyline"):
            points = np.array([point.split(",") for point in line["points"].split()], dtype=float)
            assert (points.min(axis=0) >= [44, 10]).all()
            assert (points.max(axis=0) <= [344, 210]).all()

    def test_texts_of_others_stay_texts(self, tmp_path: Path) -> None:
        evil = json.loads('"\\ud83c\\udf4b"') + "<script>alert('x')</script>\"'&amp; \u202eabc\u2067 שלום ‍e\u0301"
        rows = [
            row(evil, 0.0, evil, question=evil, answers=[evil, "a"], confidence=0.9, answer_type=evil, image=evil),
            row("2", 0.0, None, error="<b>code", detail=evil, question_type=evil, model=evil, backend=evil),
        ]
        page, figures = report(write_run(tmp_path / "<i>run&", rows, only=(evil,)))
        tags = {tag for tag, _ in page.elements}
        assert not {"script", "b", "i"} & tags
        assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]
        assert page.text.count("<script>alert('x')</script>\"'&amp;") >= 8
        assert "<i>run&" in page.text
        assert figures["run"]["fingerprint"]["only"] == [evil]

    def test_what_there_is_nothing_of_is_said_or_left_out(self, tmp_path: Path) -> None:
        folder = write_run(tmp_path / "run", [row(1, 1.0), row(2, 0.3)])
        for picture in read_run(folder).main.texts("image"):
            Path(str(picture)).unlink()
        page, figures = report(folder)
        assert page.text.count("the picture's file cannot be read") == 2
        assert figures["calibration"] == []
        assert figures["risk_coverage"] is figures["answerability"] is None
        assert "no answer has a confidence or a probability" in page.text
        assert "No times were kept" in page.text
        assert "Failed" not in page.text
        assert "Answerability" not in page.text
        assert "none can be held back for its risk" in page.text
        assert page.all("svg") == page.all("img") == []

    def test_a_probability_alone_is_no_confidence(self, tmp_path: Path) -> None:
        page, figures = report(
            write_run(tmp_path / "run", [row(1, 1.0, top_probability=0.7), row(2, 0.0), row(3, top_probability=1.0)])
        )
        assert [entry["score"] for entry in figures["calibration"]] == ["top_probability"]
        assert figures["risk_coverage"]["score"] == "top_probability"
        assert "no fitted calibration" in page.text

    def test_an_answer_held_back_is_neither_right_nor_wrong_about_itself(self, tmp_path: Path) -> None:
        rows = [
            row(1, 1.0, confidence=0.8),
            row(3, 1.0, confidence=0.8),
            row(2, 0.0, None, confidence=0.3, abstained=True),
        ]
        _, figures = report(write_run(tmp_path / "run", rows))
        assert figures["calibration"][0]["questions"] == figures["risk_coverage"]["questions"] == 2
        assert figures["calibration"][0]["ece_equal_width"] == pytest.approx(0.2)
        assert figures["views"][0]["mean_confidence"] == 0.8
        assert figures["views"][0]["brier_score"] == pytest.approx(0.04)
        assert figures["views"][0]["accuracy"]["mean"] == pytest.approx(2 / 3)

    def test_nothing_was_answered(self, tmp_path: Path) -> None:
        rows = [row(n, 0.0, None, error="saturated" if n else "internal_error") for n in range(5)]
        page, figures = report(write_run(tmp_path / "run", rows))
        assert figures["views"][0]["failed_by_code"] == {"saturated": 4, "internal_error": 1}
        assert figures["views"][0]["accuracy"]["mean"] == 0
        assert "Failed: 4 saturated , 1 internal_error" in page.text

    def test_what_was_run(self, drawn: Path) -> None:
        page, _ = report(drawn)
        facts = page.text.split("Data set, models and files ")[1].split(" Accuracy ")[0]
        run = json.loads((drawn / "run.json").read_text("utf-8"))
        files, digests = run["facts"]["files"], run["fingerprint"]["files"]
        model = run["fingerprint"]["models"][0]
        questions = run["facts"]["questions"]
        assert facts == (
            f"data set vqav2 VQA code 2021 {model['backend']} vilt-shapes, revision {model['revision']}, "
            f"calibration {model['calibration']}: {questions} answers views sighted, blank asked at this process "
            f"questions file {files['questions']} (SHA-256 {digests['questions'][:12]}…) "
            f"annotations file {files['annotations']} (SHA-256 {digests['annotations'][:12]}…) "
            f"vqa version {run['facts']['version']} questions {questions} pictures at once 4"
        )

    def test_the_data_sets_own_metrics_are_shown(self, tmp_path: Path) -> None:
        folder = write_run(tmp_path / "run", [row(1), row(1, view="blank")])
        document = json.loads((folder / "evaluation.json").read_text())
        document["views"]["sighted"]["scores"] |= {
            "unanswerability": {"f1_score": 61.25},
            "code": "2016",
            "notes": ["mind the gap"],
        }
        (folder / "evaluation.json").write_text(json.dumps(document))
        page, _ = report(folder)
        assert "unanswerability / f1_score 61.25 –" in page.text
        assert "mind the gap" in page.text
        assert "VQA code 2016" in page.text
        assert "code –" not in page.text


def test_the_same_run_gives_the_same_files(drawn: Path) -> None:
    names = ("report.html", "report.json")
    report(drawn)
    before = [(drawn / name).read_bytes() for name in names]
    report(drawn)
    assert [(drawn / name).read_bytes() for name in names] == before


def test_without_room_for_the_page_the_figures_stay_as_well(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", [row(1)])
    report(folder)
    page, figures = folder / "report.html", folder / "report.json"
    assert figures.stat().st_size < page.stat().st_size
    figures.write_text("of the last time")
    before = {path: path.read_bytes() for path in folder.iterdir()}
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (page.stat().st_size - 1, hard))
    try:
        with pytest.raises(DataError, match=r"report\.html: it cannot be written"):
            write_report(folder)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_a_broken_run_leaves_the_old_report(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", [row(1)])
    report(folder)
    before = (folder / "report.html").read_bytes()
    (folder / "predictions.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError, match="not a whole Parquet file"):
        write_report(folder)
    assert (folder / "report.html").read_bytes() == before
    assert not list(folder.glob("*.part")) + list(folder.glob(".*"))
