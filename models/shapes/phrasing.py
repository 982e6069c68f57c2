"""How questions are worded: templates by kind of question (`wordings/`), in groups that never share a wording.

Slots: {a} a thing with its article ("a red shape"), {thing} and {things} without ("red shape", "red shapes"),
{noun} "shape" or the name of one, {name} the name of one, {color} a colour, {a_color} a colour with its article,
{size} a superlative ("biggest"), {one} and {other} things that a scene has once, {side} "left" or "right",
{object} an everyday object that no drawing here shows, {an_object} the same with its article.
"""

from __future__ import annotations

import tomllib
from enum import StrEnum
from pathlib import Path
from typing import Any

from models.shapes.kinds import Kind

__all__ = ["EASY", "OBJECTS", "STRANGE", "TEMPLATES", "Group", "Kind"]


class Group(StrEnum):
    """Whose wordings: a calibration or test question is phrased as no training question ever is."""

    TRAIN = "train"
    CALIBRATION = "calibration"
    TEST = "test"


def _read(group: Group) -> dict[str, Any]:
    with (Path(__file__).parent / "wordings" / f"{group}.toml").open("rb") as file:
        return tomllib.load(file)


def _by_kind(table: dict[str, list[str]]) -> dict[Kind, tuple[str, ...]]:
    return {Kind(name): tuple(templates) for name, templates in table.items()}


_WORDINGS = {group: _read(group) for group in Group}
TEMPLATES: dict[Group, dict[Kind, tuple[str, ...]]] = {g: _by_kind(w["templates"]) for g, w in _WORDINGS.items()}
EASY: dict[Kind, tuple[str, ...]] = _by_kind(_WORDINGS[Group.TRAIN]["easy"])
"""easy-VQA's own templates."""
STRANGE: tuple[str, ...] = tuple(_WORDINGS[Group.TRAIN]["strange"])
"""Words that no wording has, to make training wordings rough with."""
OBJECTS: dict[Group, tuple[str, ...]] = {group: tuple(words["objects"]) for group, words in _WORDINGS.items()}
