"""A distribution over an answer set: what any backend gives back, whatever its scores are.

Three kinds of scores come in. What a `probability` means depends on the kind and is never mixed up:

- softmax: logits of one distribution over the vocabulary. Labels of one answer add up. Probabilities are
  those within the set and sum to 1; `off_set` is the mass the model gave to answers outside it.
- logprob: log-probabilities of whole answers, end token included, taken before any mask (a generator).
  Probabilities are those within the set and sum to 1; `off_set` is what the set leaves over.
- sigmoid: logits of independent yes/no scores, one a label (a head trained with binary cross-entropy, as
  ViLT's). Of the labels of one answer the strongest counts. Scores need not sum to 1, and there is no
  `off_set`.

A score of minus infinity is a probability of 0. Where the model gave nothing at all to the set, every member
gets the same share of a mass of 0 (`off_set` is 1): the shares are a convention, `mass` says the truth. NaN
and plus infinity are the backend's fault and give no answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from service.answers.answer_sets import AnswerSet
from service.answers.scores import checked_scores, invalid_scores, log_sum_exp, logistic, sigmoid
from service.answers.vocabulary import Projection

_FOREMOST: Final = 12  # enough for what a reply lists and for what calibration looks at
_FEW: Final = 64  # so many numbers are sorted sooner than numpy has been called
_MASS_TOLERANCE: Final = 0.05  # 16-bit arithmetic; more than that means answers were counted twice


class ScoreKind(StrEnum):
    """What a backend's scores are."""

    SOFTMAX = "softmax"
    SIGMOID = "sigmoid"
    LOGPROB = "logprob"


