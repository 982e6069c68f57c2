"""How questions are worded: templates by kind of question, in groups that never share a wording.

Slots: {a} a thing with its article ("a red shape"), {thing} and {things} without ("red shape", "red shapes"),
{noun} "shape" or the name of one, {name} the name of one, {color} a colour, {a_color} a colour with its article,
{size} a superlative ("biggest"), {one} and {other} things that a scene has once, {side} "left" or "right",
{object} an everyday object that no drawing here shows.
"""

from __future__ import annotations

from enum import StrEnum

from models.shapes import wordings_calibration, wordings_test, wordings_train
from models.shapes.kinds import Kind
from models.shapes.wordings_train import EASY

__all__ = ["EASY", "OBJECTS", "TEMPLATES", "Group", "Kind"]


class Group(StrEnum):
    """Whose wordings: a calibration or test question is phrased as no training question ever is."""

    TRAIN = "train"
    CALIBRATION = "calibration"
    TEST = "test"


TEMPLATES: dict[Group, dict[Kind, tuple[str, ...]]] = {
    Group.TRAIN: wordings_train.TEMPLATES,
    Group.CALIBRATION: wordings_calibration.TEMPLATES,
    Group.TEST: wordings_test.TEMPLATES,
}

OBJECTS: dict[Group, tuple[str, ...]] = {
    Group.TRAIN: wordings_train.OBJECTS,
    Group.CALIBRATION: wordings_calibration.OBJECTS,
    Group.TEST: wordings_test.OBJECTS,
}
