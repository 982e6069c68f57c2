"""Run folders as `vqa eval` leaves them, written by hand or from the embedded model."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from models.shapes.annotators import annotate
from models.shapes.examples import Split, draw_split
from models.shapes.vqav2 import answer_type, question_type
from service.answers import vqa_accuracy
from service.errors import VQAError
from service.gateway import Picture, Question
from service.gateway.build import build_gateway
from service.settings import load_settings
from service.telemetry.metrics import Metrics

SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("question_id", "view", "image", "question", "question_type", "answer_type")),
        ("answers", pa.list_(pa.string())),
        ("prediction", pa.string()),
        ("accuracy", pa.float64()),
        ("confidence", pa.float64()),
        ("calibrated", pa.bool_()),
        ("answerable", pa.bool_()),
        ("answerability", pa.float64()),
        ("abstained", pa.bool_()),
        ("candidates", pa.list_(pa.struct([("answer", pa.string()), ("probability", pa.float64())]))),
        *((name, pa.float64()) for name in ("top_probability", "margin", "entropy", "off_set")),
        *((name, pa.string()) for name in ("raw_answer", "backend", "model", "revision", "calibration")),
        ("cached", pa.bool_()),
        ("warnings", pa.list_(pa.string())),
        *((name, pa.float64()) for name in ("decode_ms", "queue_ms", "inference_ms", "total_ms")),
        ("error", pa.string()),
        ("detail", pa.string()),
    ]
)


def row(question_id: object, accuracy: float = 1.0, prediction: str | None = "red", **other: Any) -> dict[str, Any]:
    """A prediction; by default a sighted question about a picture of its own, answered without calibration."""
    return {
        "question_id": str(question_id),
        "view": "sighted",
        "image": f"{question_id}.png",
        "question": "what color is it?",
        "answers": ["red"],
        "accuracy": accuracy,
        "prediction": prediction,
        "calibrated": "confidence" in other,
        "abstained": False,
        "cached": False,
        "warnings": [],
    } | other


def write_run(folder: Path, rows: Iterable[dict[str, Any]], **about: Any) -> Path:
    """Write a run folder; returns it."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = list(rows)
    pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), folder / "predictions.parquet")
    (folder / "run.json").write_text(json.dumps({"dataset": "drawn", **about}))
    views = {name: _scores([r for r in rows if r["view"] == name]) for name in dict.fromkeys(r["view"] for r in rows)}
    (folder / "evaluation.json").write_text(json.dumps({"dataset": "drawn", "run": about, "views": views}))
    return folder


def _scores(rows: list[dict[str, Any]]) -> dict[str, Any]:
    accuracy = round(100 * float(np.mean([r["accuracy"] for r in rows])), 2)
    return {
        "scores": {"dataset": "drawn", "questions": len(rows), "accuracy": accuracy, "notes": []},
        "counts": {"questions": len(rows)},
    }


def drawn_run(folder: Path, *, pictures: int, seed: int = 5, max_risk: float | None = None) -> Path:
    """What the embedded model says to drawn pictures of the test split, and to grey ones in their place."""
    images = folder / "images"
    images.mkdir(parents=True)
    rows = asyncio.run(_ask(images, pictures, seed, max_risk))
    return write_run(folder, rows, seed=seed, max_risk=max_risk)


async def _ask(images: Path, pictures: int, seed: int, max_risk: float | None) -> list[dict[str, Any]]:
    gateway = build_gateway(load_settings(), Metrics(), measured=False)
    await gateway.start()
    rows = []
    try:
        for number, example in enumerate(draw_split(Split.TEST, seed, pictures)):
            path = images / f"{number}.png"
            Image.fromarray(example.pixels).save(path)
            blank = Image.new("RGB", (example.pixels.shape[1], example.pixels.shape[0]), (127, 127, 127))
            for view, picture in (("sighted", Image.open(path)), ("blank", blank)):
                buffer = io.BytesIO()
                picture.save(buffer, "PNG")
                for k, question in enumerate(example.questions):
                    answers = list(annotate(question))
                    best = max(answers, key=answers.count)
                    shared = {
                        "view": view,
                        "image": str(path),
                        "question": question.text,
                        "answers": answers,
                        "question_type": question_type(question.text),
                        "answer_type": answer_type(best),
                    }
                    reply = await _reply(gateway, buffer.getvalue(), question.text, max_risk)
                    said = reply["prediction"]
                    accuracy = 0.0 if said is None else vqa_accuracy(said, answers, "2021")
                    rows.append(row(f"{number}-{k}", accuracy, **(shared | reply)))
    finally:
        await gateway.stop()
    return rows


async def _reply(gateway: Any, data: bytes, text: str, max_risk: float | None) -> dict[str, Any]:
    try:
        reply = await gateway.answer(Picture(lambda: data), Question(text, max_risk=max_risk))
    except VQAError as error:
        return {"prediction": None, "error": str(error.code), "detail": error.detail}
    from service.api.replies import answer_reply

    document = answer_reply(reply, "local").model_dump()
    timings = {f"{stage}_ms": ms for stage, ms in document["timings_ms"].items()}
    names = ("confidence", "calibrated", "answerable", "answerability", "abstained", "off_set", "raw_answer", "cached")
    return {
        "prediction": document["answer"],
        **{name: document[name] for name in names},
        "candidates": document["candidates"],
        "top_probability": document["candidates"][0]["probability"],
        "backend": document["backend"],
        "model": document["model"]["id"],
        "revision": document["model"]["revision"],
        "calibration": document["model"]["calibration"],
        "warnings": [warning["code"] for warning in document["warnings"]],
        **timings,
    }
