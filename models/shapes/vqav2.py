"""The official VQA v2 layout: questions.json, annotations.json and a folder of pictures."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from PIL import Image

from models.shapes.examples import Example, Split
from models.shapes.questions import Question
from service.scoring.question_types import answer_type, question_type


def write(folder: Path, split: Split, examples: Iterable[Example]) -> int:
    """Write a data set into `folder`; returns the number of questions.

    Pictures are images/shapes_SPLIT_000000000001.png by the picture's id, as in COCO; a question's id is 1000 times
    its picture's plus a running number, as in VQA v2.
    """
    pictures = folder / "images"
    pictures.mkdir(parents=True, exist_ok=True)
    questions: list[dict] = []
    annotations: list[dict] = []
    for image_id, example in enumerate(examples, start=1):
        Image.fromarray(example.pixels).save(pictures / f"shapes_{split}_{image_id:012d}.png")
        for number, question in enumerate(example.questions):
            question_id = image_id * 1000 + number
            questions.append({"image_id": image_id, "question": _sentence(question.text), "question_id": question_id})
            annotations.append(_annotation(question, image_id, question_id))
    about = {
        "info": {
            "description": "Drawn shapes with questions, in the format of VQA v2.",
            "version": "1.0",
            "url": "",
            "contributor": "models.shapes",
            "year": 2026,
            "date_created": "2026-11-30 00:00:00",
        },
        "license": {"name": "MIT", "url": "https://opensource.org/license/mit"},
        "data_type": "shapes",
    }
    official = about | {"task_type": "Open-Ended", "data_subtype": str(split), "questions": questions}
    (folder / "questions.json").write_text(json.dumps(official) + "\n")
    official = about | {"data_subtype": str(split), "annotations": annotations}
    (folder / "annotations.json").write_text(json.dumps(official) + "\n")
    return len(questions)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _annotation(question: Question, image_id: int, question_id: int) -> dict:
    answers = list(question.answers)
    return {
        "question_type": question_type(question.text),
        "multiple_choice_answer": max(answers, key=answers.count),
        "answers": [
            {"answer": answer, "answer_confidence": "yes", "answer_id": k} for k, answer in enumerate(answers, start=1)
        ],
        "image_id": image_id,
        "answer_type": answer_type(max(answers, key=answers.count)),
        "question_id": question_id,
    }
