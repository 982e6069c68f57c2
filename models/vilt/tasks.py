"""What a run trains: the labels, the model to start from, the training data, and what the curve is measured on."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from models.shapes.examples import Example, Split, draw_split
from models.shapes.phrasing import EASY, OBJECTS, STRANGE, TEMPLATES, Group
from models.shapes.questions import ANSWERS, UNANSWERABLE
from models.vilt import easyvqa
from models.vilt.checkpoint import Checkpoint
from models.vilt.model import SMALL
from models.vilt.recipe import ShapesRecipe
from models.vilt.sources import FileSource, ShapesSource, Source
from service.answers import match_key
from service.errors import DataError
from service.evaluation.records import Example as AskedExample
from service.evaluation.running.asker import RunError
from service.evaluation.running.datasets import check_pictures, load
from service.evaluation.running.formats.base import Sources

MOST_VALIDATION_QUESTIONS = 2000


@dataclass(frozen=True)
class Task:
    """What to train, on what.

    Attributes:
        labels: the answers to learn, in the order of the scores.
        checkpoint: what to start from.
        source: training examples.
        validation: what the curve is measured on, by name.
        about: what it is, in words; a run is only resumed with the same.
        notes: what is odd about it, in sentences.
    """

    labels: tuple[str, ...]
    checkpoint: Checkpoint
    source: Source
    validation: Mapping[str, Sequence[Example]]
    about: str
    notes: tuple[str, ...] = ()


def shapes_task(seed: int, smoke: bool = False) -> Task:
    """The embedded model's own: drawn shapes and easy-VQA's training pictures without those held out."""
    data = easyvqa.load("train")
    train, held_out = easyvqa.held_out(len(data.pixels))
    validation = {
        "easy_vqa": easyvqa.official_examples(data, held_out[: 8 if smoke else 120]),
        "drawn": list(draw_split(Split.VAL, seed, 8 if smoke else 200, questions=6)),
    }
    recipe = _digest(ShapesRecipe(), TEMPLATES[Group.TRAIN], OBJECTS[Group.TRAIN], EASY, STRANGE)
    return Task(
        labels=ANSWERS,
        checkpoint=Checkpoint.find(SMALL),
        source=ShapesSource(data, train),
        validation=validation,
        about=f"drawn shapes and easy-VQA, recipe {recipe}",
    )


def data_task(
    dataset: str,
    sources: Sources,
    start: Path | None,
    most_labels: int,
    held_out: float,
    ruined: float,
    seed: int,
) -> Task:
    """A data set in one of the formats of `vqa eval`.

    Args:
        dataset, sources: its format and files.
        start: checkpoint folder to start from; None takes the small configuration, with random weights.
        most_labels: how many answers to learn, the commonest first; "unanswerable" is always one of them.
        held_out: share of the pictures that are not trained on, for the curve.
        ruined: share of training pictures that are ruined.
        seed: chooses what is held out.

    Raises:
        DataError, NoFileError: as `service.evaluation.running.datasets.load`; or pictures are missing, the model cannot
            read the questions, or the checkpoint cannot be used.
        FileNotFoundError: there is no checkpoint in the folder.
    """
    data = load(dataset, sources)
    try:
        check_pictures(data)
    except RunError as error:
        raise DataError(sources.annotations or "the data set", str(error).split(". See")[0]) from error
    train, kept = split_by_picture(data.examples, held_out, seed)
    labels = common_answers(train, most_labels)
    folder = start or SMALL
    try:
        checkpoint = Checkpoint.find(folder)
        edge = checkpoint.processor.shortest_edge
    except ValueError as error:
        raise DataError(folder, f"no checkpoint that can be trained: {error}") from error
    notes = unread([e.question for e in data.examples], checkpoint)
    if start is not None and not checkpoint.has_weights:
        notes = (*notes, f"{start} has no weights: random ones are trained, by its config.json")
    validation = {"held_out": FileSource(kept[:MOST_VALIDATION_QUESTIONS], edge).whole()} if kept else {}
    asked = _digest([(e.question_id, str(e.image), e.question, e.answers) for e in data.examples], labels)
    about = f"{dataset} {asked}, {held_out} held out, {ruined} ruined, from {checkpoint.folder}"
    return Task(labels, checkpoint, FileSource(train, edge, ruined, seed), validation, about, notes)


def unread(questions: Sequence[str], checkpoint: Checkpoint) -> tuple[str, ...]:
    """What the model will not see of these questions, in sentences with an example; none where it reads all of them.

    Raises:
        DataError: there is no question of which it knows a word.
    """
    encoded = {question: checkpoint.tokenizer.encode(question) for question in dict.fromkeys(questions)}
    strange = [question for question, each in encoded.items() if each.unknown > each.words or not each.words]
    cut = [question for question, each in encoded.items() if each.cut]
    if not any(each.words for each in encoded.values()):
        raise DataError(
            checkpoint.tokenizer_file,
            f"the model knows no word of any question, as of {strange[0]!r}; ask in the language of its vocabulary "
            "(English, unless the checkpoint is of another)",
        )
    found = []
    if strange:
        of = f"{len(strange)} of {len(encoded)} questions"
        found.append(f"of {of} the model does not know most words: {strange[0]!r}")
    if cut:
        limit = checkpoint.max_tokens
        found.append(f"{len(cut)} of {len(encoded)} questions are cut off after {limit} tokens: {cut[0]!r}")
    return tuple(found)


def _digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def split_by_picture(
    examples: Sequence[AskedExample], share: float, seed: int
) -> tuple[list[AskedExample], list[AskedExample]]:
    """Those to keep, and those of a share of the pictures: no picture is on both sides."""
    images = sorted({str(e.image) for e in examples})
    order = np.random.default_rng(seed).permutation(len(images))
    taken = {images[int(k)] for k in order[: round(share * len(images))]}
    return [e for e in examples if str(e.image) not in taken], [e for e in examples if str(e.image) in taken]


def common_answers(examples: Sequence[AskedExample], most: int) -> tuple[str, ...]:
    """The answers that people gave most often, in their normal form; "unanswerable" at the end."""
    counts = Counter(match_key(answer) for e in examples for answer in e.answers)
    counts.pop(UNANSWERABLE, None)
    counts.pop("", None)
    return (*(answer for answer, _ in counts.most_common(most)), UNANSWERABLE)