@dataclass(frozen=True, eq=False)
class Posterior:
    """Probabilities of the members of an answer set.

    Attributes:
        answer_set: the set, n members.
        probabilities: (n,) float64 in [0, 1]; see the module for their meaning.
        off_set: the mass outside the set, in [0, 1]; None for sigmoid scores.
        score_kind: what the scores were.
        says_unanswerable: whether the model has a way to say the set's member "unanswerable".
        labels: the model's own spellings.
        label_of: (n,) for each member the index in `labels` of the spelling that spoke loudest, or -1.
    """

    answer_set: AnswerSet
    probabilities: NDArray[np.float64]
    off_set: float | None
    score_kind: ScoreKind
    says_unanswerable: bool
    labels: tuple[str, ...]
    label_of: NDArray[np.intp]

    def __post_init__(self) -> None:
        self.probabilities.setflags(write=False)  # a posterior is cached and shared
        self.label_of.setflags(write=False)

    @classmethod
    def from_logits(
        cls, logits: ArrayLike, projection: Projection, answer_set: AnswerSet, score_kind: ScoreKind | str
    ) -> Posterior:
        """From the logits of a classifier's head.

        Args:
            logits: (labels,) one for each label of the vocabulary, of any float type.
            projection: the vocabulary's projection into `answer_set`. Members that no label says get 0.
            answer_set: the set to answer from.
            score_kind: "softmax" or "sigmoid".

        Raises:
            VQAError: `backend_invalid_scores`: a NaN or plus infinity anywhere, all minus infinity (softmax),
                or another number of scores than labels.
            ValueError: `projection` is into another set, or the kind has no logits.
        """
        kind = ScoreKind(score_kind)
        if projection.identity != answer_set.identity:
            raise ValueError("the projection is into another answer set")
        if kind is ScoreKind.LOGPROB:
            raise ValueError("log-probabilities are not logits; use from_logprobs")
        scores = checked_scores(logits, len(projection.labels))
        inside = scores[projection.inside]
        loudest = np.full(projection.size, -np.inf)
        label_of = np.full(projection.size, -1, dtype=np.intp)
        if inside.size == projection.starts.size:
            # A label an answer, as most vocabularies have it.
            loudest[projection.members] = inside
            label_of[projection.members] = projection.inside
        elif inside.size:
            tops = np.maximum.reduceat(inside, projection.starts)
            loudest[projection.members] = tops
            member = projection.index[projection.inside]
            # Backwards, so that the first of equals is written last.
            is_top = np.flatnonzero(inside == loudest[member])[::-1]
            label_of[member[is_top]] = projection.inside[is_top]
        off_set: float | None
        if kind is ScoreKind.SIGMOID:
            probabilities, off_set = sigmoid(loudest), None
        else:
            probabilities, off_set = _softmax(inside, scores[projection.outside], projection)
        return cls(
            answer_set,
            probabilities,
            off_set,
            kind,
            projection.reaches(answer_set.unanswerable),
            projection.labels,
            label_of,
        )

    @classmethod
    def from_logprobs(
        cls,
        logprobs: ArrayLike,
        answer_set: AnswerSet,
        *,
        spellings: Sequence[str] | None = None,
        says_unanswerable: bool = True,
    ) -> Posterior:
        """From a generator's log-probabilities of whole answers.

        Args:
            logprobs: (members,) natural logarithms, aligned with the set, "unanswerable" included; taken
                before any mask and with the end token, so that they are parts of one distribution.
            answer_set: the set that was asked for.
            spellings: each member as the model writes it; the set's own spellings by default.
            says_unanswerable: whether the model was offered the member "unanswerable".

        Raises:
            VQAError: `backend_invalid_scores`: a NaN or plus infinity, another number than members, or a
                total mass above 1.05 (answers that are prefixes of others, counted without the end token).
        """
        scores = checked_scores(logprobs, len(answer_set))
        log_mass = log_sum_exp(scores)
        if log_mass > np.log1p(_MASS_TOLERANCE):
            raise invalid_scores(f"the answers' probabilities sum to {np.exp(min(log_mass, 700.0)):.3g}")
        if np.isneginf(log_mass):
            probabilities, off_set = _even_shares(len(answer_set)), 1.0
        else:
            probabilities = _unit_sum(np.exp(scores - log_mass))
            off_set = float(-np.expm1(min(log_mass, 0.0)))
        return cls(
            answer_set,
            probabilities,
            off_set,
            ScoreKind.LOGPROB,
            says_unanswerable and answer_set.unanswerable is not None,
            answer_set.spellings if spellings is None else tuple(spellings),
            np.arange(len(answer_set), dtype=np.intp),
        )

    def mass(self, member: int) -> float:
        """The absolute mass of one member: probability times in-set mass, or the sigmoid score."""
        scale = 1.0 if self.off_set is None else 1.0 - self.off_set
        return float(self.probabilities[member]) * scale

    def best(self) -> int:
        """The most probable member, "unanswerable" included if the model can say it; the first of equals."""
        best = self.best_answerable()
        nothing = self.answer_set.unanswerable
        if nothing is None or not self.says_unanswerable or best is None:
            return 0 if best is None else best
        gain = self.probabilities[nothing] - self.probabilities[best]
        return nothing if gain > 0 or (gain == 0 and nothing < best) else best

    def best_answerable(self) -> int | None:
        """The most probable member that is not "unanswerable"; the first of equals; None if there is none."""
        nothing = self.answer_set.unanswerable
        return next((member for member in self.descending(2) if member != nothing), None)

    def descending(self, k: int) -> list[int]:
        """The k most probable members, the most probable first, equals in the set's order."""
        return self._foremost[:k] if k <= _FOREMOST else _descending(self.probabilities, k)

    @cached_property
    def _foremost(self) -> list[int]:
        """What all that is made of a posterior begins with."""
        return _descending(self.probabilities, _FOREMOST)

    def raw_answer(self, member: int) -> str | None:
        """A member in the model's own spelling; None where the model has none for it."""
        label = int(self.label_of[member])
        return self.labels[label] if label >= 0 else None

    def respelled(self, answer_set: AnswerSet) -> Posterior:
        """The same distribution in another caller's spelling of the same set.

        Raises:
            ValueError: the set is another one (another identity).
        """
        if answer_set.identity != self.answer_set.identity:
            raise ValueError("the posterior is over another answer set")
        return replace(self, answer_set=answer_set)


def _softmax(
    inside: NDArray[np.float64], outside: NDArray[np.float64], projection: Projection
) -> tuple[NDArray[np.float64], float]:
    log_in, log_out = log_sum_exp(inside), log_sum_exp(outside)
    if np.isneginf(log_in):
        if np.isneginf(log_out):
            raise invalid_scores("every score is minus infinity")
        return _even_shares(projection.size), 1.0
    probabilities = np.zeros(projection.size)
    probabilities[projection.members] = np.add.reduceat(np.exp(inside - log_in), projection.starts)
    return _unit_sum(probabilities), logistic(log_out - log_in)


def _descending(p: NDArray[np.float64], k: int) -> list[int]:
    if p.size <= _FEW:
        values = p.tolist()
        return sorted(range(len(values)), key=values.__getitem__, reverse=True)[:k]
    if not 0 < k < p.size:
        order = np.argsort(-p, kind="stable")
    else:
        # Only what must be is sorted.
        kth = np.partition(p, p.size - k)[p.size - k]
        among = np.flatnonzero(p >= kth)
        order = among[np.argsort(-p[among], kind="stable")]
    return [int(member) for member in order[:k]]


def _unit_sum(p: NDArray[np.float64]) -> NDArray[np.float64]:
    shares: NDArray[np.float64] = p / p.sum()
    return shares


def _even_shares(n: int) -> NDArray[np.float64]:
    return np.full(n, 1.0 / n)
