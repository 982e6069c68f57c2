"""How long scoring takes, beside a straight loop written as the official code's is; both give equal results.

    python -m loadtest.scoring [--answers 450000] [--annotations FILE] [--json]

Both start from what the JSON parser gives and end with the accuracies overall, by question type and by answer type. The
data are made up: a vocabulary with the long tail of real answers, ten annotators who agree as people do, and one answer
in fifty that occurs nowhere else. With --annotations they are a real VQA file's, repeated to the number asked for.
"""

from __future__ import annotations

import json
import random
import re
import time
from pathlib import Path
from typing import Any

import click

from service.answers.normalise import ARTICLES, CONTRACTIONS, NUMBER_WORDS
from service.files import read_json
from service.scoring.rounding import round_half_away
from service.scoring.scores import Inputs
from service.scoring.vqa import Loaded, score_loaded
from service.scoring.vqa_format import Annotations, Results

SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprst" for vowel in "aeio"]
MARKS = [";", "/", "[", "]", '"', "{", "}", "(", ")", "=", "+", "\\", "_", "-", ">", "<", "@", "`", ",", "?", "!"]
PERIOD = re.compile(r"(?!<=[0-9])(\.)(?![0-9])")
COMMA = re.compile(r"([0-9])(,)([0-9])")
VOCABULARY = 50_000


def made_up(count: int, seed: int = 0) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Annotations and results of so many questions."""
    draw = random.Random(seed)
    words = ["".join(draw.choices(SYLLABLES, k=draw.randint(1, 4))) for _ in range(VOCABULARY)]
    texts = [
        "yes",
        "no",
        *map(str, range(20)),
        *(" ".join(draw.choices(words, k=draw.choice((1, 1, 2)))) for _ in words),
    ]
    weights = [1 / (rank + 1) for rank in range(len(texts))]
    pool = draw.choices(texts, weights, k=count * 4)
    shapes = [str.title, str.upper, "the {}".format, "{}.".format, "{}!".format, " {}\n".format]
    annotations, results = [], []
    for number in range(count):
        best, others = pool[4 * number], pool[4 * number + 1 : 4 * number + 4]
        said = [best if draw.random() < 0.65 else draw.choice(others) for _ in range(10)]
        said = [draw.choice(shapes)(text) if draw.random() < 0.03 else text for text in said]
        answers = [{"answer": t, "answer_confidence": "yes", "answer_id": i} for i, t in enumerate(said, 1)]
        answer = best if draw.random() < 0.6 else draw.choice(others)
        answer = f"{answer} {number}" if draw.random() < 0.02 else answer
        annotations.append(
            {
                "question_id": number,
                "question_type": f"type {number % 65}",
                "answer_type": ("yes/no", "number", "other")[number % 3],
                "answers": answers,
            }
        )
        results.append({"question_id": number, "answer": answer})
    return annotations, results


def repeated(path: Path, count: int, seed: int = 0) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """A real file's annotations, repeated, with answers of its annotators as results."""
    draw = random.Random(seed)
    rows = read_json(path)["annotations"]
    annotations, results = [], []
    for number in range(count):
        row = rows[number % len(rows)]
        answers = [dict(answer) for answer in row["answers"]]
        annotations.append({**row, "question_id": number, "answers": answers})
        other = row if draw.random() < 0.7 else draw.choice(rows)
        results.append({"question_id": number, "answer": draw.choice(other["answers"])["answer"]})
    return annotations, results


