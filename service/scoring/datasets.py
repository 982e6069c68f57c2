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
        title: what people call it.
        score: its evaluator.
        like: the other programs whose numbers can be had.
        codes: whether the VQA code's versions make a difference.
    """

    title: str
    score: Evaluator
    like: tuple[str, ...] = ()
    codes: bool = False


_VQA_LIKE: Final = ("lmms-eval", "vlmevalkit", "m4c", "lavis", "vizwiz")
DATASETS: Final[Mapping[str, Dataset]] = {
    "vqav2": Dataset("VQA v2", partial(vqa.score, dataset="vqav2"), _VQA_LIKE, codes=True),
    "vqa": Dataset("VQA v1, open-ended and multiple choice", partial(vqa.score, dataset="vqa"), _VQA_LIKE, codes=True),
    "okvqa": Dataset("OK-VQA", partial(vqa.score, dataset="okvqa"), _VQA_LIKE, codes=True),
    "textvqa": Dataset("TextVQA", partial(vqa.score, dataset="textvqa"), _VQA_LIKE, codes=True),
    "vqacp": Dataset("VQA-CP v1 and v2", partial(vqa.score, dataset="vqacp"), _VQA_LIKE, codes=True),
    "advqa": Dataset("AdVQA", advqa.score, codes=True),
    "vizwiz": Dataset("VizWiz", vizwiz.score, _VQA_LIKE),
    "reliable-vqa": Dataset("VQA v2 with confidences: risk, coverage, effective reliability", reliable_vqa.score),
    "gqa": Dataset("GQA", gqa.score),
    "pope": Dataset("POPE", pope.score, ("lmms-eval", "vlmevalkit")),
    "stvqa": Dataset("ST-VQA", partial(anls.score, dataset="stvqa"), ("m4c", "vlmevalkit")),
    "docvqa": Dataset("DocVQA", partial(anls.score, dataset="docvqa"), ("m4c", "vlmevalkit")),
    "daquar": Dataset("DAQUAR", daquar.score),
    "easyvqa": Dataset("easy-VQA", easyvqa.score),
    "jsonl": Dataset("one's own questions", jsonl.score, codes=True),
}
PROGRAMS: Final = tuple(dict.fromkeys(name for dataset in DATASETS.values() for name in dataset.like))


def evaluator(name: str) -> Evaluator:
    """The evaluator of a data set.

    Raises:
        KeyError: there is none of this name.
    """
    return DATASETS[name].score
