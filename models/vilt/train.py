"""Train a ViLT for visual question answering: `python -m models.vilt.train --out DIR`.

Without a data set the defaults reproduce the embedded model `models/vilt-shapes`: drawn shapes and easy-VQA, from random
weights. With `--dataset` and its files, as `vqa eval` takes them, it trains on those, from random weights or, with
`--checkpoint`, from a folder in the hub's format. The run is split into steps, not minutes, so the result does not
depend on the machine's speed; `--minutes` stops early, and `--resume` goes on from there.
Examples: python -m models.vilt.train --out runs/vilt-shapes
  python -m models.vilt.train --out runs/mine --dataset vqav2 --questions q.json --annotations a.json --checkpoint models/vilt-shapes
"""  # noqa: E501 - a command is a line

from __future__ import annotations

import argparse
import csv
import json
import sys
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor
from tqdm import tqdm
from transformers import ViltForQuestionAnswering

from models.shapes.examples import Example
from models.vilt.batches import Batches, Collator, Inputs
from models.vilt.checkpoint import Checkpoint
from models.vilt.embedding import deterministic, make_deterministic
from models.vilt.optimizer import MuonWithAdamW, schedule
from models.vilt.recipe import ShapesRecipe
from models.vilt.sources import Source
from models.vilt.targets import ScoreKind, Targets
from models.vilt.tasks import Task, data_task, shapes_task
from service.answers import agreement
from service.errors import DataError
from service.evaluation.running.datasets import FORMATS
from service.evaluation.running.formats.base import NoFileError, Sources


@dataclass(frozen=True)
class Settings:
    """Everything that decides what a run gives, apart from data and machine."""

    steps: int = 25000
    second: int = 0  # of the steps, a second and lower cosine of the learning rate
    seed: int = 0
    scores: ScoreKind = "softmax"
    rate: float = 1.0  # of the full learning rates
    pictures: int = 32  # a batch
    questions: int = 2  # a picture; a row costs the same whether its picture is new or not, so many pictures
    bf16: bool = True
    average: float = 0.999  # decay of the running average of the weights, which is what is kept
    evaluate_every: int = 1000


class OtherRunError(ValueError):
    """The run in a folder is another one than that which is to go on."""


CURVE = ("step", "seconds", "questions", "learning_rate", "loss", "accuracy", "topics")


