"""What `vqa models add` is asked for, and whether it may be made: all that is known before any work."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from models.vilt.place import check_name, check_not_embedded, check_place
from service.backends.manifest import ModelManifest, Precision

HUB_ID = r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*"


def is_text(text: str) -> bool:
    """Whether UTF-8 can hold it: half of a surrogate pair, which JSON and file names can, it cannot."""
    return not any("\ud800" <= char <= "\udfff" for char in text)


class AddError(Exception):
    """No model can be made of this; the message says why and what to do."""


@dataclass(frozen=True)
class Request:
    """A model to make.

    Attributes:
        source: a checkpoint folder, or a hub id.
        models_dir: the folder that the model's folder comes into.
        given_name: the model's name; None takes the source's, with `-int8` behind it for an int8 one.
        revision: branch, tag or commit of a hub's repository; None is its main branch.
        precision: of the graph.
        scores: how the logits are read. The heads of released ViLTs were trained with a sigmoid for each answer.
        licence: of the weights; None takes what the checkpoint's README says.
        questions: JSON Lines that the int8 graph is asked beside the fp32 one; None makes some.
        agreement_questions: how many of them at most.
        force: replace a model of this name.
        keep: leave a model of this name that was made of the same source.
        description: for `vqa models list`; empty makes one.
        demo: every reply warns that it is a demonstration.
    """

    source: str
    models_dir: Path
    given_name: str | None = None
    revision: str | None = None
    precision: Precision = "fp32"
    scores: Literal["softmax", "sigmoid"] = "sigmoid"
    licence: str | None = None
    questions: Path | None = None
    agreement_questions: int = 200
    force: bool = False
    keep: bool = False
    description: str = ""
    demo: bool = False

    @property
    def folder(self) -> Path | None:
        """The checkpoint folder; None where the source is a hub id.

        Raises:
            AddError: it is neither.
        """
        try:
            path = Path(self.source).expanduser()
        except RuntimeError as error:  # ~NAME of nobody
            raise AddError(f"{self.source}: {error}") from error
        if self.source and path.is_dir():
            return path
        if self.source and path.exists():
            raise AddError(f"{self.source} is a file; give the checkpoint's folder")
        if re.fullmatch(HUB_ID, self.source):
            return None
        raise AddError(
            f"there is no folder {self.source!r}, and it is no hub id, which has the form owner/name, as "
            "dandelin/vilt-b32-finetuned-vqa"
        )

    @property
    def origin(self) -> str:
        """What the manifest calls the source: the hub id, or the folder's name without its path."""
        return self.source if self.folder is None else self.folder.resolve().name

    @property
    def name(self) -> str:
        """The model's name."""
        return self.given_name or self.origin.rpartition("/")[2] + ("-int8" if self.precision == "int8" else "")

    @property
    def out(self) -> Path:
        """The folder to make."""
        return self.models_dir / self.name

    def check(self) -> None:
        """Whether the model's name can be one, and no other model has it that may not be replaced.

        Raises:
            AddError: it cannot be made.
        """
        try:
            check_name(self.name)
            check_place(self.out)
            check_not_embedded(self.name)
        except ValueError as error:
            raise AddError(f"{error} (see --name)") from error
        texts = {"--license": self.licence, "--revision": self.revision, "the source's name": self.origin}
        for what, text in texts.items():
            if not is_text(text or ""):
                raise AddError(f"{what} is no text in UTF-8: {text!r}")
        if self.out.exists() and not self.force and not self.keep:
            raise AddError(f"{self.out} is there already; replace it with --force, or give another --name")

    def check_same(self, present: ModelManifest, revision: str | None) -> None:
        """Whether a model that is there was made of this source.

        Args:
            present: the model's manifest.
            revision: what the source is at, or a part of it; None where that is not known.

        Raises:
            AddError: it was made of another.
        """
        there = present.source
        if present.scores.kind != self.scores:
            raise AddError(
                f"{self.out} is there already, and its scores are read by {present.scores.kind}; replace it with "
                "--force, or give another --name"
            )
        same = there.checkpoint == self.origin and there.precision == self.precision
        if not same or (revision is not None and not there.revision.startswith(revision)):
            made_of = f"{there.checkpoint} {there.revision}".strip() or "something else"
            raise AddError(
                f"{self.out} is there already, and was made of {made_of} as {there.precision}; replace it with "
                "--force, or give another --name"
            )
