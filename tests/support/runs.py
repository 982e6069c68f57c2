"""Run folders, written by `evaluate` itself: with made-up answers, or with those of the embedded model."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from PIL import Image

from models.shapes.examples import Split, draw_split
from models.shapes.vqav2 import write
from service.cli.progress import watcher
from service.evaluation.layout import BLIND, VIEWS
from service.evaluation.records import Prediction
from service.evaluation.running.asker import Asker, Outcome
from service.evaluation.running.datasets import load
from service.evaluation.running.evaluate import Plan, evaluate
from service.evaluation.running.fingerprint import Choices
from service.evaluation.running.formats.base import Sources
from service.evaluation.running.local import LocalAsker
from service.evaluation.running.run_files import RunFiles
from service.evaluation.running.runner import Pace
from service.evaluation.running.views import make_views
from service.scoring.scores import QuestionId
from service.settings import load_settings

ANNOTATORS = 10
# VQA accuracy when so many of ten people gave the answer.
AGREEING = {0.0: 0, 0.3: 1, 0.6: 2, 0.9: 3, 1.0: 10}

Row = dict[str, Any]


def row(question_id: object, accuracy: float = 1.0, prediction: str | None = "red", **other: Any) -> Row:
    """A question with what is answered; by default a sighted one about a picture of its own, answered red.

    Args:
        question_id: its id.
        accuracy: what the answer is worth, a key of `AGREEING`; people's answers are made so.
        prediction: the answer; None where there is none.
        other: `view`, other fields of a question (`answers` in the place of those made) and of `Prediction`, and
            `top_probability` of the only candidate.
    """
    agreeing = AGREEING[accuracy]
    people = [prediction or "none"] * agreeing + ["something else"] * (ANNOTATORS - agreeing)
    asked = {"question_id": str(question_id), "image": f"{question_id}.png", "question": "what color is it?"}
    return {"view": "sighted", **asked, "answers": people, "prediction": prediction, **other}


def write_run(folder: Path, rows: Iterable[Row], **chosen: Any) -> Path:
    """Run `evaluate` over the rows' questions; each view has to have the same ones.

    Args:
        folder: of the run; beside it a folder with the questions and their pictures is made.
        rows: from `row`.
        chosen: of the run, for its fingerprint (`Choices`).
    """
    rows = list(rows)
    views = {view: [each for each in rows if each["view"] == view] for view in VIEWS}
    data = folder.with_name(f"{folder.name}-data")
    kept = ("question_id", "image", "question", "answers", "answer_type", "question_type")
    for each in views["sighted"]:
        picture = data / each["image"]
        picture.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8), (200, 30, 30)).save(picture, "PNG")
    questions = [{name: each[name] for name in kept if name in each} for each in views["sighted"]]
    (data / "questions.jsonl").write_text("".join(json.dumps(each) + "\n" for each in questions))
    script = Script([{each["question_id"]: _prediction(each) for each in of_view} for of_view in views.values()])
    return _run(folder, "jsonl", Sources(annotations=data / "questions.jsonl"), script, views, Choices(**chosen))


def drawn_run(folder: Path, *, pictures: int, seed: int = 5, least: float = 0.0) -> Path:
    """What the embedded model says to drawn pictures of the test split, and to grey ones in their place.

    Args:
        folder: of the run; beside it the data set is written.
        pictures: how many are drawn.
        seed: which are drawn.
        least: the confidence below which an answer is held back.
    """
    data = folder.with_name(f"{folder.name}-data")
    write(data, Split.TEST, draw_split(Split.TEST, seed, pictures))
    sources = Sources(data / "questions.json", data / "annotations.json")
    asker = Careful(LocalAsker(load_settings(), 4), least)
    return _run(folder, "vqav2", sources, asker, {"sighted": [1], "blank": [1]}, Choices())


def _run(
    folder: Path, name: str, sources: Sources, asker: Asker, views: dict[str, list[Any]], choices: Choices
) -> Path:
    data = load(name, sources)
    shown = make_views([view for view in BLIND if views.get(view)], [each.image for each in data.examples], 0)
    plan = Plan(data.settled(), shown, RunFiles(folder), Pace(4), choices)
    with plan.folder.locked():
        evaluate(plan, lambda: asker, watcher(quiet=True))
    return folder


def _prediction(row: Row) -> Prediction:
    """A row's prediction; an answer that is not right with certainty is one of a model's candidates."""
    known = {field.name for field in fields(Prediction)} - {"answer", "answer_type"}
    values = {name: value for name, value in row.items() if name in known}
    if "top_probability" in row:
        values["candidates"] = ((row["prediction"], row["top_probability"]),)
    return Prediction(answer=row["prediction"], calibrated="confidence" in row, **values)


class Script:
    """Says what is written for it, view after view."""

    place = "a script"

    def __init__(self, views: Sequence[dict[str, Prediction]]) -> None:
        self._views = [view for view in views if view]
        self._asked: Counter[QuestionId] = Counter()

    async def start(self) -> None:
        """Nothing."""

    async def models(self) -> list[dict[str, Any]]:
        """Those that answer."""
        said = {
            (each.model, each.backend, each.revision, each.calibration)
            for view in self._views
            for each in view.values()
        }
        return [dict(zip(("id", "backend", "revision", "calibration"), model, strict=True)) for model in said]

    async def ask(self, picture: bytes, questions: Sequence[tuple[QuestionId, str]]) -> list[Outcome]:
        """The next view's predictions of these questions."""
        found: list[Outcome] = []
        for question_id, _ in questions:
            found.append(self._views[self._asked[question_id]][str(question_id)])
            self._asked[question_id] += 1
        return found

    async def close(self) -> None:
        """Nothing."""


class Careful:
    """Holds back what another asker is not sure of, as a caller's limit of risk does."""

    def __init__(self, asker: Asker, least: float) -> None:
        self._asker, self._least = asker, least
        self.place = asker.place
        self.start, self.models, self.close = asker.start, asker.models, asker.close

    async def ask(self, picture: bytes, questions: Sequence[tuple[QuestionId, str]]) -> list[Outcome]:
        """As the other."""
        return [
            replace(outcome, answer=None, abstained=True)
            if isinstance(outcome, Prediction) and (outcome.confidence or 0.0) < self._least
            else outcome
            for outcome in await self._asker.ask(picture, questions)
        ]
