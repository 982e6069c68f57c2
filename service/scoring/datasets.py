"""The data sets that can be scored, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from service.scoring import advqa, anls, daquar, easyvqa, gqa, jsonl, pope, reliable_vqa, vizwiz, vqa
from service.scoring.scores import Inputs, Scores

Evaluator = Callable[[Inputs], Scores]


@dataclass(frozen=True)
class Dataset:
    """One data set.

    Attributes:
        score: its evaluator.
        takes: which further files of `Inputs` it reads, beside annotations and results.
        like: the other programs whose rules its answers can be scored by.
        codes: whether the VQA code's versions make a difference.
    """

    score: Evaluator
    takes: frozenset[str] = frozenset()
    like: tuple[str, ...] = ()
    codes: bool = False


def _vqa(name: str, *further: str) -> Dataset:
    takes = frozenset(("questions", "question_ids", *further))
    return Dataset(partial(vqa.score, dataset=name), takes, (*_PROGRAMS, "vizwiz"), codes=True)


_PROGRAMS: Final = ("lmms-eval", "vlmevalkit", "m4c", "lavis")
DATASETS: Final[Mapping[str, Dataset]] = {
    "vqav2": _vqa("vqav2", "pairs"),
    "vqa": _vqa("vqa"),
    "okvqa": _vqa("okvqa"),
    "textvqa": _vqa("textvqa"),
    "vqacp": _vqa("vqacp"),
    "advqa": Dataset(advqa.score, frozenset({"questions", "question_ids", "train"}), codes=True),
    "vizwiz": Dataset(vizwiz.score, frozenset({"answerability"}), _PROGRAMS),
    "reliable-vqa": Dataset(reliable_vqa.score, frozenset({"questions", "thresholds"})),
    "gqa": Dataset(gqa.score, frozenset({"questions", "choices", "scenes", "attentions"})),
    "pope": Dataset(pope.score, like=("lmms-eval", "vlmevalkit")),
    "stvqa": Dataset(partial(anls.score, dataset="stvqa"), like=("m4c", "vlmevalkit")),
    "docvqa": Dataset(partial(anls.score, dataset="docvqa"), like=("m4c", "vlmevalkit")),
    "daquar": Dataset(daquar.score),
    "easyvqa": Dataset(easyvqa.score),
    "jsonl": Dataset(jsonl.score, frozenset({"question_ids"}), codes=True),
}
PROGRAMS: Final = tuple(dict.fromkeys(name for dataset in DATASETS.values() for name in dataset.like))


def evaluator(name: str) -> Evaluator:
    """The evaluator of a data set.

    Raises:
        KeyError: there is none of this name.
    """
    return DATASETS[name].score