class Run:
    """One training run in a folder: `curve.csv`, `checkpoint/` (averaged weights, hub's format), `state.pt`.

    Args:
        folder: where it lies.
        settings: how to train.
        task: what to train, on what.
        resume: go on where an earlier run in the folder stopped.
        device: of torch.

    Raises:
        FileExistsError: the folder holds a run already, and it is not to be resumed.
        OtherRunError: the run to resume was begun with other settings, or on other data.
    """

    def __init__(self, folder: Path, settings: Settings, task: Task, resume: bool, device: str = "cpu") -> None:
        if not resume and (folder / "state.pt").exists():
            raise FileExistsError(f"{folder} holds a run already: go on with --resume, or give another folder")
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.settings, self.device = folder, settings, torch.device(device)
        self.checkpoint: Checkpoint = task.checkpoint
        self.targets = Targets(task.labels, settings.scores)
        self.labels = task.labels
        self.about = task.about
        self.collate = Collator(task.checkpoint, self.targets)
        source: Source = task.source
        self.batches = Batches(source, self.collate, settings.pictures, settings.questions, settings.seed)
        self.validation: Mapping[str, Sequence[Example]] = task.validation
        model = task.checkpoint.model(task.labels, settings.seed).to(self.device)
        self.model = make_deterministic(model)
        self.average = torch.optim.swa_utils.AveragedModel(
            model, multi_avg_fn=partial(_move_average, decay=settings.average)
        )
        self.optimizer = MuonWithAdamW(model)
        self.step, self.seconds, self.loss, self.asked = 0, 0.0, float("nan"), 0
        if resume:
            self._load()

    def train(self, minutes: float | None) -> None:
        """Steps until all are done, or until `minutes` have passed in this call."""
        began, before = time.monotonic(), self.seconds
        deadline = None if minutes is None else began + 60 * minutes
        self.model.train()
        with tqdm(total=self.settings.steps, initial=self.step, unit="step", disable=None) as bar:
            while self.step < self.settings.steps:
                if deadline is not None and time.monotonic() > deadline:
                    break
                self.train_step()
                bar.update()
                self.seconds = before + time.monotonic() - began
                if self.step % self.settings.evaluate_every == 0 or self.step == self.settings.steps:
                    self._report()
                    self.save()
        self.save()

    @property
    def rate(self) -> float:
        """The share of the full learning rates at this step."""
        return self.settings.rate * schedule(self.step, self.settings.steps, self.settings.second)

    def train_step(self) -> None:
        """One batch, one update of the weights and of their average."""
        inputs, targets = self.batches.batch(self.step)
        with self._autocast():
            logits = self.model(**self._placed(inputs)).logits.float()
        loss = self.targets.loss(logits, targets.to(self.device))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step(self.rate)
        self.average.update_parameters(self.model)
        self.loss = loss.item() if self.step == 0 else 0.98 * self.loss + 0.02 * loss.item()
        self.step += 1
        self.asked += len(targets)

    def _report(self) -> None:
        scores = {name: self.evaluate(examples) for name, examples in self.validation.items()}
        row = {
            "step": self.step,
            "seconds": round(self.seconds),
            "questions": self.asked,
            "learning_rate": round(self.rate, 4),
            "loss": round(self.loss, 4),
            "accuracy": json.dumps({name: found.pop("all") for name, found in scores.items()}),
            "topics": json.dumps({f"{name}: {t}": v for name, found in scores.items() for t, v in found.items()}),
        }
        path = self.folder / "curve.csv"
        with path.open("a", newline="") as file:
            writer = csv.DictWriter(file, CURVE)
            if path.stat().st_size == 0:
                writer.writeheader()
            writer.writerow(row)
        tqdm.write(" ".join(f"{k}={v}" for k, v in row.items()))

    @torch.inference_mode()
    def evaluate(self, examples: Sequence[Example], pictures: int = 16) -> dict[str, float]:
        """VQA accuracy of the averaged weights' best label, in all ("all") and by topic."""
        model: ViltForQuestionAnswering = self.average.module.eval()
        found: dict[str, list[float]] = defaultdict(list)
        for first in range(0, len(examples), pictures):
            part = examples[first : first + pictures]
            inputs, _ = self.collate(part)
            with deterministic(model), self._autocast():
                best = model(**self._placed(inputs)).logits.argmax(1).tolist()
            for question, label in zip((q for e in part for q in e.questions), best, strict=True):
                accuracy = agreement(self.labels[label], question.answers)
                found["all"].append(accuracy)
                found[question.topic].append(accuracy)
        return {topic: round(sum(values) / len(values), 4) for topic, values in sorted(found.items())}

    def save(self) -> None:
        """The averaged weights in the hub's format, and what a resumed run needs."""
        self.average.module.save_pretrained(self.folder / "checkpoint")
        self.checkpoint.copy_files(self.folder / "checkpoint")
        state = {
            "settings": asdict(self.settings),
            "about": self.about,
            "step": self.step,
            "seconds": self.seconds,
            "loss": self.loss,
            "asked": self.asked,
            "model": self.model.state_dict(),
            "average": self.average.state_dict(),
            "optimizer": self.optimizer.state_dict(),
        }
        unfinished = self.folder / "state.pt.unfinished"  # renamed when whole: a killed run leaves the last one intact
        torch.save(state, unfinished)
        unfinished.replace(self.folder / "state.pt")

    def _load(self) -> None:
        state = torch.load(self.folder / "state.pt", weights_only=True, map_location=self.device)
        if state["settings"] != asdict(self.settings):
            raise OtherRunError(f"{self.folder} was begun with other settings: {state['settings']}")
        if state["about"] != self.about:
            raise OtherRunError(
                f"{self.folder} was begun on other data or by another recipe: {state['about']}; this is {self.about}"
            )
        self.model.load_state_dict(state["model"])
        self.average.load_state_dict(state["average"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.step, self.seconds, self.loss, self.asked = (state[k] for k in ("step", "seconds", "loss", "asked"))

    def _placed(self, inputs: Inputs) -> Inputs:
        return {name: value.to(self.device) for name, value in inputs.items()}

    def _autocast(self) -> torch.autocast:
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.settings.bf16)


@torch.no_grad()
def _move_average(averages: list[Tensor], weights: list[Tensor], updates: Tensor, *, decay: float) -> None:
    """Exponential moving average whose decay grows from 0.1 to `decay`, so that first weights are soon forgotten."""
    count = int(updates)
    weight = 1 - min(decay, (1 + count) / (10 + count))
    for average, value in zip(averages, weights, strict=True):
        average.lerp_(value, weight)


def arguments() -> argparse.Namespace:
    """The command line, checked."""
    default = Settings()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder of the run")
    data = parser.add_argument_group("a data set of your own, as `vqa eval` takes it")
    data.add_argument("--dataset", choices=sorted(FORMATS), help="its format; none trains the embedded model")
    data.add_argument("--annotations", type=Path)
    data.add_argument("--questions", type=Path)
    data.add_argument("--images", type=Path, help="folder of the pictures")
    data.add_argument("--image-name", help="a picture's name, such as COCO_val2014_{image_id:012d}.jpg")
    data.add_argument("--labels", type=int, default=3129, help="most answers to learn, the commonest; default 3129")
    data.add_argument("--held-out", type=float, default=0.1, help="share of the pictures that the curve is measured on")
    data.add_argument("--ruined", type=float, default=0.0, help="share of pictures ruined, to teach 'unanswerable'")
    data.add_argument("--checkpoint", type=Path, help="folder to start from, in the hub's format; none: random weights")
    parser.add_argument("--scores", choices=("softmax", "sigmoid"), default=default.scores, help="default softmax")
    parser.add_argument("--rate", type=float, default=default.rate, help="share of the full learning rates; default 1")
    parser.add_argument("--steps", type=int, default=default.steps, help=f"default {default.steps}")
    parser.add_argument("--pictures", type=int, default=default.pictures, help="a batch; default 32")
    parser.add_argument("--questions-a-picture", type=int, default=default.questions, help="at most; default 2")
    parser.add_argument("--evaluate-every", type=int, default=default.evaluate_every, help="steps; default 1000")
    parser.add_argument("--seed", type=int, default=default.seed, help=f"default {default.seed}")
    parser.add_argument("--minutes", type=float, help="stop after so many minutes, all steps done or not")
    parser.add_argument("--threads", type=int, default=1, help="default 1")
    parser.add_argument("--device", default="cpu", help="of torch: cpu or cuda; default cpu")
    parser.add_argument("--fp32", action="store_true", help="no bf16: for processors that have none")
    parser.add_argument("--resume", action="store_true", help="go on from the folder's state.pt")
    parser.add_argument(
        "--smoke", action="store_true", help="a miniature of the embedded model's run that learns nothing"
    )
    found = parser.parse_args()
    if not 0 <= found.held_out < 1:
        parser.error("--held-out is a share from 0 to below 1")
    if found.dataset is None and (found.annotations or found.questions or found.checkpoint):
        parser.error("--annotations, --questions and --checkpoint need --dataset")
    return found


def main() -> None:
    try:
        _run(arguments())
    except (DataError, NoFileError, FileNotFoundError, FileExistsError, OtherRunError) as error:
        sys.exit(str(error))


def _run(given: argparse.Namespace) -> None:
    torch.set_num_threads(given.threads)
    if given.dataset is None:
        task = shapes_task(given.seed, smoke=given.smoke)
    else:
        sources = Sources(given.questions, given.annotations, given.images, given.image_name)
        task = data_task(
            given.dataset, sources, given.checkpoint, given.labels, given.held_out, given.ruined, given.seed
        )
    settings = Settings(
        steps=12 if given.smoke else given.steps,
        second=0 if given.dataset or given.smoke else max(0, given.steps - ShapesRecipe().late_from),
        seed=given.seed,
        scores=given.scores,
        rate=given.rate,
        pictures=given.pictures,
        questions=given.questions_a_picture,
        bf16=not given.fp32,
        average=0.5 if given.smoke else Settings.average,
        evaluate_every=6 if given.smoke else given.evaluate_every,
    )
    for note in task.notes:
        print(f"note: {note}", file=sys.stderr, flush=True)
    run = Run(given.out, settings, task, given.resume, given.device)
    parameters = sum(p.numel() for p in run.model.parameters())
    print(f"parameters={parameters} labels={len(task.labels)} {asdict(settings)}", flush=True)
    run.train(given.minutes)


if __name__ == "__main__":
    main()
