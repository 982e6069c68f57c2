"""A model's own answers: labels grouped by what they mean, and their projection into an answer set.

A `Vocabulary` is made once, when a model is loaded; all text work happens there. A request only looks its
choices up.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Final

import numpy as np
from numpy.typing import NDArray

from service.answers.answer_sets import AnswerSet
from service.answers.families import UNANSWERABLE, is_unanswerable
from service.answers.keys import match_key
from service.answers.normalise import normalise

VOCABULARY: Final = "vocabulary"
"""The name of the set that holds all a model knows."""

_CACHED_PROJECTIONS: Final = 128


@dataclass(frozen=True, eq=False)
class Projection:
    """Where each label of a vocabulary goes in an answer set.

    Attributes:
        labels: the vocabulary's labels as the model spells them.
        identity: the identity of the answer set.
        size: the number of members of the answer set.
        index: (labels,) the member each label belongs to, or -1.
        inside: (k,) the labels inside the set, sorted by member.
        starts: (m,) where in `inside` each member's labels start.
        members: (m,) the members that have a label, ascending.
        outside: (labels - k,) the labels outside the set.
    """

    labels: tuple[str, ...]
    identity: str
    size: int
    index: NDArray[np.intp]
    inside: NDArray[np.intp]
    starts: NDArray[np.intp]
    members: NDArray[np.intp]
    outside: NDArray[np.intp]

    def reaches(self, member: int | None) -> bool:
        """Whether any label says this member."""
        return member is not None and bool(np.any(self.members == member))


class Vocabulary:
    """The labels of a model's head, in the order of its scores.

    Labels that normalise alike are one answer. Labels of the "cannot tell" family (see `families`) are all
    "unanswerable", except those that an answer set names for itself. A blank label (the 3,129 answers of VQA
    v2 hold one) says nothing: it is outside every set.

    Args:
        labels: one a score. Two labels may be alike.

    Raises:
        ValueError: there are no labels, or all are blank.
    """

    def __init__(self, labels: Sequence[str]) -> None:
        if not labels:
            raise ValueError("a vocabulary needs at least one label")
        self.labels: Final = tuple(labels)
        self._group_of_key: Final[dict[str, int]] = {}
        spellings: list[str] = []
        in_family: list[bool] = []
        group_of_label = np.empty(len(self.labels), dtype=np.intp)
        for i, label in enumerate(self.labels):
            key = match_key(label)
            if not key:
                group_of_label[i] = -1
                continue
            group = self._group_of_key.setdefault(key, len(spellings))
            if group == len(spellings):
                spellings.append(normalise(label) or key)
                in_family.append(False)
            in_family[group] |= is_unanswerable(label)
            group_of_label[i] = group
        if not spellings:
            raise ValueError("every label is blank")
        self._group_of_label = group_of_label
        self._family = np.array(in_family, dtype=np.bool_)
        self._cache: OrderedDict[str, Projection] = OrderedDict()
        self._lock = Lock()
        self.default_set: Final = self._make_default_set(spellings)
        self._default_projection = self._make_projection(self.default_set)

    def __len__(self) -> int:
        return len(self.labels)

    def covers(self, answer_set: AnswerSet) -> list[int]:
        """The members of a set that no label says; empty where the vocabulary covers it.

        The member "unanswerable" is never missing: a model without such a label just never says it.
        """
        return [
            i for i, key in enumerate(answer_set.keys) if i != answer_set.unanswerable and key not in self._group_of_key
        ]

    def project(self, answer_set: AnswerSet) -> Projection:
        """The projection into a set; kept for the 128 sets used last. Safe to call from several threads."""
        if answer_set.identity == self.default_set.identity:
            return self._default_projection
        with self._lock:
            if found := self._cache.get(answer_set.identity):
                self._cache.move_to_end(answer_set.identity)
                return found
        made = self._make_projection(answer_set)
        with self._lock:
            self._cache[answer_set.identity] = made
            while len(self._cache) > _CACHED_PROJECTIONS:
                self._cache.popitem(last=False)
        return made

    def _make_default_set(self, spellings: list[str]) -> AnswerSet:
        keys = list(self._group_of_key)
        kept = [i for i in range(len(keys)) if not self._family[i]]
        members = [spellings[i] for i in kept]
        member_keys = [keys[i] for i in kept]
        if len(kept) == len(keys):
            return AnswerSet(VOCABULARY, tuple(members), tuple(member_keys), None)
        return AnswerSet(VOCABULARY, (*members, UNANSWERABLE), (*member_keys, UNANSWERABLE), len(members))

    def _make_projection(self, answer_set: AnswerSet) -> Projection:
        # One entry more than there are groups: the last is for blank labels, whose group is -1.
        member_of_group = np.full(len(self._family) + 1, -1, dtype=np.intp)
        if answer_set.unanswerable is not None:
            member_of_group[:-1][self._family] = answer_set.unanswerable
        for member, key in enumerate(answer_set.keys):  # after the family: what the set names is its own
            group = self._group_of_key.get(key)
            if group is not None:
                member_of_group[group] = member
        index = member_of_group[self._group_of_label]
        by_member = np.argsort(index, kind="stable")
        n_outside = int(np.count_nonzero(index < 0))
        outside, inside = by_member[:n_outside], by_member[n_outside:]
        members, starts = np.unique(index[inside], return_index=True)
        arrays = (index, inside, starts.astype(np.intp), members, outside)
        for array in arrays:
            array.setflags(write=False)
        return Projection(self.labels, answer_set.identity, len(answer_set), *arrays)