class StraightLoop:
    """The evaluation as a reader of the paper would write it: one question, one annotator, one mark at a time."""

    def punctuation(self, text: str) -> str:
        out = text
        for mark in MARKS:
            if (mark + " " in text or " " + mark in text) or (re.search(COMMA, text) is not None):
                out = out.replace(mark, "")
            else:
                out = out.replace(mark, " ")
        return PERIOD.sub("", out, 32)

    def digits_articles(self, text: str) -> str:
        out = []
        for word in text.lower().split():
            word = NUMBER_WORDS.get(word, word)
            if word not in ARTICLES:
                out.append(word)
        for index, word in enumerate(out):
            if word in CONTRACTIONS:
                out[index] = CONTRACTIONS[word]
        return " ".join(out)

    def __call__(self, annotations: list[dict[str, Any]], results: list[dict[str, Any]]) -> dict[str, Any]:
        said = {row["question_id"]: row for row in results}
        overall, by_question_type, by_answer_type = [], {}, {}
        for row in annotations:
            for record in row["answers"]:
                record["answer"] = record["answer"].replace("\n", " ").replace("\t", " ").strip()
            answer = said[row["question_id"]]["answer"].replace("\n", " ").replace("\t", " ").strip()
            if len({record["answer"] for record in row["answers"]}) > 1:
                for record in row["answers"]:
                    record["answer"] = self.digits_articles(self.punctuation(record["answer"]))
                answer = self.digits_articles(self.punctuation(answer))
            scores = []
            for left_out in row["answers"]:
                others = [record for record in row["answers"] if record != left_out]
                matching = [record for record in others if record["answer"] == answer]
                scores.append(min(1, float(len(matching)) / 3))
            accuracy = float(sum(scores)) / len(scores)
            overall.append(accuracy)
            by_question_type.setdefault(row["question_type"], []).append(accuracy)
            by_answer_type.setdefault(row["answer_type"], []).append(accuracy)
        percent = lambda values: round_half_away(100 * float(sum(values)) / len(values))  # noqa: E731
        return {
            "accuracy": percent(overall),
            "per_answer_type": {kind: percent(values) for kind, values in by_answer_type.items()},
            "per_question_type": {kind: percent(values) for kind, values in by_question_type.items()},
        }


def ours(annotations: list[dict[str, Any]], results: list[dict[str, Any]]) -> dict[str, Any]:
    """The same numbers from `service.scoring`."""
    nowhere = Path("made-up")
    loaded = Loaded(
        Annotations(nowhere, annotations, {row["question_id"]: row for row in annotations}),
        Results(nowhere, {row["question_id"]: row for row in results}),
        None,
    )
    document = score_loaded(loaded, Inputs(annotations=nowhere, results=nowhere), "vqav2").document()
    return {key: document[key] for key in ("accuracy", "per_answer_type", "per_question_type")}


@click.command()
@click.option("--answers", type=click.IntRange(1), default=450_000, show_default=True, help="How many to score.")
@click.option("--annotations", type=click.Path(path_type=Path), help="A real VQA annotations file to repeat.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def main(answers: int, annotations: Path | None, as_json: bool) -> None:
    """Score answers with `vqa score`'s code and with a straight loop, and compare times and results."""
    rows, results = made_up(answers) if annotations is None else repeated(annotations, answers)
    started = time.perf_counter()
    fast = ours(rows, results)
    middle = time.perf_counter()
    straight = StraightLoop()(rows, results)  # last: it writes normal forms over the answers
    ended = time.perf_counter()
    if straight != fast:
        raise click.ClickException(f"the results differ: {fast['accuracy']} against {straight['accuracy']}")
    figures = {
        "answers": answers,
        "straight_loop_s": round(ended - middle, 2),
        "ours_s": round(middle - started, 2),
        "times_faster": round((ended - middle) / (middle - started), 1),
        "accuracy": fast["accuracy"],
    }
    if as_json:
        click.echo(json.dumps(figures))
        return
    click.echo(f"{answers:,} answers against ten annotators each, equal results (accuracy {fast['accuracy']} %)")
    click.echo(f"  straight loop  {figures['straight_loop_s']:8.2f} s")
    click.echo(f"  vqa score      {figures['ours_s']:8.2f} s, {figures['times_faster']} times faster")


if __name__ == "__main__":
    main()
