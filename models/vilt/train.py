"""Train the small ViLT from scratch: `python -m models.vilt.train --out DIR`.

The defaults reproduce the embedded model `models/vilt-shapes`. The run is split into steps, not minutes, so the
result does not depend on the machine's speed; `--minutes` stops early (and `--resume` goes on from there).
Example: python -m models.vilt.train --out runs/vilt-shapes
"""

from __future__ import annotations

import argparse
import csv
import json
import shutil
import time
from collections import defaultdict
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn
from transformers import ViltForQuestionAnswering

from models.shapes.examples import Example, Split, draw_split
from models.vilt import easyvqa
from models.vilt.batches import Batches, Recipe, collate
from models.vilt.embedding import deterministic, make_deterministic
from models.vilt.model import fresh_model, small_config
from models.vilt.optimizer import MuonWithAdamW, schedule
from models.vilt.tokenizer import QuestionEncoder


@dataclass(frozen=True)
class Settings:
    """Everything that decides what a run gives, apart from the machine."""

    steps: int = 10000
    seed: int = 0
    bf16: bool = True
    average: float = 0.998  # decay of the running average of the weights, which is what is kept
    evaluate_every: int = 500
    validation_pictures: int = 120
    drawn_pictures: int = 100


SMOKE = Settings(steps=12, evaluate_every=6, average=0.5, validation_pictures=8, drawn_pictures=8)
# Training a tokenizer anew breaks ties at random, so the recipe starts from the committed one.
TOKENIZER = Path(__file__).parents[1] / "vilt-shapes" / "tokenizer.json"
CURVE = ("step", "seconds", "questions", "learning_rate", "loss", "easy_vqa", "drawn", "kinds")


class Run:
    """One training run in a folder: `tokenizer.json`, `curve.csv`, `checkpoint/` (averaged weights), `state.pt`."""

    def __init__(self, folder: Path, settings: Settings, resume: bool, tokenizer: Path = TOKENIZER) -> None:
        if not resume and (folder / "state.pt").exists():
            raise FileExistsError(f"{folder} holds a run already: go on with --resume, or give another folder")
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.settings = folder, settings
        if not resume:
            shutil.copyfile(tokenizer, folder / "tokenizer.json")
        words = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.encoder = QuestionEncoder(words)
        data = easyvqa.load("train")
        train, held_out = easyvqa.held_out(len(data.pixels))
        recipe = Recipe()
        self.rows = recipe.pictures * recipe.questions
        self.batches = Batches(data, train, self.encoder, recipe, settings.seed)
        self.validation = {
            "easy_vqa": easyvqa.official_examples(data, held_out[: settings.validation_pictures]),
            "drawn": list(draw_split(Split.VAL, settings.seed, settings.drawn_pictures, questions=6)),
        }
        model = fresh_model(small_config(words.get_vocab_size()), settings.seed)
        self.model = make_deterministic(model)
        self.average = torch.optim.swa_utils.AveragedModel(
            model, multi_avg_fn=partial(_move_average, decay=settings.average)
        )
        self.optimizer = MuonWithAdamW(model)
        self.step, self.seconds, self.loss = 0, 0.0, float("nan")
        if resume:
            self._load()

    def train(self, minutes: float | None) -> None:
        """Steps until all are done, or until `minutes` have passed in this call."""
        began, before = time.monotonic(), self.seconds
        deadline = None if minutes is None else began + 60 * minutes
        self.model.train()
        while self.step < self.settings.steps:
            if deadline is not None and time.monotonic() > deadline:
                break
            self.train_step()
            self.seconds = before + time.monotonic() - began
            if self.step % self.settings.evaluate_every == 0 or self.step == self.settings.steps:
                self._report()
                self.save()
        self.save()

    def train_step(self) -> None:
        """One batch, one update of the weights and of their average."""
        inputs, labels = self.batches.batch(self.step)
        with self._autocast():
            logits = self.model(**inputs).logits.float()
        loss = nn.functional.cross_entropy(logits, labels)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step(schedule(self.step, self.settings.steps))
        self.average.update_parameters(self.model)
        self.loss = loss.item() if self.step == 0 else 0.98 * self.loss + 0.02 * loss.item()
        self.step += 1

    def _report(self) -> None:
        scores = {name: self.evaluate(examples) for name, examples in self.validation.items()}
        kinds = {f"{name}: {kind}": v for name, s in scores.items() for kind, v in s.items() if kind != "all"}
        row = {
            "step": self.step,
            "seconds": round(self.seconds),
            "questions": self.step * self.rows,
            "learning_rate": round(schedule(self.step, self.settings.steps), 4),
            "loss": round(self.loss, 4),
            "easy_vqa": scores["easy_vqa"]["all"],
            "drawn": scores["drawn"]["all"],
            "kinds": json.dumps(kinds),
        }
        path = self.folder / "curve.csv"
        with path.open("a", newline="") as file:
            writer = csv.DictWriter(file, CURVE)
            if path.stat().st_size == 0:
                writer.writeheader()
            writer.writerow(row)
        print(" ".join(f"{k}={v}" for k, v in row.items()), flush=True)

    @torch.inference_mode()
    def evaluate(self, examples: list[Example], pictures: int = 16) -> dict[str, float]:
        """Exact accuracy of the averaged weights, in all ("all") and by topic."""
        model: ViltForQuestionAnswering = self.average.module.eval()
        right: dict[str, list[bool]] = defaultdict(list)
        for first in range(0, len(examples), pictures):
            part = examples[first : first + pictures]
            inputs, labels = collate(part, self.encoder)
            with deterministic(model), self._autocast():
                hits = (model(**inputs).logits.argmax(1) == labels).tolist()
            for question, hit in zip((q for e in part for q in e.questions), hits, strict=True):
                right["all"].append(hit)
                right[question.topic].append(hit)
        return {topic: round(sum(hits) / len(hits), 4) for topic, hits in sorted(right.items())}

    def save(self) -> None:
        """The averaged weights in the hub's format, and what a resumed run needs."""
        self.average.module.save_pretrained(self.folder / "checkpoint")
        state = {
            "settings": asdict(self.settings),
            "step": self.step,
            "seconds": self.seconds,
            "loss": self.loss,
            "model": self.model.state_dict(),
            "average": self.average.state_dict(),
            "optimizer": self.optimizer.state_dict(),
        }
        unfinished = self.folder / "state.pt.unfinished"  # renamed when whole: a killed run leaves the last one intact
        torch.save(state, unfinished)
        unfinished.replace(self.folder / "state.pt")

    def _load(self) -> None:
        state = torch.load(self.folder / "state.pt", weights_only=True)
        if state["settings"] != asdict(self.settings):
            raise ValueError(f"{self.folder} was begun with other settings: {state['settings']}")
        self.model.load_state_dict(state["model"])
        self.average.load_state_dict(state["average"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.step, self.seconds, self.loss = state["step"], state["seconds"], state["loss"]

    def _autocast(self) -> torch.autocast:
        return torch.autocast("cpu", torch.bfloat16, enabled=self.settings.bf16)


@torch.no_grad()
def _move_average(averages: list[Tensor], weights: list[Tensor], updates: Tensor, *, decay: float) -> None:
    """Exponential moving average whose decay grows from 0.1 to `decay`, so that first weights are soon forgotten."""
    count = int(updates)
    weight = 1 - min(decay, (1 + count) / (10 + count))
    for average, value in zip(averages, weights, strict=True):
        average.lerp_(value, weight)


def main() -> None:
    default = Settings()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder of the run")
    parser.add_argument("--steps", type=int, default=default.steps, help=f"default {default.steps}")
    parser.add_argument("--seed", type=int, default=default.seed, help=f"default {default.seed}")
    parser.add_argument("--tokenizer", type=Path, default=TOKENIZER, help="default: the embedded model's")
    parser.add_argument("--minutes", type=float, help="stop after so many minutes, all steps done or not")
    parser.add_argument("--threads", type=int, default=1, help="default 1")
    parser.add_argument("--resume", action="store_true", help="go on from the folder's state.pt")
    parser.add_argument("--smoke", action="store_true", help="a miniature run of a few seconds that learns nothing")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    settings = SMOKE if arguments.smoke else Settings(steps=arguments.steps, seed=arguments.seed)
    run = Run(arguments.out, settings, arguments.resume, arguments.tokenizer)
    parameters = sum(p.numel() for p in run.model.parameters())
    print(f"parameters={parameters} {asdict(settings)}", flush=True)
    run.train(arguments.minutes)


if __name__ == "__main__":
    main()
